//! Sending the requests of a change, and taking them back when one fails.
//!
//! What can be refused comes early, what takes something away comes last, and what would be lost is
//! copied inside of the bucket before. So a change that fails is undone, as far as the service lets
//! it; a host that is killed leaves what it had sent until then.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;

use super::draft::{Difference, Put};
use super::keys::{Key, stage};
use super::requests::{Bucket, Condition};
use crate::{FileError, StorePath};

/// How many requests are under way at a time.
const AT_ONCE: usize = 8;

/// What has been sent so far.
#[derive(Default)]
struct Sent {
    /// The copies of objects that are replaced.
    staged: BTreeMap<Key, Key>,
    written: Vec<Key>,
}

impl Bucket {
    /// Makes all changes of `difference`, or as good as none.
    ///
    /// # Errors
    /// [`FileError::Conflict`] when an object is not in the state that the change saw.
    pub(super) async fn send(&self, difference: Difference) -> Result<(), FileError> {
        let Difference { puts, copies, markers, deletes, replaced } = difference;
        let mut sent = Sent::default();
        // One write needs nothing to go back to: nothing can fail after it that would undo it.
        let is_single = puts.len().saturating_add(copies.len()) <= 1;
        let replaced: Vec<Key> =
            if is_single { Vec::new() } else { replaced.into_iter().collect() };
        let result = self.write_all(&mut sent, replaced, puts, copies, markers).await;
        if let Err(error) = result {
            self.undo(sent).await;
            return Err(error);
        }
        // Copies that stay behind take room that nobody counts; a later count removes them.
        let _removed = self.delete(sent.staged.into_values()).await;
        self.delete(deletes).await
    }

    async fn write_all(
        &self,
        sent: &mut Sent,
        replaced: Vec<Key>,
        puts: Vec<Put>,
        copies: Vec<(Key, Key)>,
        markers: Vec<Key>,
    ) -> Result<(), FileError> {
        let staged = self.each(replaced, async |bucket, key| {
            let stage = stage();
            bucket.copy(&key, &stage).await.map_err(|error| blame(error, &key))?;
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
        let written = self.each(puts, async |bucket, Put { key, content, condition }| {
            bucket.put(&key, content, condition).await.map_err(|error| blame(error, &key))?;
            Ok(key)
        });
        sent.take(written.await)?;
        let copies = copies.into_iter().map(|(from, to)| {
            let from = sent.staged.get(&from).cloned().unwrap_or(from);
            (from, to)
        });
        let written = self.each(copies.collect(), async |bucket, (from, to)| {
            bucket.copy(&from, &to).await.map_err(|error| blame(error, &from))?;
            Ok(to)
        });
        sent.take(written.await)
    }

    /// Writes a marker unless it is there, and says whether it was written.
    pub(super) async fn mark(&self, key: &str) -> Result<bool, FileError> {
        match self.put(key, Vec::new(), Condition::Missing).await {
            Ok(()) => Ok(true),
            Err(FileError::AlreadyExists) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Puts back what was there. Nothing more can be done about what fails here.
    async fn undo(&self, sent: Sent) {
        let (mut created, mut restored) = (Vec::new(), Vec::new());
        for key in sent.written {
            match sent.staged.get(&key) {
                Some(stage) => restored.push((stage.clone(), key)),
                None => created.push(key),
            }
        }
        let restored =
            self.each(restored, async |bucket, (stage, key)| bucket.copy(&stage, &key).await);
        // A copy that could not be put back is all that is left of the object.
        if restored.await.1.is_ok() {
            created.extend(sent.staged.into_values());
        }
        let _removed = self.delete(created).await;
    }

    /// Does `work` for all of `items`, some at a time. Waits for what has begun when one fails, and
    /// begins no more.
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

impl Sent {
    fn take(
        &mut self,
        (written, result): (Vec<Key>, Result<(), FileError>),
    ) -> Result<(), FileError> {
        self.written.extend(written);
        result
    }
}

/// What cannot be, after all checks, is the work of somebody else.
fn blame(error: FileError, key: &str) -> FileError {
    match error {
        FileError::NotFound | FileError::AlreadyExists => {
            FileError::Conflict { path: StorePath::ROOT.descend(key).unwrap_or(StorePath::ROOT) }
        }
        other => other,
    }
}
