//! The requests that are made of a bucket, and what their failures mean.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::{StreamExt as _, TryStreamExt as _};
#[cfg(feature = "cloud")]
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, CopyOptions, Error, GetOptions, GetRange, ObjectMeta, ObjectStore,
    PutMode, PutOptions, UpdateVersion,
};

use super::keys::{Key, Keys, unique};
use super::service::Service;
use super::version::version_of;
use crate::{FileError, Quota, ServiceProblem, StorePath, Version};

/// The metadata in which each write leaves a text of its own: an entity tag says what the content
/// is, not that it was written again.
const WRITE: &str = "cofferdam-write";

/// Least number of objects that are looked at: a hundred pages, which is some seconds.
const LISTED_MIN: u64 = 100_000;
/// Objects that are looked at per entry that the quota allows: a directory has one of its own at
/// most.
const LISTED_PER_ENTRY: u64 = 2;

/// A bucket, or a part of one.
#[derive(Clone)]
pub(super) struct Bucket {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// The same, where single pages can be asked for.
    #[cfg(feature = "cloud")]
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    pub(super) keys: Keys,
    pub(super) service: Arc<Service>,
    pub(super) quota: Quota,
    pub(super) is_read_only: bool,
}

/// What is known of an object.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) bytes: u64,
    pub(super) modified: SystemTime,
    pub(super) version: Version,
    /// What a conditional put compares.
    pub(super) state: UpdateVersion,
}

/// What one level of a listing holds.
#[derive(Default)]
pub(super) struct Level {
    pub(super) objects: Vec<ObjectMeta>,
    pub(super) directories: Vec<Path>,
    pub(super) is_truncated: bool,
}

/// When a put is to take place.
#[derive(Debug, Clone)]
pub(super) enum Condition {
    Always,
    Missing,
    Unchanged(UpdateVersion),
}

impl Bucket {
    /// What is known of the object of `key`.
    pub(super) async fn head(&self, key: &str) -> Result<Option<Object>, FileError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        match self.objects.get_opts(&self.keys.location(key)?, options).await {
            Ok(found) => Ok(Some(object(&found.meta, &found.attributes))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failure(error)),
        }
    }

    /// The content of a file, unless it is longer than `bytes_max`: that is known before any of it
    /// arrives.
    pub(super) async fn get(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let location = self.keys.location(path.as_str())?;
        let found = self
            .objects
            .get_opts(&location, GetOptions::default())
            .await
            .map_err(|error| self.missing_or(error));
        let found = match found {
            Err(FileError::NotFound) => return Err(self.missing().await),
            found => found?,
        };
        let bytes = found.meta.size;
        if bytes > bytes_max {
            return Err(FileError::TooLarge { bytes, bytes_max });
        }
        Ok(found.bytes().await.map_err(|error| self.missing_or(error))?.into())
    }

    /// A part of a file. Where that is empty, the request fails with an error that has no name;
    /// then the file is asked for its length.
    pub(super) async fn get_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        let end = offset.saturating_add(length);
        let mut reason = None;
        if offset < end {
            let range = Some(GetRange::Bounded(offset..end));
            let options = GetOptions { range, ..GetOptions::default() };
            match self.objects.get_opts(&self.keys.location(path.as_str())?, options).await {
                Ok(found) => {
                    return Ok(found.bytes().await.map_err(|error| self.missing_or(error))?.into());
                }
                Err(Error::NotFound { .. }) => return Err(self.missing().await),
                Err(error) => reason = Some(self.failure(error)),
            }
        }
        let found = self.head(path.as_str()).await?.ok_or(FileError::NotFound)?;
        match reason {
            Some(reason) if offset < found.bytes => Err(reason),
            _ => Ok(Vec::new()),
        }
    }

    /// Puts an object. What `condition` refuses is [`FileError::AlreadyExists`].
    pub(super) async fn put(
        &self,
        key: &str,
        content: Vec<u8>,
        condition: Condition,
    ) -> Result<(), FileError> {
        let mode = match condition {
            Condition::Always => PutMode::Overwrite,
            Condition::Missing => PutMode::Create,
            Condition::Unchanged(state) => PutMode::Update(state),
        };
        let attributes = Attributes::from_iter([(Attribute::Metadata(WRITE.into()), unique())]);
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        match self.objects.put_opts(&self.keys.location(key)?, content.into(), options).await {
            Ok(_) => Ok(()),
            Err(
                Error::AlreadyExists { .. }
                | Error::Precondition { .. }
                | Error::NotModified { .. },
            ) => Err(FileError::AlreadyExists),
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Copies an object inside of the bucket.
    pub(super) async fn copy(&self, from: &str, to: &str) -> Result<(), FileError> {
        let (from, to) = (self.keys.location(from)?, self.keys.location(to)?);
        self.objects
            .copy_opts(&from, &to, CopyOptions::default())
            .await
            .map_err(|error| self.missing_or(error))
    }

    /// Deletes objects; those that are missing are no error. Tries all of them, whatever happens to
    /// one.
    pub(super) async fn delete(
        &self,
        keys: impl IntoIterator<Item = Key>,
    ) -> Result<(), FileError> {
        let locations: Vec<_> =
            keys.into_iter().map(|key| self.keys.location(&key)).collect::<Result<_, _>>()?;
        if locations.is_empty() {
            return Ok(());
        }
        let stream = futures_util::stream::iter(locations.into_iter().map(Ok)).boxed();
        let mut deleted = self.objects.delete_stream(stream);
        let mut result = Ok(());
        while let Some(one) = deleted.next().await {
            match one {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => result = Err(self.failure(error)),
            }
        }
        result
    }

    /// Whether there is any object below `directory`.
    pub(super) async fn is_directory(&self, directory: &StorePath) -> Result<bool, FileError> {
        let location = self.keys.location(directory.as_str())?;
        #[cfg(feature = "cloud")]
        if let Some(pages) = &self.pages {
            return any_below(&**pages, &location).await.map_err(|error| self.failure(error));
        }
        Ok(self
            .objects
            .list(Some(&location))
            .try_next()
            .await
            .map_err(|error| self.failure(error))?
            .is_some())
    }

    /// Every object below `directory`, in no order, and whether there are more than anyone has time
    /// for.
    pub(super) async fn all(
        &self,
        directory: &StorePath,
    ) -> Result<(Vec<ObjectMeta>, bool), FileError> {
        let location = self.keys.location(directory.as_str())?;
        let mut found = Vec::new();
        let mut stream = self.objects.list(Some(&location));
        while let Some(object) = stream.try_next().await.map_err(|error| self.failure(error))? {
            if found.len() >= self.listed_max() {
                return Ok((found, true));
            }
            found.push(object);
        }
        Ok((found, false))
    }

    /// The objects and directories in `directory`.
    pub(super) async fn level(&self, directory: &StorePath) -> Result<Level, FileError> {
        let location = self.keys.location(directory.as_str())?;
        #[cfg(feature = "cloud")]
        if let Some(pages) = &self.pages {
            let level = level_of(&**pages, &location, self.listed_max()).await;
            return level.map_err(|error| self.failure(error));
        }
        let found = self
            .objects
            .list_with_delimiter(Some(&location))
            .await
            .map_err(|error| self.failure(error))?;
        Ok(Level {
            objects: found.objects,
            directories: found.common_prefixes,
            is_truncated: false,
        })
    }

    fn failure(&self, error: Error) -> FileError {
        self.service.failure(error).into()
    }

    fn missing_or(&self, error: Error) -> FileError {
        match error {
            Error::NotFound { .. } => FileError::NotFound,
            error => self.failure(error),
        }
    }

    /// Returns the reason why there is no object. A service answers in the same way if there is no
    /// bucket, so the first time the bucket is listed. One that may not be listed is taken to
    /// exist.
    async fn missing(&self) -> FileError {
        if self.service.is_found() {
            return FileError::NotFound;
        }
        match self.is_directory(&StorePath::ROOT).await {
            Err(FileError::Host(failure))
                if failure
                    .service()
                    .is_some_and(|failure| failure.problem == ServiceProblem::NoBucket) =>
            {
                failure.into()
            }
            _ => FileError::NotFound,
        }
    }

    fn listed_max(&self) -> usize {
        let max = self.quota.entries_max.saturating_mul(LISTED_PER_ENTRY).max(LISTED_MIN);
        usize::try_from(max).unwrap_or(usize::MAX)
    }
}

/// What a listing or a request for an object tells of it.
pub(super) fn object(meta: &ObjectMeta, attributes: &Attributes) -> Object {
    let write = attributes.get(&Attribute::Metadata(WRITE.into())).map(AsRef::as_ref);
    Object {
        bytes: meta.size,
        modified: meta.last_modified.into(),
        version: version_of(meta, write),
        state: UpdateVersion { e_tag: meta.e_tag.clone(), version: meta.version.clone() },
    }
}

#[cfg(feature = "cloud")]
fn below(location: &Path) -> Option<String> {
    (!location.as_ref().is_empty()).then(|| format!("{location}/"))
}

#[cfg(feature = "cloud")]
async fn any_below(pages: &dyn PaginatedListStore, location: &Path) -> Result<bool, Error> {
    let prefix = below(location);
    let mut page_token = None;
    loop {
        let options = PaginatedListOptions {
            max_keys: Some(1),
            page_token,
            ..PaginatedListOptions::default()
        };
        let page = pages.list_paginated(prefix.as_deref(), options).await?;
        if !page.result.objects.is_empty() {
            return Ok(true);
        }
        // Azure may send empty pages before the last one.
        match page.page_token {
            Some(token) => page_token = Some(token),
            None => return Ok(false),
        }
    }
}

#[cfg(feature = "cloud")]
async fn level_of(
    pages: &dyn PaginatedListStore,
    location: &Path,
    listed_max: usize,
) -> Result<Level, Error> {
    let prefix = below(location);
    let mut level = Level::default();
    let mut page_token = None;
    loop {
        let options = PaginatedListOptions {
            delimiter: Some("/".into()),
            page_token,
            ..PaginatedListOptions::default()
        };
        let page = pages.list_paginated(prefix.as_deref(), options).await?;
        level.objects.extend(page.result.objects);
        level.directories.extend(page.result.common_prefixes);
        match page.page_token {
            Some(_)
                if level.objects.len().saturating_add(level.directories.len()) >= listed_max =>
            {
                level.is_truncated = true;
                return Ok(level);
            }
            Some(token) => page_token = Some(token),
            None => return Ok(level),
        }
    }
}
