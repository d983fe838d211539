//! Replaces `skill_tools` in builds without skills, in which a configuration with skills is
//! rejected when it is read.

use std::path::PathBuf;

use crate::Selection;
use crate::config::ConfigFile;

pub(crate) fn are_named(_selection: &Selection, _file: Option<&ConfigFile>) -> bool {
    false
}

pub(crate) fn directories(_selection: &Selection, _file: Option<&ConfigFile>) -> Vec<PathBuf> {
    Vec::new()
}
