//! `payload`: a call with arguments and a result of some size, against raw wasmtime.
//!
//! The guest returns its input. Ours decodes the arguments by their schema, and parses, checks and
//! copies the result; the reference moves both as strings.

use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use cofferdam_engine::floor::Floor;
use cofferdam_tests::{Host, guest};
use serde_json::json;

use crate::call_floor;
use crate::effort::Effort;
use crate::measure::Measure;
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "payload";
const GUEST: &str = "served";
const TOOL: &str = "echo";
const ROUNDS: usize = 40;
/// Name, size of the string in both directions, and calls in one round.
const SIZES: [(&str, usize, u32); 3] =
    [("100 B", 100, 500), ("10 KiB", 10 << 10, 300), ("1 MiB", MIB_WITHOUT_FRAME, 6)];
/// Arguments may have 1 MiB in total.
const MIB_WITHOUT_FRAME: usize = (1 << 20) - 64;
/// A result may have as much, plus its frame.
const OUTPUT_BYTES_MAX: u64 = 4 << 20;

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let mut host = call_floor::empty_host();
    host.limits.output_bytes_max = OUTPUT_BYTES_MAX;
    host.load(GUEST).await;
    let component = std::fs::read(guest(GUEST)).context("the guest cannot be read")?;
    let floor = Floor::new(&host.engine, &component).map_err(|reason| anyhow!(reason))?;
    let mut rows = Vec::new();
    for (size, bytes, calls) in SIZES {
        let text: String =
            "to be or not to be, that is the question. ".chars().cycle().take(bytes).collect();
        let arguments = json!({"message": text}).to_string();
        let calls = effort.times(calls);
        let ours = async || time_ours(&host, &arguments, calls).await;
        let reference = async || time_floor(&floor, &arguments, calls).await;
        let ratio = Ratio::new(format!("{NAME}, {size} in and out"));
        rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
    }
    Ok(rows)
}

async fn time_ours(host: &Host, arguments: &str, calls: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..calls {
        let completion = host.call(TOOL, arguments).await;
        ensure!(
            completion.record.outcome == "ok",
            "a measured call ended as {}",
            completion.record.outcome
        );
    }
    Ok(started.elapsed() / calls)
}

async fn time_floor(floor: &Floor, arguments: &str, calls: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..calls {
        let contents = floor.call(TOOL, arguments).await.map_err(|reason| anyhow!(reason))?;
        ensure!(contents == 1, "a measured call failed");
    }
    Ok(started.elapsed() / calls)
}
