//! What is remembered of one component.

use std::path::Path;

use cofferdam_tool::KeptTool;
use serde::{Deserialize, Serialize};

use super::identity::FileIdentity;

/// A component and its manifests as they were when they were read, and what came of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) files: Files,
    /// Whether its code was to count instructions.
    pub(crate) is_counting: bool,
    pub(crate) digest: [u8; 32],
    pub(crate) component_bytes: u64,
    /// The imports, a line each: one text is read faster than many. All are names that the host knows.
    pub(crate) imports: String,
    /// The manifest beside the component.
    pub(crate) beside: Option<String>,
    /// The manifest inside of it.
    pub(crate) embedded: Option<String>,
    pub(crate) tools: Vec<KeptTool>,
}

/// The files that a plugin is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Files {
    pub(crate) component: FileIdentity,
    /// The manifest beside it, if there is one.
    pub(crate) manifest: Option<FileIdentity>,
}

impl Files {
    /// The files that there are now; `None` if one of them cannot be read as a file.
    pub(crate) fn of_ambient(component: &Path, manifest: &Path) -> Option<Self> {
        let component = FileIdentity::of_ambient(component)?;
        Some(Self { component, manifest: FileIdentity::of_any_ambient(manifest)? })
    }

    /// Whether any change from now on shows.
    pub(crate) fn are_settled(&self) -> bool {
        self.component.is_settled() && self.manifest.is_none_or(|manifest| manifest.is_settled())
    }
}

impl Record {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        match postcard::take_from_bytes(bytes) {
            Ok((record, [])) => Some(record),
            _ => None,
        }
    }

    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        postcard::to_allocvec(self).ok()
    }
}
