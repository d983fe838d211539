//! A file store in a bucket: S3, Google Cloud Storage, Azure, or objects in memory.
//!
//! A bucket has keys and no directories. The key of a file is its path below the prefix of the
//! store. A directory exists as long as something is below it. An empty one exists through an
//! object with a reserved name, the marker, which is written when a directory is created and before
//! anything in one is deleted or moved away (`FILE-12`). Listings do not show markers, but other
//! tools that access the bucket do.
//!
//! A file is put in one request, so that readers see the old or the new content. An exclusive
//! create is a conditional put (`If-None-Match`), of which the service lets only one succeed, from
//! whichever host (`FILE-13`). The puts of a commit are conditional on the entity tag that was seen
//! (`If-Match`). The service has to support both; S3, R2, MinIO, Google and Azure do.
//!
//! Costs: each operation is one to a few requests in sequence, and a change has to look up the
//! directories above its path. Moving a file copies it inside the bucket, and moving a directory
//! copies everything in it. The quota needs a list of everything at the first change, and again
//! when that list has expired (see [`crate::ledger`]). In this process the changes of one store are
//! made one after another; reads never wait.
//!
//! Limitations, which are those of buckets:
//!
//! * A rename and a commit of several changes are not atomic. They are undone if they fail, but a
//!   host that is killed leaves the part that it had done, and readers see intermediate states.
//!   Nothing is deleted before everything else is written.
//! * Copies and deletes are not conditional. If one of two hosts moves or deletes while the other
//!   one writes, it may undo the other's work unnoticed. Together two hosts may exceed a quota, or
//!   make a name a file and a directory at the same time.
//! * The result of a request without a response is unknown. The request counts as not done. If the
//!   service did it anyway, a failed commit leaves that one change, and a create may be refused
//!   because of the file that it created itself.
//! * A directory that was deleted and created again is indistinguishable from the previous one.
//! * A key with an empty segment, or one of `.` or `..`, makes the listings that contain it fail; a
//!   key that ends in `/` (an empty directory of some tools) is an empty file in recursive
//!   listings.

mod change;
mod commit;
mod contents;
mod count;
mod draft;
#[cfg(feature = "cloud")]
mod http;
mod keys;
#[cfg(feature = "cloud")]
mod open;
mod requests;
mod send;
mod service;
mod version;

use std::sync::Arc;
use std::{fmt, io};

use async_trait::async_trait;
use commit::BucketCommit;
use keys::Keys;
use object_store::ObjectStore;
use object_store::memory::InMemory;
#[cfg(feature = "cloud")]
pub use open::{BucketOptions, OpenBucketError};
use requests::Bucket;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::blocking::{blocking, to_completion};
use crate::ledger::UsageLedger;
use crate::store::NoChanges;
use crate::{
    Changes, FileError, FileLocation, FileStore, Listing, MadeDirectory, PreparedCommit, Quota,
    Room, Scope, Stat, StorePath, WriteMode,
};

/// A file store in a bucket.
#[derive(Clone)]
pub struct BucketStore {
    bucket: Arc<Bucket>,
    /// Locked by one change at a time, from its checks to its end.
    ledger: Arc<Mutex<UsageLedger>>,
}

impl BucketStore {
    /// Creates an empty store over objects in memory, which behaves like one in a bucket.
    #[must_use]
    pub fn in_memory(quota: Quota) -> Self {
        Self::from_bucket(Bucket {
            objects: Arc::new(InMemory::new()),
            #[cfg(feature = "cloud")]
            pages: None,
            keys: Keys::default(),
            service: Arc::default(),
            quota,
            is_read_only: false,
        })
    }

    /// Creates a store over the objects whose keys are below `prefix`. `objects` has to support
    /// conditional puts.
    ///
    /// # Errors
    /// If no key can start with `prefix` because one of its segments is empty, `.` or `..`.
    pub fn over(
        objects: Arc<dyn ObjectStore>,
        prefix: &str,
        quota: Quota,
        is_read_only: bool,
    ) -> Result<Self, object_store::path::Error> {
        Ok(Self::from_bucket(Bucket {
            objects,
            #[cfg(feature = "cloud")]
            pages: None,
            keys: Keys::below(prefix)?,
            service: Arc::default(),
            quota,
            is_read_only,
        }))
    }

    fn from_bucket(bucket: Bucket) -> Self {
        let ledger = UsageLedger::new(bucket.quota.counts);
        Self { bucket: Arc::new(bucket), ledger: Arc::new(Mutex::new(ledger)) }
    }

    /// Makes a change, one at a time in this store. It continues if the caller stops waiting, so
    /// that it is made as a whole, and the next change waits for it.
    async fn change_with<T, F>(
        &self,
        change: impl FnOnce(Arc<Bucket>, OwnedMutexGuard<UsageLedger>) -> F,
    ) -> Result<T, FileError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, FileError>> + Send + 'static,
    {
        if self.bucket.is_read_only {
            return Err(FileError::ReadOnly);
        }
        let ledger = Arc::clone(&self.ledger).lock_owned().await;
        ended(to_completion(change(Arc::clone(&self.bucket), ledger)).await)
    }
}

/// Returns the result of work that has ended.
fn ended<T>(result: Option<Result<T, FileError>>) -> Result<T, FileError> {
    result.unwrap_or_else(|| Err(io::Error::other("the work was interrupted").into()))
}

#[async_trait]
impl FileStore for BucketStore {
    fn locate(&self, path: &StorePath) -> FileLocation {
        FileLocation::in_store(Arc::as_ptr(&self.bucket).addr(), path)
    }

    fn is_read_only(&self) -> bool {
        self.bucket.is_read_only
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        if path.is_root() {
            return Ok(Stat::ROOT);
        }
        Ok(self.bucket.lookup(path).await?.ok_or(FileError::NotFound)?.stat())
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        if path.is_root() {
            Err(FileError::NotFound)
        } else {
            self.bucket.get(path, bytes_max).await
        }
    }

    async fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        if path.is_root() {
            Err(FileError::NotFound)
        } else {
            self.bucket.get_range(path, offset, length).await
        }
    }

    async fn write(
        &self,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        let path = path.clone();
        self.change_with(async move |bucket, mut ledger| {
            bucket.write(&mut ledger, &path, content, mode).await
        })
        .await
    }

    async fn delete(&self, path: &StorePath) -> Result<(), FileError> {
        let path = path.clone();
        self.change_with(async move |bucket, mut ledger| {
            bucket.delete_file(&mut ledger, &path).await
        })
        .await
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        self.bucket.list(directory, scope).await
    }

    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError> {
        let path = path.clone();
        self.change_with(async move |bucket, mut ledger| {
            bucket.create_directory(&mut ledger, &path).await
        })
        .await
    }

    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError> {
        let path = path.clone();
        self.change_with(async move |bucket, mut ledger| {
            bucket.remove_directory(&mut ledger, &path).await
        })
        .await
    }

    async fn rename(&self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        let (from, to) = (from.clone(), to.clone());
        self.change_with(async move |bucket, mut ledger| {
            bucket.rename(&mut ledger, &from, &to).await
        })
        .await
    }

    async fn room(&self) -> Result<Room, FileError> {
        let mut ledger = self.ledger.lock().await;
        Ok(Room { quota: self.bucket.quota, usage: self.bucket.usage(&mut ledger).await? })
    }

    async fn prepare(&self, changes: Changes) -> Result<Box<dyn PreparedCommit>, FileError> {
        if changes.is_empty() {
            return Ok(Box::new(NoChanges));
        }
        let changes = blocking(move || changes.load()).await?;
        let prepare =
            async move |bucket, ledger| BucketCommit::prepare(bucket, ledger, changes).await;
        Ok(Box::new(self.change_with(prepare).await?))
    }
}

/// Omits the service.
impl fmt::Debug for BucketStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketStore")
            .field("quota", &self.bucket.quota)
            .field("is_read_only", &self.bucket.is_read_only)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
