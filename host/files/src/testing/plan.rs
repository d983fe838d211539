//! Sequences of operations, applied to a store and to the model.

use std::sync::Arc;

use super::model::Model;
use super::{Mismatch, expect};
use crate::{
    Budget, EntryKind, FileError, FileStore, Listing, Overlay, Quota, QuotaCounts, Scope,
    StorePath, WriteMode,
};

/// Few enough paths that operations interact, and deep enough for every limit of [`QUOTA`].
const PATHS: [&str; 12] =
    ["", "a", "b", "a/a", "a/b", "b/a", "a/a/a", "a/a/b", "b/a/b", "a/b/a/b", "a/b/a/b/a", "a!"];

/// Limits that a plan soon reaches.
const QUOTA: Quota = Quota {
    bytes_max: 12,
    entries_max: 6,
    file_bytes_max: 8,
    depth_max: 3,
    counts: QuotaCounts::Total,
};

/// Result of an operation as a string.
pub(super) type OutcomeText = Result<String, String>;

/// One operation of a plan.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Operation {
    /// [`FileStore::write`].
    Write {
        /// Path of the file.
        path: StorePath,
        /// New content.
        content: Vec<u8>,
        /// Behavior if the file exists.
        mode: WriteMode,
    },
    /// [`FileStore::create_directory`].
    CreateDirectory {
        /// Path of the directory.
        path: StorePath,
    },
    /// [`FileStore::delete`].
    Delete {
        /// Path of the file.
        path: StorePath,
    },
    /// [`FileStore::remove_directory`].
    RemoveDirectory {
        /// Path of the directory.
        path: StorePath,
    },
    /// [`FileStore::rename`].
    Rename {
        /// Path to move.
        from: StorePath,
        /// New path.
        to: StorePath,
    },
    /// [`FileStore::read`] and [`FileStore::read_range`] of the whole file.
    Read {
        /// Path of the file.
        path: StorePath,
    },
    /// [`FileStore::stat`].
    Stat {
        /// Path of the file or directory.
        path: StorePath,
    },
    /// [`FileStore::list`].
    List {
        /// Path of the directory.
        path: StorePath,
        /// Depth of the listing.
        scope: Scope,
    },
}

impl Operation {
    /// Decodes an operation from three bytes. Every combination is valid.
    #[must_use]
    pub fn from_bytes([kind, path, extra]: [u8; 3]) -> Self {
        let path_of = |number: u8| {
            let text = PATHS.iter().cycle().nth(number.into()).copied().unwrap_or_default();
            StorePath::directory(text).unwrap_or(StorePath::ROOT)
        };
        let path = path_of(path);
        let content = vec![extra; usize::from(extra % 10)];
        let scope = if extra % 2 == 0 { Scope::Children } else { Scope::Recursive };
        match kind % 14 {
            0..3 => Self::Write { path, content, mode: WriteMode::Create },
            3..5 => Self::Write { path, content, mode: WriteMode::Replace },
            5 => Self::CreateDirectory { path },
            6 => Self::Delete { path },
            7 => Self::Read { path },
            8 => Self::Stat { path },
            9 => Self::RemoveDirectory { path },
            10..13 => Self::Rename { from: path, to: path_of(extra) },
            _ => Self::List { path, scope },
        }
    }
}

/// Applies `plan` to an empty store from `fresh` and to a plain map, and compares everything at the
/// end.
///
/// # Errors
/// The first operation with different results.
pub fn check_plan(
    fresh: impl FnOnce(&Quota) -> Arc<dyn FileStore>,
    plan: &[Operation],
) -> Result<(), Mismatch> {
    let store = fresh(&QUOTA);
    let mut model = Model::new(QUOTA);
    runtime()?.block_on(async {
        compare(&*store, &mut model, plan).await?;
        compare(&*store, &mut model, &everything()).await
    })
}

/// Applies the first third of `plan` to an empty store and the rest to two overlays over it, one
/// after the other, and commits each. Compares everything at the end.
///
/// # Errors
/// The first operation with different results, or a commit that fails.
pub fn check_commits(
    fresh: impl FnOnce(&Quota) -> Arc<dyn FileStore>,
    plan: &[Operation],
) -> Result<(), Mismatch> {
    let store = fresh(&QUOTA);
    let mut model = Model::new(QUOTA);
    let (before, rest) = plan.split_at(plan.len() / 3);
    let (first, second) = rest.split_at(rest.len() / 2);
    runtime()?.block_on(async {
        compare(&*store, &mut model, before).await?;
        for part in [first, second] {
            let untouched = model.clone();
            let overlay = Overlay::new(Arc::clone(&store), &Budget::new(u64::MAX));
            compare(&overlay, &mut model, part).await?;
            compare(&overlay, &mut model, &everything()).await?;
            compare(&*store, &mut untouched.clone(), &everything()).await?;
            overlay
                .commit_changes()
                .await
                .map_err(|error| Mismatch(format!("the commit failed: {error}")))?;
            compare(&*store, &mut model, &everything()).await?;
        }
        Ok(())
    })
}

fn runtime() -> Result<tokio::runtime::Runtime, Mismatch> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Mismatch(error.to_string()))
}

/// Returns operations that together read everything.
fn everything() -> Vec<Operation> {
    let paths = PATHS.iter().filter_map(|text| StorePath::directory(text).ok());
    let list_all = Operation::List { path: StorePath::ROOT, scope: Scope::Recursive };
    let reads =
        paths.flat_map(|path| [Operation::Read { path: path.clone() }, Operation::Stat { path }]);
    reads.chain([list_all]).collect()
}

async fn compare(
    store: &dyn FileStore,
    model: &mut Model,
    plan: &[Operation],
) -> Result<(), Mismatch> {
    for (number, operation) in plan.iter().enumerate() {
        let expected = model.apply(operation);
        let found = apply(store, operation).await;
        expect(&format!("operation {number}, {operation:?}"), found, expected)?;
    }
    Ok(())
}

async fn apply(store: &dyn FileStore, operation: &Operation) -> OutcomeText {
    match operation {
        Operation::Write { path, content, mode } => {
            say(store.write(path, content.clone(), *mode).await, |()| "written".into())
        }
        Operation::CreateDirectory { path } => {
            say(store.create_directory(path).await, |made| format!("{made:?}"))
        }
        Operation::Delete { path } => say(store.delete(path).await, |()| "deleted".into()),
        Operation::RemoveDirectory { path } => {
            say(store.remove_directory(path).await, |()| "removed".into())
        }
        Operation::Rename { from, to } => say(store.rename(from, to).await, |()| "renamed".into()),
        Operation::Read { path } => {
            let whole = say(store.read(path, u64::MAX).await, |content| format!("{content:?}"));
            let range = say(store.read_range(path, 0, 99).await, |content| format!("{content:?}"));
            if whole == range { whole } else { Err(format!("{whole:?} but {range:?} as a range")) }
        }
        Operation::Stat { path } => {
            say(store.stat(path).await, |stat| format!("{:?} {}", stat.kind, stat.bytes))
        }
        Operation::List { path, scope } => {
            say(store.list(path, *scope).await, |listing| show(&listing))
        }
    }
}

fn say<T>(result: Result<T, FileError>, show: impl FnOnce(T) -> String) -> OutcomeText {
    result.map(show).map_err(|error| error.to_string())
}

/// Formats a listing as one line: names separated by spaces, directories with a `/` at the end.
pub(super) fn show(listing: &Listing) -> String {
    let names = listing.entries.iter().map(|entry| match entry.kind {
        EntryKind::File => entry.name.clone(),
        EntryKind::Directory => format!("{}/", entry.name),
    });
    let truncated = listing.is_truncated.then(|| "(truncated)".to_owned());
    names.chain(truncated).collect::<Vec<_>>().join(" ")
}

/// Generates random plans.
#[cfg(test)]
pub(crate) fn plan() -> impl proptest::strategy::Strategy<Value = Vec<Operation>> {
    use proptest::prelude::*;
    proptest::collection::vec(any::<[u8; 3]>().prop_map(Operation::from_bytes), 0..40)
}
