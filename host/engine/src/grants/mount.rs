//! File stores under names of their own.

use std::fmt;
use std::sync::Arc;

use cofferdam_files::{FileStore, Sharing};
use cofferdam_tool::{FileAccess, MountName};

/// A file store under a name.
#[derive(Clone)]
pub struct Mount {
    /// The guest sees the store as the directory `/<name>`.
    pub name: MountName,
    /// The store behind it.
    pub store: Arc<dyn FileStore>,
    /// Access that the guest has.
    pub access: FileAccess,
    /// Sharing between sessions: all see the whole store, or each has a directory of its own in it.
    pub sharing: Sharing,
}

impl Mount {
    /// A mount that all sessions share.
    pub fn new(name: MountName, store: Arc<dyn FileStore>, access: FileAccess) -> Self {
        Self { name, store, access, sharing: Sharing::Shared }
    }
}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mount")
            .field("name", &self.name)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
