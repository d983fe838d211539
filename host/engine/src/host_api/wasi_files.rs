//! `wasi:filesystem` over file stores.
//!
//! A guest sees each of its mounts as a directory. Behind it are a file store of `host/files`, a
//! guard for the granted access, and an overlay that holds the changes of the call until it has
//! succeeded (`FILE-21`). So the rules about names, links, special files and quotas are those of
//! the store, and no path of a guest is ever a path of the host.
//!
//! A descriptor is a path of a store, or a file of an overlay; no file of the host stays open
//! between two operations. Links cannot be created. Times are the store's own; setting them has no
//! effect.
//!
//! The functions are those that the runtime generates for its own descriptors. Resources are
//! numbers in the table of the call, so our resources can use the type names of the runtime.

mod descriptor;
mod error;
mod host;
mod path;
mod read;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;

use cofferdam_files::{
    Budget, ChangeKind, EntryKind, FileStore as _, Overlay, SpillOptions, StorePath,
    StoreRecordings, Transaction,
};
use cofferdam_tool::{CallContext, Completion, MountName, Outcome, ToolError};
use wasmtime::component::{HasData, ResourceTable};

use crate::{Grants, Mount};

/// Maximum memory for the changes of one call, over all mounts, in bytes. It is more than a store's
/// default quota, so that a guest hits the quota first.
const CHANGED_BYTES_MAX: u64 = 80 * 1024 * 1024;
/// Bytes of a file that are read at once for its digest.
const DIGEST_PART_BYTES: u64 = 1024 * 1024;

/// Mounts of one call, with its changes. Cloning is cheap; clones share state.
#[derive(Clone)]
pub(crate) struct CallFiles {
    /// `None` for no mounts: the empty slice of the standard library is a single shared value, and
    /// all cores would contend on its reference count.
    mounts: Option<Arc<[MountedFiles]>>,
    transaction: Transaction,
}

struct MountedFiles {
    name: MountName,
    overlay: Overlay,
}

impl CallFiles {
    /// Creates the mounts of a call without any changes.
    pub(crate) fn new(
        grants: &Grants,
        context: &CallContext,
        spill: Option<&Arc<SpillOptions>>,
        recordings: Option<&Arc<StoreRecordings>>,
    ) -> Self {
        // A call without mounts changes nothing.
        let budget = match spill.filter(|_| !grants.mounts.is_empty()) {
            Some(spill) => Budget::with_spill_ambient(CHANGED_BYTES_MAX, Arc::clone(spill)),
            None => Budget::new(CHANGED_BYTES_MAX),
        };
        let outer =
            context.outer.as_ref().and_then(|outer| outer.files.downcast_ref::<Transaction>());
        let transaction = Transaction::over(outer, budget.clone(), recordings.cloned());
        let mounted = |mount: &Mount| MountedFiles {
            name: mount.name.clone(),
            overlay: match mount.sharing.directory(context.session.as_deref()) {
                None => transaction.view(mount.name.as_str(), &mount.store, mount.access),
                Some(root) => {
                    transaction.view_below(mount.name.as_str(), &mount.store, root, mount.access)
                }
            },
        };
        let mounts =
            (!grants.mounts.is_empty()).then(|| grants.mounts.iter().map(mounted).collect());
        Self { mounts, transaction }
    }

    /// Returns the transaction, which inner calls join.
    pub(crate) fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// Returns digests of the files that the call has written, by mount and path. Files that cannot
    /// be read have none.
    pub(crate) async fn written(&self) -> BTreeMap<String, String> {
        let mut digests = BTreeMap::new();
        for MountedFiles { name, overlay } in self.mounts() {
            for change in overlay.changed_files().await {
                let is_file = change.kind == EntryKind::File && change.what != ChangeKind::Deleted;
                if is_file && let Some(digest) = digest(overlay, &change.path).await {
                    digests.insert(format!("/{name}/{}", change.path), digest);
                }
            }
        }
        digests
    }

    /// Commits the changes of a successful call, and discards those of any other call. If the
    /// commit fails, the call fails, and its record lists the changes that remain. It also fails
    /// if a change was refused because another call had committed first, even if the guest ignored
    /// that error (`FILE-23`).
    pub(crate) async fn settle(self, completion: &mut Completion, context: &CallContext) {
        let has_succeeded = match completion.outcome {
            Outcome::Cancelled => return,
            Outcome::Ok(_) => true,
            _ => false,
        };
        if has_succeeded && context.is_cancelled() {
            completion.outcome = Outcome::Cancelled;
        } else if let Some(conflict) = self.transaction.conflict().await {
            let guest_end =
                completion.record.error_type.as_deref().unwrap_or(completion.record.outcome);
            let mut error = ToolError::from(conflict);
            let detail = error.detail.take().unwrap_or_default();
            let detail = format!(
                "{detail}; the call was refused a change because of that, and its guest ended as \
                 `{guest_end}`"
            );
            completion.outcome = Outcome::Error(error.with_detail(detail));
        } else if !has_succeeded {
            return;
        } else {
            match self.transaction.finish(context.file_effects).await {
                Ok(changes) => {
                    completion.record.set_files(changes);
                    return;
                }
                Err(error) => {
                    completion.record.set_files(error.committed.clone());
                    completion.outcome = Outcome::Error(error.into());
                }
            }
        }
        completion.record.set_outcome(&completion.outcome);
    }
}

impl CallFiles {
    fn mounts(&self) -> &[MountedFiles] {
        self.mounts.as_deref().unwrap_or_default()
    }

    /// Returns the mounts by name, each with a flag for whether it can be changed.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&MountName, bool)> {
        self.mounts().iter().map(|mount| (&mount.name, !mount.overlay.is_read_only()))
    }

    /// Returns the mount called `name` with the changes of the call.
    pub(crate) fn mounted(&self, name: &str) -> Option<Overlay> {
        self.mounts()
            .iter()
            .find(|mount| mount.name.as_str() == name)
            .map(|mount| mount.overlay.clone())
    }
}

/// Returns the digest of a file, or `None` if it cannot be read.
async fn digest(overlay: &Overlay, path: &StorePath) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    let mut offset = 0;
    loop {
        let part = overlay.read_range(path, offset, DIGEST_PART_BYTES).await.ok()?;
        if part.is_empty() {
            return Some(hasher.finalize().to_hex().as_str().to_owned());
        }
        offset += u64::try_from(part.len()).ok()?;
        hasher.update(&part);
    }
}

/// Functions of `wasi:filesystem` while one of them runs.
pub(crate) struct FilesView<'a> {
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) files: &'a CallFiles,
}

/// Type that tells the linker where to borrow [`FilesView`] from.
pub(crate) struct WasiFiles;

impl HasData for WasiFiles {
    type Data<'a> = FilesView<'a>;
}
