//! A file store in a bucket: S3, Google Cloud Storage, Azure, or objects in memory.
//!
//! A bucket knows keys and no directories. The key of a file is its path below the prefix of the
//! store. A directory is there as long as something is below it; an empty one is kept by an object
//! of a reserved name, the marker, which is written when a directory is created and before anything
//! in one is deleted or moved away (`FILE-12`). Listings do not show markers; somebody who looks at
//! the bucket with other tools sees them.
//!
//! A file is put in one request, so that readers see the old or the new content. An exclusive
//! create is a conditional put (`If-None-Match`), of which the service lets one succeed, whichever
//! host it comes from (`FILE-13`). The puts of a commit are conditional on the entity tag that was
//! seen (`If-Match`). The service has to support both; S3, R2, MinIO, Google and Azure do.
//!
//! What it costs: each operation is one to a few requests one after another, and a change needs to
//! know what is above its path. Moving a file copies it inside of the bucket, moving a directory
//! copies all that is in it. The quota needs a list of everything at the first change and again
//! when that has become old (see [`crate::ledger`]). Changes of one store take place one after
//! another in this process; reads wait for nobody.
//!
//! What it cannot do, because buckets cannot:
//!
//! * A rename and a commit of several changes are not atomic. They are undone when they fail, but a
//!   host that is killed leaves what it had done until then, and readers see what is half-way.
//!   Nothing is deleted before everything else is in place.
//! * Copies and deletes are not conditional. Of two hosts that move or delete while the other one
//!   writes, one may undo the other's work unseen; two hosts may together exceed a quota, or make a
//!   name a file and a directory at a time.
//! * What became of a request that was never answered is not known. It counts as not done; when the
//!   service did it all the same, a commit that failed leaves that one change, and a create may be
//!   refused by the file that it made itself.
//! * A directory that is created anew cannot be told from the one that was there.
//! * A key with an empty segment, or one of `.` or `..`, makes the listings that meet it fail; a
//!   key that ends in `/` (an empty directory of some tools) is an empty file in recursive ones.

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
use keys::Keys;
use object_store::ObjectStore;
use object_store::memory::InMemory;
#[cfg(feature = "cloud")]
pub use open::{BucketOptions, OpenBucketError};
use requests::Bucket;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::blocking::blocking;
use crate::ledger::Ledger;
use crate::{
    Changes, FileError, FileLocation, FileStore, Listing, MadeDirectory, Quota, Room, Scope, Stat,
    StorePath, WriteMode,
};

/// A file store in a bucket.
#[derive(Clone)]
pub struct BucketStore {
    bucket: Arc<Bucket>,
    /// Held by one change at a time, from its checks to its end.
    ledger: Arc<Mutex<Ledger>>,
}

impl BucketStore {
    /// An empty store over objects in memory, which behaves as one in a bucket does.
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

    /// A store over any objects, those whose keys are below `prefix`. They have to support
    /// conditional puts.
    ///
    /// # Errors
    /// When no key can start with `prefix`: one of its segments is empty, `.` or `..`.
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
        let ledger = Ledger::new(bucket.quota.counts);
        Self { bucket: Arc::new(bucket), ledger: Arc::new(Mutex::new(ledger)) }
    }

    /// Makes a change, alone among the changes of this store. It goes on when the caller stops
    /// waiting, so that it is made as a whole, and the next one waits for it.
    async fn change_with<T, F>(
        &self,
        change: impl FnOnce(Arc<Bucket>, OwnedMutexGuard<Ledger>) -> F,
    ) -> Result<T, FileError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, FileError>> + Send + 'static,
    {
        if self.bucket.is_read_only {
            return Err(FileError::ReadOnly);
        }
        let ledger = Arc::clone(&self.ledger).lock_owned().await;
        let work = change(Arc::clone(&self.bucket), ledger);
        match Handle::try_current() {
            // It fails when the runtime is shutting down.
            Ok(runtime) => runtime
                .spawn(work)
                .await
                .unwrap_or_else(|error| Err(io::Error::other(error).into())),
            Err(_) => work.await,
        }
    }
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
        Ok(self.bucket.look(path).await?.ok_or(FileError::NotFound)?.stat())
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

    async fn commit(&self, changes: Changes) -> Result<(), FileError> {
        if changes.is_empty() {
            return Ok(());
        }
        let changes = blocking(move || changes.load()).await?;
        self.change_with(async move |bucket, mut ledger| bucket.commit(&mut ledger, changes).await)
            .await
    }
}

/// Shows nothing of the service.
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
