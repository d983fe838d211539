//! `guest-files`: file operations of a guest through the standard library of its language, on a
//! directory, against the preopened directories of wasmtime-wasi.
//!
//! Ours is a complete call: the overlay, the quota, and the commit at the end. It is measured
//! twice: without waiting for the disk, like the reference, and with it, which is the default. The
//! settings are those of the binary.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use cofferdam_engine::floor::Floor;
use cofferdam_engine::{EngineConfig, Mount, PoolSize};
use cofferdam_files::{DirectoryOptions, DirectoryStore, FileStore, Quota, SpillOptions};
use cofferdam_tests::{Host, config, guest, shared_cache};
use cofferdam_tool::{FileAccess, MountName};
use serde_json::json;

use crate::effort::Effort;
use crate::measure::Measure;
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "guest-files";
const GUEST: &str = "bulk_files";
const ROUNDS: usize = 15;
/// Waiting for the disk takes long.
const DURABLE_ROUNDS: usize = 7;

/// An operation of the guest.
struct Row {
    name: &'static str,
    /// Name of the row that waits for the disk. Only for operations that change files.
    durable: Option<&'static str>,
    what: &'static str,
    at: &'static str,
    amount: u64,
    step: u64,
    /// Answer of the guest.
    done: u64,
}

const MIB: u64 = 1 << 20;
const ROWS: [Row; 8] = [
    Row {
        name: "guest writes 64 MiB, 64 KiB at a time",
        durable: Some("guest writes 64 MiB, durably"),
        what: "write",
        at: "new/written",
        amount: 64 * MIB,
        step: 64 << 10,
        done: 64 * MIB,
    },
    Row {
        name: "guest writes 64 MiB, 1 MiB at a time",
        durable: None,
        what: "write",
        at: "new/written",
        amount: 64 * MIB,
        step: MIB,
        done: 64 * MIB,
    },
    Row {
        name: "guest writes 8 MiB, 64 KiB at a time",
        durable: Some("guest writes 8 MiB, durably"),
        what: "write",
        at: "new/written",
        amount: 8 * MIB,
        step: 64 << 10,
        done: 8 * MIB,
    },
    Row {
        name: "guest reads 64 MiB, 64 KiB at a time",
        durable: None,
        what: "read",
        at: "large",
        amount: 0,
        step: 64 << 10,
        done: 64 * MIB,
    },
    Row {
        name: "guest reads 8 MiB, 64 KiB at a time",
        durable: None,
        what: "read",
        at: "medium",
        amount: 0,
        step: 64 << 10,
        done: 8 * MIB,
    },
    Row {
        name: "guest creates 1000 files of 1 KiB",
        durable: Some("guest creates 1000 files, durably"),
        what: "create_many",
        at: "new",
        amount: 1000,
        step: 0,
        done: 1000,
    },
    Row {
        name: "guest reads 1000 files of 1 KiB",
        durable: None,
        what: "read_many",
        at: "small",
        amount: 1000,
        step: 0,
        done: 1000 << 10,
    },
    Row {
        name: "guest lists 1000 files",
        durable: None,
        what: "list",
        at: "small",
        amount: 0,
        step: 0,
        done: 1010,
    },
];

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let (root, spill) = (tempfile::tempdir()?, tempfile::tempdir()?);
    prepare(root.path())?;
    let fast = host(root.path(), spill.path(), false).await?;
    let durable = host(root.path(), spill.path(), true).await?;
    let component = std::fs::read(guest(GUEST)).context("the guest cannot be read")?;
    let floor = Floor::new(&fast.engine, &component).map_err(|reason| anyhow!(reason))?;
    let mut ratios = Vec::new();
    for row in &ROWS {
        let both = Both { row, host: &fast, floor: &floor, root: root.path() };
        ratios.push(both.compare(row.name, effort, ROUNDS).await?);
        if let Some(name) = row.durable {
            ratios
                .push(Both { host: &durable, ..both }.compare(name, effort, DURABLE_ROUNDS).await?);
        }
    }
    Ok(ratios)
}

/// Creates the files that are read.
fn prepare(root: &Path) -> anyhow::Result<()> {
    std::fs::write(root.join("large"), vec![7; usize::try_from(64 * MIB)?])?;
    std::fs::write(root.join("medium"), vec![7; usize::try_from(8 * MIB)?])?;
    for directory in 0..10 {
        std::fs::create_dir_all(root.join(format!("small/{directory}")))?;
    }
    for number in 0..1000 {
        std::fs::write(root.join(format!("small/{}/{number}", number % 10)), [7; 1024])?;
    }
    Ok(())
}

async fn host(root: &Path, spill: &Path, is_durable: bool) -> anyhow::Result<Host> {
    let config = EngineConfig {
        cache_directory: Some(shared_cache()),
        pool: PoolSize { concurrent_calls_max: 8, ..PoolSize::default() },
        spill: Some(SpillOptions {
            directory_ambient: spill.to_owned(),
            bytes_max: 256 << 20,
            file_bytes_min: 1 << 20,
        }),
        ..config()
    };
    // The files of a round are removed without the store, which keeps its count for a second: ten
    // rounds of a thousand files would exceed its limit.
    let quota = Quota {
        bytes_max: u64::MAX,
        file_bytes_max: u64::MAX,
        entries_max: u64::from(u32::MAX),
        ..Quota::default()
    };
    let options = DirectoryOptions { quota, is_durable, ..DirectoryOptions::default() };
    let store: Arc<dyn FileStore> = Arc::new(DirectoryStore::open_ambient(root, options)?);
    let mut host = Host::with(config);
    let access = FileAccess::ReadWrite;
    host.grants.mounts = vec![Mount::new(MountName::new("data")?, store, access)];
    host.load(GUEST).await;
    Ok(host)
}

/// A row on both sides.
struct Both<'a> {
    row: &'a Row,
    host: &'a Host,
    floor: &'a Floor,
    root: &'a Path,
}

impl Both<'_> {
    async fn compare(&self, name: &str, effort: Effort, rounds: usize) -> anyhow::Result<Measure> {
        let Self { row, host, floor, root } = self;
        let at = format!("/data/{}", row.at);
        let arguments =
            json!({"do": row.what, "at": at, "amount": row.amount, "step": row.step}).to_string();
        let ours = async || {
            clear(root)?;
            time_ours(host, &arguments, row.done).await
        };
        let reference = async || {
            clear(root)?;
            time_floor(floor, root, &arguments, row.done).await
        };
        let ratio = Ratio::new(name).alternate(effort, rounds, ours, reference).await?;
        clear(root)?;
        Ok(ratio.into())
    }
}

/// Empties the directory into which both sides write.
fn clear(root: &Path) -> anyhow::Result<()> {
    let new = root.join("new");
    if new.exists() {
        std::fs::remove_dir_all(&new)?;
    }
    Ok(std::fs::create_dir(new)?)
}

async fn time_ours(host: &Host, arguments: &str, done: u64) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let completion = host.call(GUEST, arguments).await;
    let taken = started.elapsed();
    let answer = completion.outcome.shown().map(|shown| shown.text());
    ensure!(answer.as_deref() == Some(done.to_string().as_str()), "the guest answered {answer:?}");
    Ok(taken)
}

async fn time_floor(
    floor: &Floor,
    root: &Path,
    arguments: &str,
    done: u64,
) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let answer = floor.call_with_directory_ambient(root, "/data", GUEST, arguments).await;
    let taken = started.elapsed();
    let answer = answer.map_err(|reason| anyhow!(reason))?;
    ensure!(answer.as_deref() == Some(done.to_string().as_str()), "the guest answered {answer:?}");
    Ok(taken)
}
