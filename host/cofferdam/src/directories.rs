//! Directories of the user.

use std::path::{Path, PathBuf};

use crate::error::Context as _;
use etcetera::BaseStrategy;

/// Name of this program's directory in those of the user.
const PROGRAM: &str = "cofferdam";

/// Returns the user's private directory for data that outlives a run: tokens and remembered
/// grants.
pub(crate) fn state() -> crate::Result<PathBuf> {
    let base = base()?;
    if cfg!(windows) {
        // Not the data directory, which Windows copies to other machines with the user's profile.
        return Ok(base.cache_dir().join(PROGRAM).join("state"));
    }
    Ok(base.state_dir().unwrap_or_else(|| base.data_dir()).join(PROGRAM))
}

/// Returns the user's directory for compiled code.
pub(crate) fn cache() -> crate::Result<PathBuf> {
    let directory = base()?.cache_dir().join(PROGRAM);
    // On Windows, the same directory holds the state.
    Ok(if cfg!(windows) { directory.join("cache") } else { directory })
}

fn base() -> crate::Result<impl BaseStrategy> {
    etcetera::choose_base_strategy().context("the home directory is not known")
}

/// Creates a directory that only the user may access.
pub(crate) fn make_private(directory: &Path) -> std::io::Result<()> {
    cofferdam_engine::sys::permissions::create_private_directory_ambient(directory)
}
