//! `--files`: the store that the file-access tools work on.

use std::path::PathBuf;

use cofferdam_files::{FileAccessOptions, FileAccessTools};
use cofferdam_tool::{FileAccess, MountName};

use crate::exit::UsageError;
use crate::{offer, stores};

/// How the store is called where nobody says otherwise.
const NAME: &str = "workspace";

const FORM: &str = "write --files STORE or --files NAME=STORE, where STORE is a directory, an address like s3://bucket/prefix, \
                    or `memory`; with `:ro` at the end for reading only";

/// Reads `[NAME=]STORE[:ro|:rw]` and opens the store. It must not hold one of `deciding`, the files that decide about
/// grants, unless it is only read: a model could otherwise grant its tools whatever it wants.
pub(crate) fn tools(text: &str, deciding: &[PathBuf]) -> anyhow::Result<FileAccessTools> {
    let (name, place) = match text.split_once('=') {
        Some((name, place)) if !name.contains(['/', '.', ':']) => (name, place),
        _ => (NAME, text),
    };
    let name = MountName::new(name).map_err(|error| usage(format!("{error}: {FORM}")))?;
    let (place, access) = match place.rsplit_once(':') {
        Some((place, "ro")) => (place, FileAccess::ReadOnly),
        Some((place, "rw")) => (place, FileAccess::ReadWrite),
        _ => (place, FileAccess::ReadWrite),
    };
    let store =
        stores::open_typed(place, access).map_err(|error| usage(format!("--files: {error:#}; {FORM}")))?;
    offer::check_store(&format!("the file store `{name}`"), &*store, access, &offer::resolved(deciding))?;
    let options =
        FileAccessOptions { is_read_only: access == FileAccess::ReadOnly, ..FileAccessOptions::default() };
    Ok(FileAccessTools::new(name.as_str(), store, options)?)
}

fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}
