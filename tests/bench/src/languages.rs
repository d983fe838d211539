//! `languages`: a warm call of a plugin in each language, with a fresh instance, against raw
//! wasmtime on the same component.
//!
//! The component is the conformance plugin of the language; the tool takes nothing and returns a
//! short string. Plugins that are not built are skipped: `cargo xtask guests` names the
//! requirements.

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use cofferdam_engine::floor::Floor;
use cofferdam_tests::{Host, root};

use crate::effort::Effort;
use crate::measure::Measure;
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "languages";
/// Languages with an SDK.
pub(crate) const LANGUAGES: [&str; 8] =
    ["rust", "c", "cpp", "zig", "go", "javascript", "typescript", "python"];
const TOOL: &str = "word";
const ROUNDS: usize = 30;
/// Intended duration of a round of one side: languages differ by a factor of a hundred.
const ROUND_TIME: Duration = Duration::from_millis(40);
const CALLS_PER_ROUND_MAX: u32 = 500;

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let mut ratios = Vec::new();
    for language in LANGUAGES {
        let guest = format!("conformance_{language}");
        let component = root().join("target/plugins").join(format!("{guest}.wasm"));
        if component.is_file() {
            let bytes = std::fs::read(&component).context("the component cannot be read")?;
            ratios.push(of(effort, language, &guest, &bytes).await?.into());
        }
    }
    Ok(ratios)
}

async fn of(
    effort: Effort,
    language: &str,
    guest: &str,
    component: &[u8],
) -> anyhow::Result<Ratio> {
    let mut host = crate::call_floor::empty_host();
    host.load(guest).await;
    let floor = Floor::new(&host.engine, component).map_err(|reason| anyhow!(reason))?;
    time_floor(&floor, 1).await?;
    let calls = effort.times(calls_per_round(time_floor(&floor, 3).await?));
    let ours = async || time_ours(&host, calls).await;
    let reference = async || time_floor(&floor, calls).await;
    Ratio::new(format!("{NAME}-{language}")).alternate(effort, ROUNDS, ours, reference).await
}

/// Returns the number of calls of a round if one takes `once`.
pub(crate) fn calls_per_round(once: Duration) -> u32 {
    let calls = ROUND_TIME.as_nanos() / once.as_nanos().max(1000);
    u32::try_from(calls).unwrap_or(u32::MAX).clamp(1, CALLS_PER_ROUND_MAX)
}

async fn time_ours(host: &Host, calls: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..calls {
        let completion = host.call(TOOL, "{}").await;
        anyhow::ensure!(completion.record.outcome == "ok", "a measured call failed");
    }
    Ok(started.elapsed() / calls)
}

async fn time_floor(floor: &Floor, calls: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..calls {
        let contents = floor.call(TOOL, "{}").await.map_err(|reason| anyhow!(reason))?;
        anyhow::ensure!(contents == 1, "a measured call failed");
    }
    Ok(started.elapsed() / calls)
}
