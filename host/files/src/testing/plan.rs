//! Sequences of operations, carried out on a store and on the model.

use std::sync::Arc;

use super::model::Model;
use super::{Mismatch, expect};
use crate::{
    Budget, EntryKind, FileError, FileStore, Listing, Overlay, Quota, QuotaCounts, Scope,
    StorePath, WriteMode,
};

/// Few enough paths that operations meet, deep enough for every limit of [`QUOTA`].
const PATHS: [&str; 12] =
    ["", "a", "b", "a/a", "a/b", "b/a", "a/a/a", "a/a/b", "b/a/b", "a/b/a/b", "a/b/a/b/a", "a!"];

/// Limits that a plan soon meets.
const QUOTA: Quota = Quota {
    bytes_max: 12,
    entries_max: 6,
    file_bytes_max: 8,
    depth_max: 3,
    counts: QuotaCounts::Total,
};

/// What an operation gives, as text.
pub(super) type Said = Result<String, String>;

/// One operation of a plan.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Operation {
    /// [`FileStore::write`].
    Write {
        /// Where.
        path: StorePath,
        /// What.
        content: Vec<u8>,
        /// How.
        mode: WriteMode,
    },
    /// [`FileStore::create_directory`].
    CreateDirectory {
        /// Where.
        path: StorePath,
    },
    /// [`FileStore::delete`].
    Delete {
        /// Where.
        path: StorePath,
    },
    /// [`FileStore::remove_directory`].
    RemoveDirectory {
        /// Which.
        path: StorePath,
    },
    /// [`FileStore::rename`].
    Rename {
        /// What.
        from: StorePath,
        /// Where to.
        to: StorePath,
    },
    /// [`FileStore::read`] and [`FileStore::read_range`] of everything.
    Read {
        /// Where.
        path: StorePath,
    },
    /// [`FileStore::stat`].
    Stat {
        /// Where.
        path: StorePath,
    },
    /// [`FileStore::list`].
    List {
        /// Where.
        path: StorePath,
        /// How far.
        scope: Scope,
    },
}

impl Operation {
    /// The operation that three bytes stand for; every three bytes stand for one.
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

/// Carries out `plan` on an empty store from `fresh` and on a plain map, and at the end compares
/// everything.
///
/// # Errors
/// The first operation about which the two differ.
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

/// Carries out the first third of `plan` on an empty store and the rest on two overlays over it,
/// one after the other, each of which is committed. At the end compares everything.
///
/// # Errors
/// The first operation about which the store and the map differ, or a commit that fails.
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

/// Operations that together see all there is.
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

async fn apply(store: &dyn FileStore, operation: &Operation) -> Said {
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

fn say<T>(result: Result<T, FileError>, show: impl FnOnce(T) -> String) -> Said {
    result.map(show).map_err(|error| error.to_string())
}

/// A listing as one line: names with a space between them, directories with a `/` at the end.
pub(super) fn show(listing: &Listing) -> String {
    let names = listing.entries.iter().map(|entry| match entry.kind {
        EntryKind::File => entry.name.clone(),
        EntryKind::Directory => format!("{}/", entry.name),
    });
    let truncated = listing.is_truncated.then(|| "(truncated)".to_owned());
    names.chain(truncated).collect::<Vec<_>>().join(" ")
}

/// Random plans.
#[cfg(test)]
pub(crate) fn plan() -> impl proptest::strategy::Strategy<Value = Vec<Operation>> {
    use proptest::prelude::*;
    proptest::collection::vec(any::<[u8; 3]>().prop_map(Operation::from_bytes), 0..40)
}
