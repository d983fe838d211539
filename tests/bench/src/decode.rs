//! `decode`: decoding the arguments of a typical call against the whole of a trivial call.
//!
//! Five properties in some 200 bytes, with a default to fill in, a member in another case and a boolean to read from text. The ratio is the share
//! that decoding would have of the trivial call; the goal is under a tenth.

use std::hint::black_box;
use std::time::{Duration, Instant};

use cofferdam_tool::{DecodeOptions, InputSchema};

use crate::call_floor;
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "decode";
const ROUNDS: usize = 40;
const DECODES_PER_ROUND: u32 = 5_000;

const SCHEMA: &str = r#"{"type":"object","properties":{
    "path":{"type":"string","description":"Where to look."},
    "pattern":{"type":"string","minLength":1},
    "limit":{"type":"integer","format":"int32","minimum":1,"default":100},
    "mode":{"type":"string","enum":["lines","files","count"]},
    "ignore_case":{"type":"boolean","default":false}
    },"required":["path","pattern"]}"#;

const ARGUMENTS: &str = r##"{"path":"docs/a/rather/long/path/of/a/file/below/some/folder/in/a/mounted/store.md",
    "pattern":"^#+ (Known|Other) holes?, and what comes after them$","limit":null,"mode":"Lines","ignore_case":"true"}"##;

pub(crate) async fn measure() -> anyhow::Result<Ratio> {
    let schema = InputSchema::compile("search", SCHEMA)?;
    let host = call_floor::host().await;
    let mut ratio = Ratio::new(NAME);
    for round in 0..=ROUNDS {
        let ours = time_decode(&schema)?;
        let reference = call_floor::time_ours(&host).await?;
        if round > 0 {
            ratio.add(ours, reference);
        }
    }
    Ok(ratio)
}

fn time_decode(schema: &InputSchema) -> anyhow::Result<Duration> {
    let options = DecodeOptions::default();
    let started = Instant::now();
    for _ in 0..DECODES_PER_ROUND {
        black_box(schema.decode("search", Some(black_box(ARGUMENTS.as_bytes())), &options)?);
    }
    Ok(started.elapsed() / DECODES_PER_ROUND)
}
