//! JSON files in the user's state directory, which only the user may read.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::config::edit::replace_private;
use crate::directories;
use crate::error::Context as _;

/// Maximum bytes of a file.
const BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Reads the file at `path`, or returns the default if it does not exist. `remedy` says in an error
/// what the operator can do.
pub(crate) fn read<T: DeserializeOwned + Default>(path: &Path, remedy: &str) -> crate::Result<T> {
    let unreadable = || format!("{} cannot be read; {remedy}", path.display());
    match cofferdam_files::read_named_text_ambient(path, BYTES_MAX) {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(T::default())
        }
        read => serde_json::from_str(&read.with_context(unreadable)?).with_context(unreadable),
    }
}

/// Writes the file at `path`, and creates its directory.
pub(crate) fn save(path: &Path, content: &impl Serialize) -> crate::Result<()> {
    let unwritable = || format!("{} cannot be written", path.display());
    let mut text = serde_json::to_vec_pretty(content).with_context(unwritable)?;
    text.push(b'\n');
    if let Some(directory) = path.parent() {
        directories::make_private(directory).with_context(unwritable)?;
    }
    replace_private(path, &text).with_context(unwritable)
}
