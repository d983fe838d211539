//! A file store as a plain map, to compare others with. It shares no code with them.

use std::collections::BTreeMap;

use super::plan::{Operation, OutcomeText};
use crate::{Quota, Scope, WriteMode};

const ROOT: &str = "the root directory cannot be moved, replaced or removed.";
const NOT_EMPTY: &str = "this directory is not empty.";
const BELOW_FILE: &str = "a parent path is already a file. Choose a different path.";

/// Entries by path: content of a file, or `None` for a directory.
#[derive(Clone)]
pub(super) struct Model {
    quota: Quota,
    nodes: BTreeMap<String, Option<Vec<u8>>>,
}

impl Model {
    pub(super) fn new(quota: Quota) -> Self {
        Self { quota, nodes: BTreeMap::from([(String::new(), None)]) }
    }

    pub(super) fn apply(&mut self, operation: &Operation) -> OutcomeText {
        match operation {
            Operation::Write { path, content, mode } => self.write(path.as_str(), content, *mode),
            Operation::CreateDirectory { path } => self.create_directory(path.as_str()),
            Operation::Delete { path } => self.delete(path.as_str()),
            Operation::RemoveDirectory { path } => self.remove_directory(path.as_str()),
            Operation::Rename { from, to } => self.rename(from.as_str(), to.as_str()),
            Operation::Read { path } => {
                self.content(path.as_str()).map(|content| format!("{content:?}"))
            }
            Operation::Stat { path } => self.stat(path.as_str()),
            Operation::List { path, scope } => Ok(self.list(path.as_str(), *scope)),
        }
    }

    fn write(&mut self, path: &str, content: &[u8], mode: WriteMode) -> OutcomeText {
        let missing = self.missing_above(path)?;
        let old = match (self.nodes.get(path), mode) {
            (Some(None), _) => {
                return Err(
                    "this path is already a directory. Choose a different file name.".into()
                );
            }
            (Some(Some(_)), WriteMode::Create) => return Err("this file already exists.".into()),
            (Some(Some(old)), WriteMode::Replace) => Some(old.len()),
            (None, _) => None,
        };
        self.check_depth(path)?;
        let limit = self.quota.file_bytes_max;
        if content.len() as u64 > limit {
            return Err(format!("the file would be larger than the limit of {limit} bytes."));
        }
        self.check_entries(missing.len() + usize::from(old.is_none()))?;
        let used: usize = self.nodes.values().flatten().map(Vec::len).sum();
        let limit = self.quota.bytes_max;
        if (used - old.unwrap_or(0) + content.len()) as u64 > limit {
            return Err(format!("the store's limit of {limit} bytes would be exceeded."));
        }
        self.nodes.extend(missing.into_iter().map(|path| (path, None)));
        self.nodes.insert(path.to_owned(), Some(content.to_vec()));
        Ok("written".into())
    }

    fn create_directory(&mut self, path: &str) -> OutcomeText {
        let mut missing = self.missing_above(path)?;
        match self.nodes.get(path) {
            Some(None) => return Ok("Existed".into()),
            Some(Some(_)) => {
                return Err("this path is already a file. Choose a different name.".into());
            }
            None => missing.push(path.to_owned()),
        }
        self.check_depth(path)?;
        self.check_entries(missing.len())?;
        self.nodes.extend(missing.into_iter().map(|path| (path, None)));
        Ok("Created".into())
    }

    fn delete(&mut self, path: &str) -> OutcomeText {
        self.content(path)?;
        self.nodes.remove(path);
        Ok("deleted".into())
    }

    fn remove_directory(&mut self, path: &str) -> OutcomeText {
        if path.is_empty() {
            return Err(ROOT.into());
        }
        match self.nodes.get(path) {
            None => Err("not found".into()),
            Some(Some(_)) => Err("this path is a file and not a directory.".into()),
            Some(None) if !self.list(path, Scope::Recursive).is_empty() => Err(NOT_EMPTY.into()),
            Some(None) => {
                self.nodes.remove(path);
                Ok("removed".into())
            }
        }
    }

    fn rename(&mut self, from: &str, to: &str) -> OutcomeText {
        if from.is_empty() {
            return Err(ROOT.into());
        }
        let is_file = self.nodes.get(from).ok_or("not found")?.is_some();
        if from == to {
            return Ok("renamed".into());
        }
        if to.is_empty() {
            return Err(ROOT.into());
        }
        if to.starts_with(&format!("{from}/")) {
            let into =
                if is_file { BELOW_FILE } else { "a directory cannot be moved into itself." };
            return Err(into.into());
        }
        if !self.missing_above(to)?.is_empty() {
            return Err("not found".into());
        }
        match (is_file, self.nodes.get(to)) {
            (true, Some(None)) => {
                return Err(
                    "this path is already a directory. Choose a different file name.".into()
                );
            }
            (false, Some(Some(_))) => {
                return Err("this path is already a file. Choose a different name.".into());
            }
            (false, Some(None)) if !self.list(to, Scope::Recursive).is_empty() => {
                return Err(NOT_EMPTY.into());
            }
            _ => {}
        }
        let moved = |path: &String| Some(format!("{to}{}", path.strip_prefix(from)?));
        let is_moved = |path: &String| path == from || path.starts_with(&format!("{from}/"));
        let names: Vec<String> = self.nodes.keys().filter(|path| is_moved(path)).cloned().collect();
        for name in names.iter().filter_map(moved) {
            self.check_depth(&name)?;
        }
        self.nodes.remove(to);
        for name in names {
            if let (Some(node), Some(new)) = (self.nodes.remove(&name), moved(&name)) {
                self.nodes.insert(new, node);
            }
        }
        Ok("renamed".into())
    }

    fn content(&self, path: &str) -> Result<&[u8], String> {
        self.nodes.get(path).and_then(Option::as_deref).ok_or_else(|| "not found".into())
    }

    fn stat(&self, path: &str) -> OutcomeText {
        match self.nodes.get(path) {
            Some(Some(content)) => Ok(format!("File {}", content.len())),
            Some(None) => Ok("Directory 0".into()),
            None => Err("not found".into()),
        }
    }

    fn list(&self, path: &str, scope: Scope) -> String {
        if self.nodes.get(path).is_none_or(Option::is_some) {
            return String::new();
        }
        let above = if path.is_empty() { String::new() } else { format!("{path}/") };
        let below = |(node, content): (&String, &Option<Vec<u8>>)| {
            let name = node.strip_prefix(&above).filter(|name| !name.is_empty())?.to_owned();
            (scope == Scope::Recursive || !name.contains('/')).then_some((content.is_some(), name))
        };
        let mut entries: Vec<(bool, String)> = self.nodes.iter().filter_map(below).collect();
        entries.sort();
        let shown =
            entries.into_iter().map(|(is_file, name)| if is_file { name } else { name + "/" });
        shown.collect::<Vec<_>>().join(" ")
    }

    fn missing_above(&self, path: &str) -> Result<Vec<String>, String> {
        let above: Vec<&str> =
            path.match_indices('/').filter_map(|(at, _)| path.get(..at)).collect();
        if above.iter().any(|directory| matches!(self.nodes.get(*directory), Some(Some(_)))) {
            return Err(BELOW_FILE.into());
        }
        Ok(above
            .into_iter()
            .filter(|path| !self.nodes.contains_key(*path))
            .map(str::to_owned)
            .collect())
    }

    fn check_depth(&self, path: &str) -> Result<(), String> {
        let limit = self.quota.depth_max;
        if path.split('/').count() as u64 > limit {
            return Err(format!("the path is nested deeper than the limit of {limit} levels."));
        }
        Ok(())
    }

    fn check_entries(&self, added: usize) -> Result<(), String> {
        let limit = self.quota.entries_max;
        // The root is in the map and does not count.
        if (self.nodes.len() - 1 + added) as u64 > limit {
            return Err(format!(
                "the store's limit of {limit} files and directories would be exceeded."
            ));
        }
        Ok(())
    }
}
