//! `throughput`: a large file read and written in steps through the overlay of a call, against the
//! same steps on a file of the system.
//!
//! The reference works like a preopened directory of wasmtime-wasi: every step runs in the blocking
//! pool and moves its bytes there. Neither side flushes to disk.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use cofferdam_files::{
    Budget, DirectoryOptions, DirectoryStore, FileStore, OpenMode, Overlay, Quota, StorePath,
};
use tokio::task::spawn_blocking;

use crate::effort::Effort;
use crate::measure::Measure;
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "throughput";
const ROUNDS: usize = 20;
const FILE_BYTES: u64 = 64 << 20;

/// Name of the row, bytes of a step, whether it writes.
const ROWS: [(&str, u64, bool); 4] = [
    ("throughput, reading 64 KiB at a time", 64 << 10, false),
    ("throughput, reading 1 MiB at a time", 1 << 20, false),
    ("throughput, writing 64 KiB at a time", 64 << 10, true),
    ("throughput, writing 1 MiB at a time", 1 << 20, true),
];

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let root = tempfile::tempdir()?;
    std::fs::create_dir_all(root.path().join("some/where"))?;
    std::fs::write(root.path().join("some/where/read"), vec![7; usize::try_from(FILE_BYTES)?])?;
    let quota = Quota { bytes_max: u64::MAX, file_bytes_max: u64::MAX, ..Quota::default() };
    let options = DirectoryOptions { quota, is_durable: false, ..DirectoryOptions::default() };
    let store: Arc<dyn FileStore> = Arc::new(DirectoryStore::open_ambient(root.path(), options)?);
    let mut ratios = Vec::new();
    for (name, step, writes) in ROWS {
        let ours = async || {
            if writes { write_ours(&store, step).await } else { read_ours(&store, step).await }
        };
        let reference = async || match writes {
            true => write_reference(root.path(), step).await,
            false => read_reference(root.path(), step).await,
        };
        ratios.push(Ratio::new(name).alternate(effort, ROUNDS, ours, reference).await?.into());
    }
    Ok(ratios)
}

async fn read_ours(store: &Arc<dyn FileStore>, step: u64) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let overlay = Overlay::new(Arc::clone(store), &Budget::new(FILE_BYTES * 2));
    let file = overlay.open(&StorePath::file("some/where/read")?, OpenMode::default()).await?;
    let mut position = 0;
    loop {
        let content = file.read_at(position, step).await?;
        if content.is_empty() {
            break;
        }
        position += u64::try_from(content.len())?;
    }
    ensure!(position == FILE_BYTES, "{position} bytes read");
    Ok(started.elapsed())
}

async fn read_reference(root: &Path, step: u64) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let file = Arc::new(File::open(root.join("some/where/read"))?);
    let (mut position, step) = (0, usize::try_from(step)?);
    loop {
        let file = Arc::clone(&file);
        let content = spawn_blocking(move || {
            let mut content = vec![0; step];
            let length = file.read_at(&mut content, position)?;
            content.truncate(length);
            std::io::Result::Ok(content)
        })
        .await??;
        if content.is_empty() {
            break;
        }
        position += u64::try_from(content.len())?;
    }
    ensure!(position == FILE_BYTES, "{position} bytes read");
    Ok(started.elapsed())
}

async fn write_ours(store: &Arc<dyn FileStore>, step: u64) -> anyhow::Result<Duration> {
    let data = vec![7; usize::try_from(step)?];
    let started = Instant::now();
    let overlay = Overlay::new(Arc::clone(store), &Budget::new(FILE_BYTES * 2));
    let mode = OpenMode { writes: true, creates: true, truncates: true, ..OpenMode::default() };
    let file = overlay.open(&StorePath::file("some/where/written")?, mode).await?;
    for number in 0..FILE_BYTES / step {
        file.write_at(number * step, &data).await?;
    }
    drop(file);
    overlay.commit_changes().await?;
    Ok(started.elapsed())
}

async fn write_reference(root: &Path, step: u64) -> anyhow::Result<Duration> {
    let data = vec![7; usize::try_from(step)?];
    let started = Instant::now();
    let file = Arc::new(File::create(root.join("some/where/reference"))?);
    for number in 0..FILE_BYTES / step {
        let (file, data) = (Arc::clone(&file), data.clone());
        spawn_blocking(move || file.write_all_at(&data, number * step)).await??;
    }
    Ok(started.elapsed())
}
