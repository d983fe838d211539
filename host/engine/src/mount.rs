//! What a plugin is given: file stores under names of their own.

use std::fmt;
use std::sync::Arc;

use cofferdam_files::DirectoryStore;

use crate::NetworkGrants;

/// Everything that a person gives to a plugin. The default is nothing.
#[derive(Clone, Default, Debug)]
pub struct Grants {
    /// Directories that the guest sees as `/<name>`.
    pub mounts: Vec<Mount>,
    /// What the guest may do on the network.
    pub network: Arc<NetworkGrants>,
}

/// A file store under a name.
#[derive(Clone)]
pub struct Mount {
    /// The guest sees the store as the directory `/<name>`.
    pub name: MountName,
    /// The store behind it.
    pub store: Arc<DirectoryStore>,
    /// What the guest may do with it.
    pub access: Access,
}

/// What a guest may do with a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read and list.
    ReadOnly,
    /// Read, list, create, change and delete.
    ReadWrite,
}

/// The name of a mount: 1 to 64 characters out of `A-Z a-z 0-9 _ -`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountName(String);

/// Why a text is not the name of a mount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a name for a mount: use 1 to 64 characters out of A-Z a-z 0-9 _ -")]
pub struct InvalidMountName {
    name: String,
}

impl MountName {
    /// Checks `name` against length and alphabet.
    ///
    /// # Errors
    /// [`InvalidMountName`] when a rule is broken.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidMountName> {
        let name = name.into();
        let fits = (1..=64).contains(&name.len());
        if fits && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')) {
            Ok(Self(name))
        } else {
            Err(InvalidMountName { name })
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path under which a guest finds the mount.
    pub(crate) fn guest_path(&self) -> String {
        format!("/{}", self.0)
    }
}

impl fmt::Display for MountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_paths() {
        for good in ["data", "a", "my-files_2"] {
            assert!(MountName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a/b", "..", ".", "a b", "é", &"x".repeat(65)] {
            assert!(MountName::new(bad).is_err(), "{bad:?}");
        }
    }
}
