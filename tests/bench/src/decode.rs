//! `decode`: decoding the arguments of a typical call against a complete trivial call.
//!
//! Five properties in some 200 bytes, with a null that takes a default, a member in another case
//! and a boolean in a string. The ratio is the share that decoding would have of the trivial call;
//! the goal is under a tenth.

use std::hint::black_box;
use std::time::{Duration, Instant};

use cofferdam_tool::{DecodeOptions, InputSchema};

use crate::call_floor;
use crate::effort::Effort;
use crate::measure::{Goal, Measure};
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

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let schema = InputSchema::compile("search", SCHEMA)?;
    let host = call_floor::host().await;
    let ours = async || time_decode(&schema, effort.times(DECODES_PER_ROUND));
    let reference =
        async || call_floor::time_ours(&host, effort.times(call_floor::CALLS_PER_ROUND)).await;
    let ratio = Ratio::new(NAME).with_goal(Goal::AtMost(0.1));
    Ok(vec![ratio.alternate(effort, ROUNDS, ours, reference).await?.into()])
}

fn time_decode(schema: &InputSchema, times: u32) -> anyhow::Result<Duration> {
    let options = DecodeOptions::default();
    let started = Instant::now();
    for _ in 0..times {
        black_box(schema.decode("search", Some(black_box(ARGUMENTS.as_bytes())), &options)?);
    }
    Ok(started.elapsed() / times)
}
