//! Branches and tags.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::error::Error;
use crate::id::Id;
use crate::repository::Repository;

/// Maximum number of references that point to another one.
const LINKS_MAX: usize = 5;

/// Maximum depth of names.
const DEPTH_MAX: usize = 16;

/// Maximum length of `packed-refs` in bytes.
const PACKED_BYTES_MAX: u64 = 16 << 20;

impl Repository {
    /// Returns the object that a reference points to, given its full name such as
    /// `refs/heads/main`.
    pub(crate) fn reference(&self, name: &str) -> Result<Option<Id>, Error> {
        let mut name = name.to_owned();
        for _ in 0..LINKS_MAX {
            if !is_valid(&name) {
                return Ok(None);
            }
            match fs::read_to_string(self.folder.join(&name)) {
                Ok(content) => match content.trim().strip_prefix("ref:") {
                    Some(target) => name = target.trim().to_owned(),
                    None => {
                        let id = Id::from_hex(content.trim().as_bytes());
                        return id.map(Some).ok_or(Error::Damaged("a reference is invalid"));
                    }
                },
                Err(_) => return Ok(self.packed()?.remove(&name)),
            }
        }
        Err(Error::Damaged("a reference points to itself"))
    }

    /// Returns the full name of the branch that `HEAD` points to, or none if it is a commit.
    pub(crate) fn head_branch(&self) -> Option<String> {
        let content = fs::read_to_string(self.folder.join("HEAD")).ok()?;
        content.trim().strip_prefix("ref:").map(|name| name.trim().to_owned())
    }

    /// Returns all references below `refs/`, by full name.
    pub(crate) fn references(&self) -> Result<BTreeMap<String, Id>, Error> {
        let mut found = self.packed()?;
        let mut names = Vec::new();
        list(&self.folder, "refs", 0, &mut names);
        for name in names {
            if let Ok(Some(id)) = self.reference(&name) {
                found.insert(name, id);
            }
        }
        Ok(found)
    }

    fn packed(&self) -> Result<BTreeMap<String, Id>, Error> {
        let path = self.folder.join("packed-refs");
        let Ok(metadata) = fs::metadata(&path) else { return Ok(BTreeMap::new()) };
        if metadata.len() > PACKED_BYTES_MAX {
            return Err(Error::TooLarge { bytes: metadata.len() });
        }
        let content = fs::read(&path)?;
        let content = String::from_utf8_lossy(&content);
        Ok(content
            .lines()
            .filter(|line| !line.starts_with(['#', '^']))
            .filter_map(|line| {
                let (id, name) = line.split_once(' ')?;
                Some((name.to_owned(), Id::from_hex(id.as_bytes())?))
            })
            .collect())
    }
}

fn is_valid(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('/')
        && !name.contains("..")
        && !name.contains(|it: char| it.is_control())
}

/// Adds the names of all files below `name`.
fn list(folder: &Path, name: &str, depth: usize, names: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder.join(name)) else { return };
    for entry in entries.flatten() {
        let path = format!("{name}/{}", entry.file_name().to_string_lossy());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => list(folder, &path, depth + 1, names),
            Ok(kind) if kind.is_file() => names.push(path),
            _ => {}
        }
    }
}
