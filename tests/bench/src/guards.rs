//! `guards`: cost of each thing that the host adds to a call.
//!
//! Parts of the sandbox are added to raw wasmtime, one at a time (`FloorGuard`), and the difference
//! is the result; the host has no switches for them. This runs on one processor. Parts outside the
//! sandbox are measured separately.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use cofferdam_engine::Mount;
use cofferdam_engine::floor::{Floor, FloorGuard};
use cofferdam_files::{Budget, DirectoryOptions, DirectoryStore, FileStore, Overlay, StorePath};
use cofferdam_tests::{Host, guest};
use cofferdam_tool::{
    CallRecord, DecodeOptions, FileAccess, InputSchema, MountName, Outcome, Output,
};
use serde_json::Value;

use crate::call_floor::{self, GUEST};
use crate::effort::Effort;
use crate::measure::{Amount, Measure, Unit};
use crate::one_cpu::OneCpu;
use crate::ratio::Ratio;
use crate::samples::Samples;

pub(crate) const NAME: &str = "guards";
/// Many short rounds, because the differences are small.
const ROUNDS: usize = 200;
const CALLS_PER_ROUND: u32 = 100;
/// Number of repetitions of things that take less than a microsecond.
const TIMES: u32 = 2_000;
const FILE_OPERATIONS: u32 = 20;

const GUARDS: [(&str, &[FloorGuard]); 5] = [
    ("deadline", &[FloorGuard::Deadline]),
    ("limit of memory", &[FloorGuard::Memory]),
    ("bounds of WASI", &[FloorGuard::Wasi]),
    ("log", &[FloorGuard::Log]),
    ("these four", &[FloorGuard::Deadline, FloorGuard::Memory, FloorGuard::Wasi, FloorGuard::Log]),
];

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let _one = OneCpu::take()?;
    let root = tempfile::tempdir()?;
    std::fs::write(root.path().join("small"), "x".repeat(1024))?;
    let mut rows = sandbox(effort).await?;
    rows.push(decoding(effort)?);
    rows.push(record(effort)?);
    rows.push(transaction(effort, root.path()).await?);
    rows.push(file_operation(effort, root.path()).await?);
    Ok(rows)
}

/// Measures the guards that are added to raw wasmtime.
async fn sandbox(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let host = call_floor::host().await;
    let component = std::fs::read(guest(GUEST)).context("the guest cannot be read")?;
    let floor = Floor::new(&host.engine, &component).map_err(|reason| anyhow!(reason))?;
    let calls = effort.times(CALLS_PER_ROUND);
    let plain = async || call_floor::time_floor(&floor, calls).await;
    let mut rows = Vec::new();
    for (name, guards) in GUARDS {
        let guarded = async || time_guarded(&floor, guards, calls).await;
        let ratio = Ratio::new(format!("{NAME}, {name}"));
        rows.push(ratio.alternate(effort, ROUNDS, guarded, plain).await?.difference().into());
    }
    let whole = async || call_floor::time_ours(&host, calls).await;
    let ratio = Ratio::new(format!("{NAME}, everything that a call of ours has"));
    rows.push(ratio.alternate(effort, ROUNDS, whole, plain).await?.difference().into());
    Ok(rows)
}

async fn time_guarded(
    floor: &Floor,
    guards: &[FloorGuard],
    calls: u32,
) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..calls {
        let contents =
            floor.call_guarded(guards, GUEST, "{}").await.map_err(|reason| anyhow!(reason))?;
        ensure!(contents == 1, "a measured call failed");
    }
    Ok(started.elapsed() / calls)
}

/// Measures decoding an empty object, as in the trivial call. `decode` measures arguments.
fn decoding(effort: Effort) -> anyhow::Result<Measure> {
    let schema = InputSchema::compile("trivial", r#"{"type":"object"}"#)?;
    let options = DecodeOptions::default();
    let decode = || {
        let decoded = schema.decode("trivial", Some(black_box(b"{}")), &options);
        black_box(decoded).map(drop)
    };
    Ok(repeated(effort, "decoding empty arguments", || Ok(decode()?))?.into())
}

/// Measures the record of a successful call.
fn record(effort: Effort) -> anyhow::Result<Measure> {
    let outcome = Outcome::Ok(Output::Value(Value::from(1)));
    let made = || {
        let mut record = CallRecord::default();
        "call".clone_into(&mut record.call_id);
        record.set_outcome(&outcome);
        drop(black_box(record));
        Ok(())
    };
    Ok(repeated(effort, "record", made)?.into())
}

fn repeated(
    effort: Effort,
    name: &str,
    mut once: impl FnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Amount> {
    let (mut samples, times) = (Samples::default(), effort.times(TIMES));
    for _ in 0..effort.rounds(ROUNDS) {
        let started = Instant::now();
        for _ in 0..times {
            once()?;
        }
        samples.add((started.elapsed() / times).as_secs_f64());
    }
    Ok(Amount::new(format!("{NAME}, {name}"), Unit::Seconds, samples))
}

/// Measures a call that could change files, and does not access them.
async fn transaction(effort: Effort, root: &Path) -> anyhow::Result<Measure> {
    let mut mounted = call_floor::empty_host();
    let access = FileAccess::ReadWrite;
    mounted.grants.mounts = vec![Mount::new(MountName::new("data")?, store(root)?, access)];
    mounted.load(GUEST).await;
    let plain = call_floor::host().await;
    let calls = effort.times(CALLS_PER_ROUND);
    let time = async |host: &Host| call_floor::time_ours(host, calls).await;
    let ratio = Ratio::new(format!("{NAME}, a mounted store that is not used"));
    let ratio =
        ratio.alternate(effort, ROUNDS, async || time(&mounted).await, async || time(&plain).await);
    Ok(ratio.await?.difference().into())
}

/// Measures the overlay of a call around reading a small file.
async fn file_operation(effort: Effort, root: &Path) -> anyhow::Result<Measure> {
    let direct = store(root)?;
    let guarded: Arc<dyn FileStore> =
        Arc::new(Overlay::new(Arc::clone(&direct), &Budget::new(1 << 20)));
    let path = StorePath::file("small")?;
    let times = effort.times(FILE_OPERATIONS);
    let time = async |store: &Arc<dyn FileStore>| {
        let started = Instant::now();
        for _ in 0..times {
            let read = store.read(&path, 4096).await?;
            ensure!(read.len() == 1024, "{} bytes read", read.len());
        }
        Ok(started.elapsed() / times)
    };
    let ratio = Ratio::new(format!("{NAME}, the overlay around reading one small file"));
    let ratio = ratio.alternate(
        effort,
        ROUNDS,
        async || time(&guarded).await,
        async || time(&direct).await,
    );
    Ok(ratio.await?.difference().into())
}

fn store(root: &Path) -> anyhow::Result<Arc<dyn FileStore>> {
    Ok(Arc::new(DirectoryStore::open_ambient(root, DirectoryOptions::default())?))
}
