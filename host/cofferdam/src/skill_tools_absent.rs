//! Stands in for skills where they are left out. A configuration that names some is refused when it
//! is read.

use std::path::PathBuf;

use crate::Selection;
use crate::config::ConfigFile;

pub(crate) fn are_named(_selection: &Selection, _file: Option<&ConfigFile>) -> bool {
    false
}

pub(crate) fn directories(_selection: &Selection, _file: Option<&ConfigFile>) -> Vec<PathBuf> {
    Vec::new()
}
