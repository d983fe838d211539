//! `store`: a call that reads one small file of a mounted directory, against raw wasmtime with a
//! preopened directory.
//!
//! Ours is a transaction: an overlay over the store, guarded, that has nothing to commit. The
//! reference opens the directory for the guest as any embedder does.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use cofferdam_engine::Mount;
use cofferdam_engine::floor::Floor;
use cofferdam_files::{DirectoryOptions, DirectoryStore, FileStore};
use cofferdam_tests::{Host, guest};
use cofferdam_tool::{FileAccess, MountName};

use crate::call_floor;
use crate::effort::Effort;
use crate::measure::Measure;
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "store";
const GUEST: &str = "files";
const ARGUMENTS: &str = r#"{"do":"read","from":"/data/notes/today.txt"}"#;
const ROUNDS: usize = 40;
const CALLS_PER_ROUND: u32 = 200;
const FILE_BYTES: usize = 1024;

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let root = tempfile::tempdir()?;
    std::fs::create_dir(root.path().join("notes"))?;
    std::fs::write(root.path().join("notes/today.txt"), "x".repeat(FILE_BYTES))?;
    let host = host(root.path()).await?;
    let component = std::fs::read(guest(GUEST)).context("the guest cannot be read")?;
    let floor = Floor::new(&host.engine, &component).map_err(|reason| anyhow!(reason))?;
    let calls = effort.times(CALLS_PER_ROUND);
    let ours = async || time_ours(&host, calls).await;
    let reference = async || time_floor(&floor, root.path(), calls).await;
    let ratio = Ratio::new(format!("{NAME}, a call reads one small file"));
    Ok(vec![ratio.alternate(effort, ROUNDS, ours, reference).await?.into()])
}

async fn host(root: &Path) -> anyhow::Result<Host> {
    let store: Arc<dyn FileStore> =
        Arc::new(DirectoryStore::open_ambient(root, DirectoryOptions::default())?);
    let mut host = call_floor::empty_host();
    host.grants.mounts = vec![Mount::new(MountName::new("data")?, store, FileAccess::ReadWrite)];
    host.load(GUEST).await;
    Ok(host)
}

async fn time_ours(host: &Host, calls: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..calls {
        let completion = host.call(GUEST, ARGUMENTS).await;
        let length = completion.outcome.shown().map(|shown| shown.text().len());
        ensure!(length == Some(FILE_BYTES), "a measured call read {length:?} bytes");
    }
    Ok(started.elapsed() / calls)
}

async fn time_floor(floor: &Floor, root: &Path, calls: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..calls {
        let text = floor.call_with_directory_ambient(root, "/data", GUEST, ARGUMENTS).await;
        let length = text.map_err(|reason| anyhow!(reason))?.map(|text| text.len());
        ensure!(length == Some(FILE_BYTES), "a measured call read {length:?} bytes");
    }
    Ok(started.elapsed() / calls)
}
