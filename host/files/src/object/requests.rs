//! Requests to a bucket, and the meaning of their failures.

use std::sync::Arc;
use std::time::SystemTime;

use futures_util::{StreamExt as _, TryStreamExt as _};
#[cfg(feature = "cloud")]
use object_store::ListResult;
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

/// Metadata key under which each write stores a unique string: an entity tag identifies the content
/// and does not show that it was written again.
const WRITE: &str = "cofferdam-write";

/// Minimum number of objects that a listing may read: a hundred pages, which takes some seconds.
const LISTED_MIN: u64 = 100_000;
/// Number of objects that a listing may read per entry that the quota allows: each entry may have a
/// marker besides its object.
const LISTED_PER_ENTRY: u64 = 2;
/// Maximum number of pages in a row without an entry.
#[cfg(feature = "cloud")]
const EMPTY_PAGES_MAX: usize = 100;

/// A bucket, or a part of one.
#[derive(Clone)]
pub(super) struct Bucket {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// The same bucket, for services that can list single pages.
    #[cfg(feature = "cloud")]
    pub(super) pages: Option<Arc<dyn PaginatedListStore>>,
    pub(super) keys: Keys,
    pub(super) service: Arc<Service>,
    pub(super) quota: Quota,
    pub(super) is_read_only: bool,
}

/// Metadata of an object.
#[derive(Debug, Clone)]
pub(super) struct ObjectInfo {
    pub(super) bytes: u64,
    pub(super) modified: SystemTime,
    pub(super) version: Version,
    /// State that a conditional put compares.
    pub(super) state: UpdateVersion,
    /// Unique string of the write that put the object, if this host did.
    write: Option<String>,
}

/// One level of a listing.
#[derive(Default)]
pub(super) struct Level {
    pub(super) objects: Vec<ObjectMeta>,
    pub(super) directories: Vec<Path>,
    pub(super) is_truncated: bool,
}

/// Condition of a put.
#[derive(Debug, Clone)]
pub(super) enum PutCondition {
    Always,
    Missing,
    Unchanged(UpdateVersion),
}

impl Bucket {
    /// Returns the metadata of the object at `key`.
    pub(super) async fn head(&self, key: &str) -> Result<Option<ObjectInfo>, FileError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        match self.objects.get_opts(&self.keys.location(key)?, options).await {
            Ok(found) => Ok(Some(object(&found.meta, &found.attributes))),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Reads a file, unless it is longer than `bytes_max`, which is known before any content
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

    /// Reads a part of a file. If the range is empty, the service reports an unspecific error; then
    /// the length of the file is requested to find the cause.
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

    /// Puts an object. Fails with [`FileError::AlreadyExists`] if `condition` is not met.
    ///
    /// A request whose answer is lost is sent again, and then fails because of the first one. The
    /// object shows whose write it is.
    pub(super) async fn put(
        &self,
        key: &str,
        content: Vec<u8>,
        condition: PutCondition,
    ) -> Result<(), FileError> {
        let mode = match condition {
            PutCondition::Always => PutMode::Overwrite,
            PutCondition::Missing => PutMode::Create,
            PutCondition::Unchanged(state) => PutMode::Update(state),
        };
        let (location, write) = (self.keys.location(key)?, unique());
        let attributes =
            Attributes::from_iter([(Attribute::Metadata(WRITE.into()), write.clone())]);
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        match self.objects.put_opts(&location, content.into(), options).await {
            Ok(_) => Ok(()),
            Err(
                Error::AlreadyExists { .. }
                | Error::Precondition { .. }
                | Error::NotModified { .. },
            ) => match self.head(key).await {
                Ok(Some(found)) if found.write.as_deref() == Some(write.as_str()) => Ok(()),
                _ => Err(FileError::AlreadyExists),
            },
            Err(error) => Err(self.failure(error)),
        }
    }

    /// Copies an object inside the bucket.
    pub(super) async fn copy(&self, from: &str, to: &str) -> Result<(), FileError> {
        let (from, to) = (self.keys.location(from)?, self.keys.location(to)?);
        self.objects
            .copy_opts(&from, &to, CopyOptions::default())
            .await
            .map_err(|error| self.missing_or(error))
    }

    /// Deletes objects; missing ones are not an error. Tries all of them, even if some fail.
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

    /// Returns whether any object exists below `directory`.
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

    /// Lists the objects below `directory`, in no particular order. The flag is true if the listing
    /// stopped at the limit.
    pub(super) async fn all(
        &self,
        directory: &StorePath,
    ) -> Result<(Vec<ObjectMeta>, bool), FileError> {
        let location = self.keys.location(directory.as_str())?;
        let mut found = Vec::new();
        #[cfg(feature = "cloud")]
        if let Some(pages) = &self.pages {
            let level = objects_below(&**pages, &location, None, self.listed_max()).await;
            let level = level.map_err(|error| self.failure(error))?;
            return Ok((level.objects, level.is_truncated));
        }
        let mut stream = self.objects.list(Some(&location));
        while let Some(object) = stream.try_next().await.map_err(|error| self.failure(error))? {
            if found.len() >= self.listed_max() {
                return Ok((found, true));
            }
            found.push(object);
        }
        Ok((found, false))
    }

    /// Lists the objects and directories in `directory`.
    pub(super) async fn level(&self, directory: &StorePath) -> Result<Level, FileError> {
        let location = self.keys.location(directory.as_str())?;
        #[cfg(feature = "cloud")]
        if let Some(pages) = &self.pages {
            let level = objects_below(&**pages, &location, Some("/"), self.listed_max()).await;
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

    /// Returns the error for a missing object. A service answers in the same way if there is no
    /// bucket, so the first time the bucket is listed. If listing it is not permitted, it is taken
    /// to exist.
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

/// Converts the result of a listing or a request for an object.
pub(super) fn object(meta: &ObjectMeta, attributes: &Attributes) -> ObjectInfo {
    let write = attributes.get(&Attribute::Metadata(WRITE.into())).map(AsRef::as_ref);
    ObjectInfo {
        bytes: meta.size,
        modified: meta.last_modified.into(),
        version: version_of(meta, write),
        state: UpdateVersion { e_tag: meta.e_tag.clone(), version: meta.version.clone() },
        write: write.map(str::to_owned),
    }
}

#[cfg(feature = "cloud")]
fn below(location: &Path) -> Option<String> {
    (!location.as_ref().is_empty()).then(|| format!("{location}/"))
}

#[cfg(feature = "cloud")]
async fn any_below(pages: &dyn PaginatedListStore, location: &Path) -> Result<bool, Error> {
    let mut pages = Pages::new(
        pages,
        location,
        PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() },
    );
    while let Some(page) = pages.next().await? {
        if !page.objects.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lists the objects below `location`, and with a delimiter the directories instead of what is in
/// them.
#[cfg(feature = "cloud")]
async fn objects_below(
    pages: &dyn PaginatedListStore,
    location: &Path,
    delimiter: Option<&'static str>,
    listed_max: usize,
) -> Result<Level, Error> {
    let options = PaginatedListOptions {
        delimiter: delimiter.map(Into::into),
        ..PaginatedListOptions::default()
    };
    let mut pages = Pages::new(pages, location, options);
    let mut level = Level::default();
    while let Some(page) = pages.next().await? {
        level.objects.extend(page.objects);
        level.directories.extend(page.common_prefixes);
        if !pages.is_last
            && level.objects.len().saturating_add(level.directories.len()) >= listed_max
        {
            level.is_truncated = true;
            break;
        }
    }
    Ok(level)
}

/// Pages of a listing.
#[cfg(feature = "cloud")]
struct Pages<'p> {
    pages: &'p dyn PaginatedListStore,
    prefix: Option<String>,
    options: PaginatedListOptions,
    /// Number of pages without an entry since the last one with entries.
    empty: usize,
    is_last: bool,
}

#[cfg(feature = "cloud")]
impl<'p> Pages<'p> {
    fn new(
        pages: &'p dyn PaginatedListStore,
        location: &Path,
        options: PaginatedListOptions,
    ) -> Self {
        Self { pages, prefix: below(location), options, empty: 0, is_last: false }
    }

    /// Requests the next page; `None` after the last one.
    async fn next(&mut self) -> Result<Option<ListResult>, Error> {
        if self.is_last {
            return Ok(None);
        }
        let page = self.pages.list_paginated(self.prefix.as_deref(), self.options.clone()).await?;
        // Azure may send empty pages before the last one.
        let has_entries =
            !page.result.objects.is_empty() || !page.result.common_prefixes.is_empty();
        self.empty = if has_entries { 0 } else { self.empty.saturating_add(1) };
        if self.empty > EMPTY_PAGES_MAX
            || page.page_token.is_some() && page.page_token == self.options.page_token
        {
            return Err(Error::Generic {
                store: "listing",
                source: "the listing does not end".into(),
            });
        }
        self.is_last = page.page_token.is_none();
        self.options.page_token = page.page_token;
        Ok(Some(page.result))
    }
}

#[cfg(all(test, feature = "cloud"))]
mod tests {
    use async_trait::async_trait;
    use object_store::list::PaginatedListResult;

    use super::*;

    /// Service whose listings have no entries and no end.
    #[derive(Debug)]
    struct Endless {
        has_new_tokens: bool,
    }

    #[async_trait]
    impl PaginatedListStore for Endless {
        async fn list_paginated(
            &self,
            _prefix: Option<&str>,
            options: PaginatedListOptions,
        ) -> Result<PaginatedListResult, Error> {
            let before: usize =
                options.page_token.map_or(0, |token| token.parse().unwrap_or_default());
            let token = if self.has_new_tokens { before + 1 } else { 7 };
            let result = ListResult {
                common_prefixes: Vec::new(),
                objects: Vec::new(),
                extensions: Default::default(),
            };
            Ok(PaginatedListResult { result, page_token: Some(token.to_string()) })
        }
    }

    #[tokio::test]
    async fn listings_without_an_end_are_given_up() {
        for has_new_tokens in [false, true] {
            let pages = Endless { has_new_tokens };
            assert!(any_below(&pages, &Path::default()).await.is_err());
            assert!(objects_below(&pages, &Path::default(), None, 10).await.is_err());
        }
    }
}
