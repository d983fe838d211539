//! `cofferdam cache`: the directory of compiled plugins.

use std::path::Path;

use cofferdam_engine::cache::{PruneReport, prune_ambient};
use serde_json::json;

use crate::args::{CacheCommand, Global};
use crate::exit::{Exit, UsageError};
use crate::{host, print};

pub(crate) fn run(global: &Global, command: &CacheCommand) -> anyhow::Result<Exit> {
    let Some(directory) = host::engine_options(global).cache.path()? else {
        return Err(UsageError("there is no cache with --no-cache".to_owned()).into());
    };
    let (bytes_max, is_json) = match command {
        CacheCommand::Dir => {
            print::result(&directory.display().to_string())?;
            return Ok(Exit::Ok);
        }
        CacheCommand::Prune(args) => (args.max_size << 20, args.json),
        CacheCommand::Clean(args) => (0, args.json),
    };
    let report = prune(&directory, bytes_max)?;
    let PruneReport { files, bytes, bytes_left, .. } = report;
    if is_json {
        let report = json!({"files": files, "bytes": bytes, "bytes_left": bytes_left});
        print::result(&report.to_string())?;
    } else {
        let files = print::counted(usize::try_from(files).unwrap_or(usize::MAX), "file");
        let (bytes, left) = (print::bytes(bytes), print::bytes(bytes_left));
        print::note(&format!("removed {files} ({bytes}); {left} left in {}", directory.display()));
    }
    Ok(Exit::Ok)
}

fn prune(directory: &Path, bytes_max: u64) -> anyhow::Result<PruneReport> {
    // Opening a cache creates it.
    if !directory.is_dir() {
        return Ok(PruneReport::default());
    }
    Ok(prune_ambient(directory, bytes_max)?)
}
