//! The record of one component.

use std::path::Path;

use cofferdam_tool::declaration::KeptTool;
use cofferdam_tool::permission::KeptAsked;
use serde::{Deserialize, Serialize};

use super::identity::FileIdentity;
use crate::load::component::MANIFEST_EXTENSION;

/// A component and its manifests as they were when they were read, and the result of reading them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) files: ComponentFiles,
    /// True if the options had an instruction budget, so that the code counts instructions.
    pub(crate) is_counting: bool,
    pub(crate) digest: [u8; 32],
    pub(crate) component_bytes: u64,
    /// The imports, a line each: one string is read faster than many. All are names that the host
    /// knows.
    pub(crate) imports: String,
    /// The permissions and limits that its manifests ask for.
    pub(crate) asked: KeptAsked,
    /// The icons that they name.
    pub(crate) icons: Vec<String>,
    pub(crate) tools: Vec<KeptTool>,
}

/// Versions of the files of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ComponentFiles {
    component: FileIdentity,
    /// The manifest beside it, if there is one.
    manifest: Option<FileIdentity>,
}

impl ComponentFiles {
    /// Returns the versions of the files at this moment. `None` if the component or the manifest
    /// beside it is there and not a regular file, if the component is missing, or if the system
    /// does not tell versions apart.
    pub(crate) fn look_ambient(component: &Path) -> Option<Self> {
        let manifest = component.with_extension(MANIFEST_EXTENSION);
        let component = FileIdentity::of_ambient(component)?;
        Some(Self { component, manifest: FileIdentity::of_any_ambient(&manifest)? })
    }

    /// Returns true if any change from now on gives other versions.
    pub(crate) fn are_quiescent(&self) -> bool {
        self.component.is_quiescent()
            && self.manifest.is_none_or(|manifest| manifest.is_quiescent())
    }

    #[cfg(test)]
    pub(super) fn of(component: FileIdentity, manifest: Option<FileIdentity>) -> Self {
        Self { component, manifest }
    }
}

impl Record {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        match postcard::take_from_bytes(bytes) {
            Ok((record, [])) => Some(record),
            _ => None,
        }
    }

    pub(super) fn to_bytes(&self) -> Option<Vec<u8>> {
        postcard::to_allocvec(self).ok()
    }
}
