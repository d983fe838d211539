//! Record of one component.

use std::path::Path;

use cofferdam_tool::declaration::SerializedTool;
use cofferdam_tool::permission::SerializedPermissions;
use serde::{Deserialize, Serialize};

use super::identity::FileIdentity;
use crate::command::CommandTools;
use crate::load::component::MANIFEST_EXTENSION;

/// Component and its manifests at the time they were read, and the result of reading them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ComponentRecord {
    pub(crate) files: ComponentFiles,
    /// True if the options had an instruction budget, so that the code counts instructions.
    pub(crate) is_counting: bool,
    pub(crate) digest: [u8; 32],
    pub(crate) component_bytes: u64,
    /// Imports, one per line: one string is parsed faster than many. The host knows all of these
    /// names.
    pub(crate) imports: String,
    /// Permissions and limits that the manifests ask for.
    pub(crate) asked: SerializedPermissions,
    /// Icons that the manifests name.
    pub(crate) icons: Vec<String>,
    /// Tools of a command.
    pub(crate) commands: CommandTools,
    pub(crate) tools: Vec<SerializedTool>,
}

/// Versions of the files of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ComponentFiles {
    component: FileIdentity,
    /// Manifest next to the component, if there is one.
    manifest: Option<FileIdentity>,
}

impl ComponentFiles {
    /// Returns the current versions of the files. Returns `None` if the component is missing, if
    /// the component or an existing manifest next to it is not a regular file, or if the system
    /// does not distinguish versions.
    pub(crate) fn stat_ambient(component: &Path) -> Option<Self> {
        let manifest = component.with_extension(MANIFEST_EXTENSION);
        let component = FileIdentity::of_ambient(component)?;
        Some(Self { component, manifest: FileIdentity::of_any_ambient(&manifest)? })
    }

    /// Returns true if any later change results in different versions.
    pub(crate) fn are_quiescent(&self) -> bool {
        self.component.is_quiescent()
            && self.manifest.is_none_or(|manifest| manifest.is_quiescent())
    }

    #[cfg(test)]
    pub(super) fn of(component: FileIdentity, manifest: Option<FileIdentity>) -> Self {
        Self { component, manifest }
    }
}

impl ComponentRecord {
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
