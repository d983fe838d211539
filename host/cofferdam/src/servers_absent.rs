//! Replaces `servers` in builds without MCP, in which a configuration with servers is rejected when
//! it is read.

use std::path::PathBuf;

use crate::Result;
use crate::config::ConfigFile;

pub(crate) fn are_named(_file: &ConfigFile) -> bool {
    false
}

pub(crate) fn is_named(_file: &ConfigFile, _name: &str) -> bool {
    false
}

pub(crate) fn check(_file: &ConfigFile) -> Result<()> {
    Ok(())
}

pub(crate) fn deciding_files(_file: &ConfigFile) -> Vec<PathBuf> {
    Vec::new()
}
