//! `cofferdam cache`: the directory of compiled plugins, and fetched plugins without a user.

use std::fmt::Display;
use std::path::Path;

use cofferdam::artifacts::{self, StorePruning};
use cofferdam::json;
use cofferdam_engine::cache::{PruneReport, prune_ambient};
use serde_json::{Value, json};

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
    let compiled = prune(&directory, bytes_max)?;
    let mut report =
        removal(compiled.files, compiled.bytes, compiled.bytes_left, &directory.display(), is_json);
    if let CacheCommand::Prune(_) = command {
        let StorePruning { files, bytes, bytes_left } = artifacts::prune_ambient()?;
        let fetched = removal(files, bytes, bytes_left, &"the store of fetched plugins", is_json);
        report = json::with(report, json!({"artifacts": fetched}));
    }
    if is_json {
        print::result(&report.to_string())?;
    }
    Ok(Exit::Ok)
}

/// Returns the result of a removal in JSON. Prints it unless JSON is wanted.
fn removal(
    files: u64,
    bytes: u64,
    bytes_left: u64,
    directory: &dyn Display,
    is_json: bool,
) -> Value {
    if !is_json {
        let files = print::counted(usize::try_from(files).unwrap_or(usize::MAX), "file");
        let (bytes, left) = (print::bytes(bytes), print::bytes(bytes_left));
        print::note(&format!("removed {files} ({bytes}); {left} left in {directory}"));
    }
    json!({"files": files, "bytes": bytes, "bytes_left": bytes_left})
}

fn prune(directory: &Path, bytes_max: u64) -> anyhow::Result<PruneReport> {
    // Opening a cache creates it.
    if !directory.is_dir() {
        return Ok(PruneReport::default());
    }
    Ok(prune_ambient(directory, bytes_max)?)
}
