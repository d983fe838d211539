//! File stores under the names that guests see.

use std::fmt;
use std::sync::Arc;

use cofferdam_files::{FileStore, StoreSharing};
use cofferdam_tool::{FileAccess, MountName};

/// File store under a name.
#[derive(Clone)]
pub struct Mount {
    /// Name of the mount. The guest sees the store as the directory `/<name>`.
    pub name: MountName,
    /// Store behind the mount.
    pub store: Arc<dyn FileStore>,
    /// Access of the guest.
    pub access: FileAccess,
    /// Sharing between sessions: all sessions share the whole store, or each has its own directory
    /// in it.
    pub sharing: StoreSharing,
}

impl Mount {
    /// Creates a mount that all sessions share.
    pub fn new(name: MountName, store: Arc<dyn FileStore>, access: FileAccess) -> Self {
        Self { name, store, access, sharing: StoreSharing::Shared }
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
