//! What is remembered of one component.

use std::path::Path;

use cofferdam_tool::{KeptAsked, KeptTool};
use serde::{Deserialize, Serialize};

use super::identity::FileIdentity;
use crate::load::component::MANIFEST_EXTENSION;

/// A component and its manifests as they were when they were read, and what came of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) files: ComponentFiles,
    /// Whether its code was to count instructions.
    pub(crate) is_counting: bool,
    pub(crate) digest: [u8; 32],
    pub(crate) component_bytes: u64,
    /// The imports, a line each: one text is read faster than many. All are names that the host knows.
    pub(crate) imports: String,
    /// What its manifests ask for.
    pub(crate) asked: KeptAsked,
    /// The pictures that they name.
    pub(crate) icons: Vec<String>,
    pub(crate) tools: Vec<KeptTool>,
}

/// Which version there is of the files that a plugin is made of, without reading them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentFiles {
    component: FileIdentity,
    /// The manifest beside it, if there is one.
    manifest: Option<FileIdentity>,
}

impl ComponentFiles {
    /// The files that there are now. `None` if the component is no file, if there is something in the manifest's place that
    /// is none, or if the system does not say enough.
    #[must_use]
    pub fn look_ambient(component: &Path) -> Option<Self> {
        let manifest = component.with_extension(MANIFEST_EXTENSION);
        let component = FileIdentity::of_ambient(component)?;
        Some(Self { component, manifest: FileIdentity::of_any_ambient(&manifest)? })
    }

    /// Whether any change from now on shows.
    pub(crate) fn are_settled(&self) -> bool {
        self.component.is_settled() && self.manifest.is_none_or(|manifest| manifest.is_settled())
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

    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        postcard::to_allocvec(self).ok()
    }
}
