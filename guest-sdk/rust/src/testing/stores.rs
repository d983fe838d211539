//! Stores in memory with the operations of `cofferdam:plugin/files`.

use std::collections::{BTreeMap, BTreeSet};

use globset::{GlobBuilder, GlobMatcher};
use regex::{Regex, RegexBuilder};

use crate::files::{Entry, Error, GrantedStore, Kind, Match, SearchMatches, Stat};

/// All stores of a host, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stores(BTreeMap<String, Store>);

#[derive(Debug, Clone, Default)]
struct Store {
    is_read_only: bool,
    files: BTreeMap<String, Vec<u8>>,
    /// All directories except the root, including empty ones.
    directories: BTreeSet<String>,
}

impl Stores {
    pub(crate) fn add(&mut self, name: &str) {
        self.0.entry(name.to_owned()).or_default();
    }

    pub(crate) fn protect(&mut self, name: &str) {
        self.0.entry(name.to_owned()).or_default().is_read_only = true;
    }

    pub(crate) fn granted(&self) -> Vec<GrantedStore> {
        let granted = |(name, store): (&String, &Store)| GrantedStore {
            name: name.clone(),
            writable: !store.is_read_only,
        };
        self.0.iter().map(granted).collect()
    }

    fn store(&self, name: &str) -> Result<&Store, Error> {
        self.0.get(name).ok_or(Error::UnknownStore)
    }

    /// Returns a store for a change.
    fn writable(&mut self, name: &str) -> Result<&mut Store, Error> {
        let store = self.0.get_mut(name).ok_or(Error::UnknownStore)?;
        if store.is_read_only { Err(Error::ReadOnly) } else { Ok(store) }
    }

    pub(crate) fn stat(&self, store: &str, path: &str) -> Result<Stat, Error> {
        let store = self.store(store)?;
        check(path, true)?;
        if let Some(content) = store.files.get(path) {
            return Ok(Stat {
                kind: Kind::File,
                bytes: content.len().try_into().unwrap_or(u64::MAX),
            });
        }
        let is_directory = path.is_empty() || store.directories.contains(path);
        if is_directory {
            Ok(Stat { kind: Kind::Directory, bytes: 0 })
        } else {
            Err(Error::NotFound)
        }
    }

    pub(crate) fn read(
        &self,
        store: &str,
        path: &str,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, Error> {
        let store = self.store(store)?;
        check(path, false)?;
        let content = store.files.get(path).ok_or(Error::NotFound)?;
        let rest = content.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        let length = usize::try_from(length).unwrap_or(usize::MAX).min(rest.len());
        Ok(rest.get(..length).unwrap_or_default().to_vec())
    }

    pub(crate) fn write(
        &mut self,
        store: &str,
        path: &str,
        content: &[u8],
        replaces: bool,
    ) -> Result<(), Error> {
        let store = self.writable(store)?;
        check(path, false)?;
        if store.directories.contains(path) {
            return Err(Error::WrongType("a directory is there".to_owned()));
        }
        if !replaces && store.files.contains_key(path) {
            return Err(Error::AlreadyExists);
        }
        store.add_parents(path)?;
        store.files.insert(path.to_owned(), content.to_vec());
        Ok(())
    }

    pub(crate) fn delete(&mut self, store: &str, path: &str) -> Result<(), Error> {
        let store = self.writable(store)?;
        check(path, false)?;
        store.files.remove(path).map(drop).ok_or(Error::NotFound)
    }

    pub(crate) fn create_directory(&mut self, store: &str, path: &str) -> Result<(), Error> {
        let store = self.writable(store)?;
        check(path, false)?;
        if store.files.contains_key(path) {
            return Err(Error::WrongType("a file is there".to_owned()));
        }
        if store.directories.contains(path) {
            return Err(Error::AlreadyExists);
        }
        store.add_parents(path)?;
        store.directories.insert(path.to_owned());
        Ok(())
    }

    pub(crate) fn list(
        &self,
        store: &str,
        directory: &str,
        glob: Option<&str>,
        is_recursive: bool,
    ) -> Result<Vec<Entry>, Error> {
        let store = self.store(store)?;
        check(directory, true)?;
        let glob = glob.map(Glob::new).transpose()?;
        let is_wanted = |path: &str| {
            let name = below(path, directory)?;
            let is_direct = !name.contains('/');
            ((is_recursive || is_direct) && glob.as_ref().is_none_or(|glob| glob.matches(name)))
                .then(|| name.to_owned())
        };
        let entries = |paths: &mut dyn Iterator<Item = &String>, kind| -> Vec<Entry> {
            paths.filter_map(|path| Some(Entry { name: is_wanted(path)?, kind })).collect()
        };
        let mut all = entries(&mut store.directories.iter(), Kind::Directory);
        all.extend(entries(&mut store.files.keys(), Kind::File));
        Ok(all)
    }

    pub(crate) fn search(
        &self,
        store: &str,
        directory: &str,
        pattern: &Regex,
        glob: Option<&str>,
        is_recursive: bool,
    ) -> Result<SearchMatches, Error> {
        let contents = &self.store(store)?.files;
        let mut matches = Vec::new();
        for entry in self.list(store, directory, glob, is_recursive)? {
            let path = if directory.is_empty() {
                entry.name
            } else {
                format!("{directory}/{}", entry.name)
            };
            let text = contents.get(&path).and_then(|content| std::str::from_utf8(content).ok());
            let numbered = text.unwrap_or_default().lines().zip(1..);
            let lines: Vec<(u64, String)> = numbered
                .filter(|(line, _)| pattern.is_match(line))
                .map(|(line, number)| (number, line.to_owned()))
                .collect();
            if let Some((_, first)) = lines.first() {
                matches.push(Match { path, snippet: first.clone(), lines });
            }
        }
        matches.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(SearchMatches { matches, is_truncated: false })
    }
}

impl Store {
    fn add_parents(&mut self, path: &str) -> Result<(), Error> {
        let parents: Vec<_> =
            path.match_indices('/').filter_map(|(at, _)| path.get(..at)).collect();
        if parents.iter().any(|parent| self.files.contains_key(*parent)) {
            return Err(Error::WrongType("a file is above it".to_owned()));
        }
        self.directories.extend(parents.into_iter().map(str::to_owned));
        Ok(())
    }
}

/// Compiles the pattern of a query.
pub(crate) fn pattern(text: &str, is_case_sensitive: bool) -> Result<Regex, Error> {
    let built = RegexBuilder::new(text).case_insensitive(!is_case_sensitive).build();
    built.map_err(|error| Error::InvalidPattern(error.to_string()))
}

/// Glob that ignores case. Without `/`, it is matched against the last segment of a path.
struct Glob {
    matcher: GlobMatcher,
    is_of_names: bool,
}

impl Glob {
    fn new(text: &str) -> Result<Self, Error> {
        let built = GlobBuilder::new(text).case_insensitive(true).literal_separator(true).build();
        let glob = built.map_err(|error| Error::InvalidPattern(error.to_string()))?;
        Ok(Self { matcher: glob.compile_matcher(), is_of_names: !text.contains('/') })
    }

    fn matches(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        self.matcher.is_match(if self.is_of_names { name } else { path })
    }
}

/// Returns the part of a path below a directory.
fn below<'p>(path: &'p str, directory: &str) -> Option<&'p str> {
    if directory.is_empty() { Some(path) } else { path.strip_prefix(directory)?.strip_prefix('/') }
}

/// Checks the most important rules for paths; the host has more.
fn check(path: &str, may_be_root: bool) -> Result<(), Error> {
    if path.is_empty() && may_be_root {
        return Ok(());
    }
    let is_bad = |segment: &str| segment.is_empty() || matches!(segment, "." | "..");
    if path.split('/').any(is_bad)
        || path.contains([':', '\\'])
        || path.chars().any(char::is_control)
    {
        return Err(Error::InvalidPath(format!(
            "`{path}` is not a path: it is relative, with `/` between segments, and without `.`, \
             `..` and `:`"
        )));
    }
    Ok(())
}
