//! Sends the requests of a change, and undoes them if one fails.
//!
//! Requests that may be refused come first, requests that remove something come last, and
//! everything that would be lost is copied inside the bucket before. So a change that fails is
//! undone, unless the service prevents it; a host that is killed leaves what it had already sent.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;

use super::draft::{ObjectChanges, ObjectPut};
use super::keys::{Key, stage};
use super::requests::{Bucket, PutCondition};
use crate::{FileError, StorePath};

/// Maximum number of concurrent requests.
const AT_ONCE: usize = 8;

/// Requests sent so far.
#[derive(Default)]
struct SendProgress {
    /// Copies of the objects that are replaced or deleted.
    staged: BTreeMap<Key, Key>,
    written: Vec<Key>,
    /// Objects that may have been deleted, each with a key that holds the same content.
    deleted: Vec<(Key, Key)>,
}

impl Bucket {
    /// Makes all changes of `difference`, or undoes them if one fails.
    ///
    /// # Errors
    /// [`FileError::Conflict`] if an object is not in the state that the change saw.
    pub(super) async fn send(&self, difference: ObjectChanges) -> Result<(), FileError> {
        let ObjectChanges { puts, copies, markers, deletes, replaced } = difference;
        let mut sent = SendProgress::default();
        let moved: BTreeMap<Key, Key> = copies.iter().cloned().collect();
        // A single change needs no copy to restore: nothing that would undo it can fail after it.
        let is_single = puts.len().saturating_add(copies.len()).saturating_add(deletes.len()) <= 1;
        let lost = deletes.iter().filter(|key| !moved.contains_key(*key)).cloned();
        let lost: Vec<Key> = if is_single { Vec::new() } else { lost.chain(replaced).collect() };
        let mut result = self.write_all(&mut sent, lost, puts, copies, markers).await;
        if result.is_ok() {
            let copy = |key: &Key| sent.staged.get(key).or_else(|| moved.get(key)).cloned();
            sent.deleted =
                deletes.iter().filter_map(|key| Some((copy(key)?, key.clone()))).collect();
            result = self.delete(deletes).await;
        }
        if let Err(error) = result {
            self.undo(sent).await;
            return Err(error);
        }
        // Copies that are left take room that does not count; a later count removes them.
        let _removed = self.delete(sent.staged.into_values()).await;
        Ok(())
    }

    async fn write_all(
        &self,
        sent: &mut SendProgress,
        lost: Vec<Key>,
        puts: Vec<ObjectPut>,
        copies: Vec<(Key, Key)>,
        markers: Vec<Key>,
    ) -> Result<(), FileError> {
        let staged = self.each(lost, async |bucket, key| {
            let stage = stage();
            bucket.copy(&key, &stage).await.map_err(|error| at_key(error, &key))?;
            Ok((key, stage))
        });
        let (staged, result) = staged.await;
        sent.staged = staged.into_iter().collect();
        result?;
        let marked = self.each(markers, async |bucket, key| match bucket.mark(&key).await {
            Ok(is_new) => Ok(is_new.then_some(key)),
            Err(error) => Err(error),
        });
        let (marked, result) = marked.await;
        sent.take((marked.into_iter().flatten().collect(), result))?;
        let written = self.each(puts, async |bucket, ObjectPut { key, content, condition }| {
            bucket.put(&key, content, condition).await.map_err(|error| at_key(error, &key))?;
            Ok(key)
        });
        sent.take(written.await)?;
        let copies = copies.into_iter().map(|(from, to)| {
            let from = sent.staged.get(&from).cloned().unwrap_or(from);
            (from, to)
        });
        let written = self.each(copies.collect(), async |bucket, (from, to)| {
            bucket.copy(&from, &to).await.map_err(|error| at_key(error, &from))?;
            Ok(to)
        });
        sent.take(written.await)
    }

    /// Writes a marker unless it exists. Returns whether it was written.
    pub(super) async fn mark(&self, key: &str) -> Result<bool, FileError> {
        match self.put(key, Vec::new(), PutCondition::Missing).await {
            Ok(()) => Ok(true),
            Err(FileError::AlreadyExists) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Restores the previous objects. Failures are ignored, because nothing more can be done about
    /// them.
    async fn undo(&self, sent: SendProgress) {
        let copy = async |bucket: Self, (from, to): (Key, Key)| bucket.copy(&from, &to).await;
        // First what was deleted: the only copy of a moved object is at its new key.
        if self.each(sent.deleted, copy).await.1.is_err() {
            return;
        }
        let (mut created, mut restored) = (Vec::new(), Vec::new());
        for key in sent.written {
            match sent.staged.get(&key) {
                Some(stage) => restored.push((stage.clone(), key)),
                None => created.push(key),
            }
        }
        // If a copy could not be restored, it is the last copy of the object.
        if self.each(restored, copy).await.1.is_ok() {
            created.extend(sent.staged.into_values());
        }
        let _removed = self.delete(created).await;
    }

    /// Runs `work` for all of `items`, some of them concurrently. After a failure it starts no more
    /// work and waits for what has begun.
    async fn each<I, T>(
        &self,
        items: Vec<I>,
        work: impl AsyncFn(Self, I) -> Result<T, FileError>,
    ) -> (Vec<T>, Result<(), FileError>) {
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let mut results = futures_util::stream::iter(items)
            .map(async |item| {
                if is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    return None;
                }
                let result = work(self.clone(), item).await;
                is_over.fetch_or(result.is_err(), std::sync::atomic::Ordering::Relaxed);
                Some(result)
            })
            .buffer_unordered(AT_ONCE);
        let (mut done, mut first_error) = (Vec::new(), Ok(()));
        while let Some(result) = results.next().await {
            match result {
                Some(Ok(one)) => done.push(one),
                Some(Err(error)) => first_error = first_error.and(Err(error)),
                None => {}
            }
        }
        (done, first_error)
    }
}

impl SendProgress {
    fn take(
        &mut self,
        (written, result): (Vec<Key>, Result<(), FileError>),
    ) -> Result<(), FileError> {
        self.written.extend(written);
        result
    }
}

/// Converts an error that the checks have ruled out into a conflict: another host caused it.
fn at_key(error: FileError, key: &str) -> FileError {
    match error {
        FileError::NotFound | FileError::AlreadyExists => {
            FileError::Conflict { path: StorePath::ROOT.descend(key).unwrap_or(StorePath::ROOT) }
        }
        other => other,
    }
}
