//! Commits the changes of a call.
//!
//! Everything is checked first, with a request for each path that the call changed. The puts that
//! follow are conditional on the results of those requests, so that two hosts do not overwrite each
//! other's files. Copies and deletes cannot be conditional in a bucket: changes of such a path by
//! another host between check and request go unnoticed.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::sync::OwnedMutexGuard;

use super::change::ObjectNode;
use super::draft::{ObjectChanges, ObjectDraft};
use super::requests::Bucket;
use super::{ended, keys};
use crate::blocking::to_completion;
use crate::changes::{NewContent, RemovedPath};
use crate::ledger::UsageLedger;
use crate::{Changes, FileError, PreparedCommit, StorePath, Usage, Version};

/// Maximum number of concurrent requests.
const AT_ONCE: usize = 8;

/// A commit whose requests have not been sent. No other change of this store is made before it is
/// dropped; other hosts are noticed by the conditions of its puts.
pub(super) struct BucketCommit {
    bucket: Arc<Bucket>,
    ledger: OwnedMutexGuard<UsageLedger>,
    difference: ObjectChanges,
    /// Usage of the store after the changes.
    usage: Usage,
}

impl BucketCommit {
    pub(super) async fn prepare(
        bucket: Arc<Bucket>,
        mut ledger: OwnedMutexGuard<UsageLedger>,
        changes: Changes,
    ) -> Result<Self, FileError> {
        let mut draft = ObjectDraft::default();
        bucket.check_expected(&mut draft, &changes.expected).await?;
        bucket.check_vacated(&mut draft, &changes.vacated).await?;
        bucket.check_above(&changes).await?;
        let usage = bucket.usage(&mut ledger).await?;
        let (before, after) = (changes.before, changes.after);
        bucket.quota.check_difference(usage, before, after)?;
        bucket.record_moved(&mut draft, &changes).await?;
        rearrange(&mut draft, changes)?;
        let usage = usage.exchanged(before, after);
        Ok(Self { bucket, ledger, difference: draft.into_difference(), usage })
    }
}

#[async_trait]
impl PreparedCommit for BucketCommit {
    fn is_remote(&self) -> bool {
        true
    }

    async fn commit(self: Box<Self>) -> Result<(), FileError> {
        let Self { bucket, mut ledger, difference, usage } = *self;
        let sent = async move {
            bucket.send(difference).await.inspect_err(|_| ledger.forget())?;
            ledger.enter(usage);
            Ok(())
        };
        ended(to_completion(sent).await)
    }
}

impl Bucket {
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
