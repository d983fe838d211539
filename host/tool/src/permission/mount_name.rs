//! Names under which a plugin sees file stores.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Name of a mount: 1 to 64 characters from `A-Z a-z 0-9 _ -`. A guest finds the store at
/// `/<name>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MountName(String);

/// Error returned for a string that is not a valid mount name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not a name for a mount: use 1 to 64 characters out of A-Z a-z 0-9 _ -")]
pub struct InvalidMountName {
    name: String,
}

impl MountName {
    /// Validates length and alphabet of `name`.
    ///
    /// # Errors
    /// [`InvalidMountName`] if `name` breaks a rule.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidMountName> {
        let name = name.into();
        let fits = (1..=64).contains(&name.len());
        if fits && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')) {
            Ok(Self(name))
        } else {
            Err(InvalidMountName { name })
        }
    }

    /// Returns the name as a string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the path of the mount in the guest.
    #[must_use]
    pub fn guest_path(&self) -> String {
        format!("/{}", self.0)
    }
}

impl fmt::Display for MountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for MountName {
    type Error = InvalidMountName;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(name)
    }
}

impl From<MountName> for String {
    fn from(name: MountName) -> Self {
        name.0
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
