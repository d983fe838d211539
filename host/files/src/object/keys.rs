//! Converts paths to keys and back.
//!
//! The key of a path is `<prefix>/<path>`, byte for byte: nothing is encoded, and a path is never
//! "cleaned" into another one. Names of the store's own objects start with the reserved prefix, so
//! that no path denotes them.

use std::hash::{BuildHasher as _, RandomState};

use object_store::path::Path;

use crate::path::RESERVED_PREFIX;
use crate::{FileError, StorePath};

/// Name of the object that keeps an empty directory (`FILE-12`).
const MARKER: &str = ".~cofferdam-directory";
/// Prefix of the keys of copies that a change keeps until it is over.
const STAGED: &str = ".~cofferdam.staged-";

/// A key without the prefix of the store: a path, or a name that no path denotes.
pub(super) type Key = String;

/// Location of a store in its bucket.
#[derive(Debug, Clone, Default)]
pub(super) struct Keys {
    prefix: Path,
}

impl Keys {
    /// Creates the keys below `prefix`, or those of the whole bucket if it is empty.
    pub(super) fn below(prefix: &str) -> Result<Self, object_store::path::Error> {
        Ok(Self { prefix: Path::parse(prefix)? })
    }

    /// Returns the location of the object with the given key.
    pub(super) fn location(&self, key: &str) -> Result<Path, FileError> {
        let text = match (self.prefix.as_ref(), key) {
            ("", key) => key.to_owned(),
            (prefix, "") => prefix.to_owned(),
            (prefix, key) => format!("{prefix}/{key}"),
        };
        Path::parse(text)
            .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidInput, error).into())
    }

    /// Returns the key of an object, unless it is outside of the store.
    pub(super) fn key<'l>(&self, location: &'l Path) -> Option<&'l str> {
        match self.prefix.as_ref() {
            "" => Some(location.as_ref()),
            prefix => location.as_ref().strip_prefix(prefix)?.strip_prefix('/'),
        }
    }
}

/// Returns the key of the object that keeps `directory` when it is empty.
pub(super) fn marker(directory: &StorePath) -> Key {
    if directory.is_root() { MARKER.to_owned() } else { format!("{directory}/{MARKER}") }
}

/// Returns whether a key is reserved for the store's own objects.
pub(super) fn is_reserved(key: &str) -> bool {
    key.rsplit('/').next().is_some_and(|name| name.starts_with(RESERVED_PREFIX))
}

/// Returns a hidden key in the root that no other host uses.
pub(super) fn stage() -> Key {
    format!("{STAGED}{}", unique())
}

pub(super) fn is_stage(key: &str) -> bool {
    key.starts_with(STAGED)
}

/// Returns the part of `key` after `directory`, if the key is below it.
pub(super) fn rest<'k>(key: &'k str, directory: &str) -> Option<&'k str> {
    if directory.is_empty() { Some(key) } else { key.strip_prefix(directory)?.strip_prefix('/') }
}

/// Returns a string that no other call returns, on no other machine. It need not be hard to guess.
pub(super) fn unique() -> String {
    let half = |number: u8| RandomState::new().hash_one((number, std::process::id()));
    format!("{:016x}{:016x}", half(0), half(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_path_byte_for_byte() {
        for (prefix, expected) in [("", "a%2e/b c/é~#"), ("team/x", "team/x/a%2e/b c/é~#")] {
            let keys = Keys::below(prefix).unwrap();
            let location = keys.location("a%2e/b c/é~#").unwrap();
            assert_eq!(location.as_ref(), expected);
            assert_eq!(keys.key(&location), Some("a%2e/b c/é~#"));
        }
    }

    #[test]
    fn what_is_beside_the_prefix_is_outside() {
        let keys = Keys::below("team").unwrap();
        for outside in ["team", "team2/a", "other/team/a"] {
            assert_eq!(keys.key(&Path::parse(outside).unwrap()), None, "{outside}");
        }
        assert!(Keys::below("a/../b").is_err());
    }

    #[test]
    fn unique_texts_differ() {
        assert_ne!(unique(), unique());
    }
}
