//! Commits the changes of a call.
//!
//! Everything is checked first, with a request for each path that the call changed. The puts that
//! follow are conditional on the results of those requests, so that two hosts do not overwrite each
//! other's files. Copies and deletes cannot be conditional in a bucket: changes of such a path by
//! another host between check and request go unnoticed.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, TryStreamExt as _};

use super::change::ObjectNode;
use super::draft::ObjectDraft;
use super::keys;
use super::requests::Bucket;
use crate::changes::{NewContent, RemovedPath};
use crate::ledger::UsageLedger;
use crate::{Changes, FileError, StorePath, Version};

/// Maximum number of concurrent requests.
const AT_ONCE: usize = 8;

impl Bucket {
    pub(super) async fn commit(
        &self,
        ledger: &mut UsageLedger,
        changes: Changes,
    ) -> Result<(), FileError> {
        let mut draft = ObjectDraft::default();
        self.check_expected(&mut draft, &changes.expected).await?;
        self.check_vacated(&mut draft, &changes.vacated).await?;
        self.check_above(&changes).await?;
        let usage = self.usage(ledger).await?;
        let (before, after) = (changes.before, changes.after);
        self.quota.check_difference(usage, before, after)?;
        self.record_moved(&mut draft, &changes).await?;
        rearrange(&mut draft, changes)?;
        self.send(draft.into_difference()).await.inspect_err(|_| ledger.forget())?;
        ledger.enter(usage.exchanged(before, after));
        Ok(())
    }

    /// Checks that each path is as the call saw it, and adds the files to the draft.
    async fn check_expected(
        &self,
        draft: &mut ObjectDraft,
        expected: &[(StorePath, Option<Version>)],
    ) -> Result<(), FileError> {
        let looks = expected.iter().cloned().map(|(path, version)| {
            let bucket = self.clone();
            async move {
                let node = bucket.lookup(&path).await?;
                Ok::<_, FileError>((path, version, node))
            }
        });
        // An owned list of futures borrows nothing, so that no lifetime is too short for the
        // stream.
        let looks: Vec<_> = looks.collect();
        let mut looks = futures_util::stream::iter(looks).buffered(AT_ONCE);
        while let Some((path, version, node)) = looks.try_next().await? {
            if node.as_ref().map(|node| node.stat().version) != version {
                return Err(FileError::Conflict { path });
            }
            if let Some(ObjectNode::File(object)) = node {
                draft.record_version(path.as_str(), Some(object.state));
            }
        }
        Ok(())
    }

    /// Checks that everything in the directories to remove is removed too.
    async fn check_vacated(
        &self,
        draft: &mut ObjectDraft,
        vacated: &[RemovedPath],
    ) -> Result<(), FileError> {
        let going: BTreeSet<_> = vacated.iter().map(RemovedPath::path).collect();
        for change in vacated {
            let RemovedPath::Directory(directory) = change else { continue };
            let contents = self.record_versions_below(draft, directory).await?;
            let names = contents.files.keys().chain(&contents.directories);
            let children =
                names.filter(|name| !name.contains('/')).map(|name| directory.join(name));
            if let Some(path) = children.into_iter().find(|child| !going.contains(child)) {
                return Err(FileError::Conflict { path });
            }
            if contents.hides_entries {
                return Err(FileError::Conflict { path: directory.clone() });
            }
        }
        Ok(())
    }

    /// Checks that no parent of a new path is a file that another host has put there.
    async fn check_above(&self, changes: &Changes) -> Result<(), FileError> {
        let vacated: BTreeSet<_> =
            changes.vacated.iter().map(|change| change.path().clone()).collect();
        let mut seen: BTreeSet<StorePath> =
            changes.filled.iter().map(|(path, _)| path.clone()).collect();
        for (path, _) in &changes.filled {
            for above in path.ancestors() {
                if !seen.insert(above.clone()) {
                    break;
                }
                if !vacated.contains(&above) && self.head(above.as_str()).await?.is_some() {
                    return Err(FileError::Conflict { path: path.clone() });
                }
            }
        }
        Ok(())
    }

    /// Adds everything that moves to the draft, with everything below it.
    async fn record_moved(
        &self,
        draft: &mut ObjectDraft,
        changes: &Changes,
    ) -> Result<(), FileError> {
        let staged = changes.vacated.iter().filter_map(|change| match change {
            RemovedPath::Staged { from, .. } => Some(from),
            RemovedPath::File(_) | RemovedPath::Directory(_) => None,
        });
        let moved = changes.filled.iter().filter_map(|(_, filled)| match filled {
            NewContent::Moved { from } if !keys::is_reserved(from.as_str()) => Some(from),
            _ => None,
        });
        for from in staged.chain(moved) {
            if !draft.is_known(from.as_str()) {
                self.record_versions_below(draft, from).await?;
            }
        }
        Ok(())
    }
}

/// Applies the changes to the draft, one after another.
fn rearrange(draft: &mut ObjectDraft, changes: Changes) -> Result<(), FileError> {
    for change in changes.vacated {
        match change {
            RemovedPath::File(path) => draft.delete(&path),
            RemovedPath::Directory(path) => draft.remove_directory(&path),
            RemovedPath::Staged { from, stage } => draft.rename(&from, &stage),
        }
    }
    for (path, filled) in changes.filled {
        match filled {
            NewContent::Directory => draft.create_directory(&path),
            NewContent::Moved { from } => draft.rename(&from, &path),
            // The content is already in memory.
            NewContent::File { content, .. } => draft.write(&path, content.into_bytes()?),
        }
    }
    Ok(())
}
