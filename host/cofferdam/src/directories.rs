//! Directories of the user.

use std::path::{Path, PathBuf};

use crate::error::Context as _;
use etcetera::BaseStrategy;

/// Returns the user's private directory for data that is kept between runs: tokens and remembered
/// grants.
pub(crate) fn state() -> crate::Result<PathBuf> {
    let base = etcetera::choose_base_strategy().context("the home directory is not known")?;
    Ok(base.state_dir().unwrap_or_else(|| base.data_dir()).join("cofferdam"))
}

/// Creates a directory that only the user may access.
pub(crate) fn make_private(directory: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(directory)
}
