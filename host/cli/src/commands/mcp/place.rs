//! Where a typed store is: `memory`, an address, or a directory, with what may be done there.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::exit::UsageError;

/// A store as it was typed, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place<'t> {
    /// What stands before `=`.
    pub(super) name: Option<&'t str>,
    /// A directory, an address or `memory`.
    pub(super) store: &'t str,
    /// The suffix with its colon, or nothing.
    pub(super) access: &'t str,
}

impl<'t> Place<'t> {
    /// Takes `[NAME=]STORE[:ro|:rw|:create]` apart. A name has none of the characters of paths and addresses.
    pub(super) fn parse(text: &'t str) -> Self {
        let (name, rest) = match text.split_once('=') {
            Some((name, rest)) if !name.contains(['/', '.', ':']) => (Some(name), rest),
            _ => (None, text),
        };
        for access in [":ro", ":rw", ":create"] {
            if let Some(store) = rest.strip_suffix(access) {
                return Self { name, store, access };
            }
        }
        Self { name, store: rest, access: "" }
    }

    /// Whether the store is a directory of this machine.
    pub(super) fn is_directory(&self) -> bool {
        self.store != "memory" && !self.store.contains("://")
    }

    /// The same store wherever the reader works, as one types it.
    pub(super) fn absolute(&self) -> anyhow::Result<String> {
        if !self.is_directory() {
            return Ok(self.with_store(self.store));
        }
        Ok(self.with_store(&absolute(Path::new(self.store))?))
    }

    /// The same with another store.
    pub(super) fn with_store(&self, store: &str) -> String {
        let name = self.name.map(|name| format!("{name}=")).unwrap_or_default();
        format!("{name}{store}{}", self.access)
    }
}

/// A path of this machine that does not depend on where one is, as text.
pub(super) fn absolute(path: &Path) -> anyhow::Result<String> {
    let path = std::path::absolute(path).with_context(|| format!("{} has no place", path.display()))?;
    text(path)
}

/// A path as text, which is all that the files of hosts can hold.
pub(super) fn text(path: PathBuf) -> anyhow::Result<String> {
    path.into_os_string().into_string().map_err(|path| {
        UsageError(format!("the path {} is not UTF-8, and no host could be told it", path.display())).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_taken_apart() {
        let place = |name, store, access| Place { name, store, access };
        assert_eq!(Place::parse("data=./a:ro"), place(Some("data"), "./a", ":ro"));
        assert_eq!(Place::parse("./a=b"), place(None, "./a=b", ""));
        assert_eq!(Place::parse("s3://b/p:create"), place(None, "s3://b/p", ":create"));
        assert_eq!(Place::parse("x=s3://b/p").absolute().unwrap(), "x=s3://b/p");
        assert_eq!(Place::parse("x=memory:ro").absolute().unwrap(), "x=memory:ro");
        assert_eq!(Place::parse("x=/a:ro").absolute().unwrap(), "x=/a:ro");
    }
}
