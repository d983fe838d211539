//! Opens file stores that the command line or a configuration names.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::error::Context as _;
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
use cofferdam_files::{BucketOptions, BucketStore, read_named_text_ambient};
use cofferdam_files::{
    DirectoryOptions, DirectoryStore, FileStore, MemoryStore, NameRules, OpenDirectoryError, Quota,
    StoreSharing,
};
use cofferdam_tool::{FileAccess, MountName};

use crate::StoreLocation;
use crate::config::{ConfigError, ConfigFile, SECRET_FILE_BYTES_MAX, StoreConfig};
use crate::granting::Values;

/// Opens a store at a location. The keys of a bucket come from the environment variables that the
/// service's own command-line tools use.
pub(crate) fn open_location(
    location: &StoreLocation,
    access: FileAccess,
) -> crate::Result<Arc<dyn FileStore>> {
    match location {
        StoreLocation::Memory => Ok(Arc::new(MemoryStore::new(Quota::default()))),
        StoreLocation::Bucket(address) => open_named_bucket(address, access),
        StoreLocation::Directory(directory) => mount_directory(directory, access, Quota::growth()),
    }
}

/// Opens a directory of the host as a store. Names in it may be valid on this system only.
///
/// # Errors
/// Returns an error if the path is not a directory that can be opened.
pub fn open_directory(
    directory: &Path,
    access: FileAccess,
    quota: Quota,
) -> Result<Arc<dyn FileStore>, OpenDirectoryError> {
    let is_read_only = access == FileAccess::ReadOnly;
    let names = NameRules::Native;
    let options = DirectoryOptions { is_read_only, quota, names, ..DirectoryOptions::default() };
    Ok(Arc::new(DirectoryStore::open_ambient(directory, options)?))
}

/// Like [`open_directory`], with the directory's path in the error, which is one of the operator's
/// input.
pub(crate) fn mount_directory(
    directory: &Path,
    access: FileAccess,
    quota: Quota,
) -> crate::Result<Arc<dyn FileStore>> {
    open_directory(directory, access, quota)
        .with_context(|| format!("the directory {} cannot be mounted", directory.display()))
        .map_err(crate::Error::into_invalid)
}

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
fn open_named_bucket(address: &str, access: FileAccess) -> crate::Result<Arc<dyn FileStore>> {
    open_bucket(address, &from_environment(address, access)?)
}

#[cfg(not(any(feature = "s3", feature = "gcs", feature = "azure")))]
fn open_named_bucket(address: &str, _access: FileAccess) -> crate::Result<Arc<dyn FileStore>> {
    Err(crate::Error::invalid(format!("`{address}`: {NO_BUCKETS}")))
}

#[cfg(not(any(feature = "s3", feature = "gcs", feature = "azure")))]
const NO_BUCKETS: &str =
    "this program was built without stores in buckets; enable a feature: s3, gcs or azure";

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
fn open_bucket(address: &str, options: &BucketOptions) -> crate::Result<Arc<dyn FileStore>> {
    let store = BucketStore::open(address, options).context("the bucket cannot be opened")?;
    Ok(Arc::new(store))
}

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
fn from_environment(address: &str, access: FileAccess) -> crate::Result<BucketOptions> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let is_read_only = access == FileAccess::ReadOnly;
    let options =
        BucketOptions { is_read_only, quota: Quota::growth(), ..BucketOptions::default() };
    Ok(match address.split_once("://").map_or("", |(scheme, _)| scheme) {
        "s3" => BucketOptions {
            region: variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION")),
            endpoint: variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL")),
            access_key_id: variable("AWS_ACCESS_KEY_ID"),
            secret_key: variable("AWS_SECRET_ACCESS_KEY"),
            session_token: variable("AWS_SESSION_TOKEN"),
            ..options
        },
        "gs" => {
            let key = variable("GOOGLE_APPLICATION_CREDENTIALS").map(|path| {
                read_named_text_ambient(Path::new(&path), SECRET_FILE_BYTES_MAX).with_context(
                    || format!("the key in {path} cannot be read (GOOGLE_APPLICATION_CREDENTIALS)"),
                )
            });
            BucketOptions { secret_key: key.transpose()?, ..options }
        }
        "az" => BucketOptions {
            access_key_id: variable("AZURE_STORAGE_ACCOUNT_NAME"),
            secret_key: variable("AZURE_STORAGE_ACCOUNT_KEY"),
            ..options
        },
        _ => options,
    })
}

/// Stores of a configuration. Each is opened once, however many plugins are granted it: the plugins
/// see each other's changes, and a tool that calls another one shares its files with it.
pub struct Stores<'a> {
    file: &'a ConfigFile,
    values: Values,
}

impl<'a> Stores<'a> {
    /// Returns the stores of a configuration, none of them open. `values` controls whether keys of
    /// buckets are read.
    pub fn new(file: &'a ConfigFile, values: Values) -> Self {
        Self { file, values }
    }

    /// Returns the configuration.
    pub(crate) fn file(&self) -> &'a ConfigFile {
        self.file
    }

    /// Returns whether keys of buckets are read.
    pub(crate) fn values(&self) -> Values {
        self.values
    }

    /// Returns the store called `name`, which the configuration mentions at `span`.
    pub(crate) fn get(
        &self,
        name: &MountName,
        span: Range<usize>,
    ) -> Result<Arc<dyn FileStore>, ConfigError> {
        // A store without write grants is opened read-only.
        let access = if self.file.may_write(name.as_str()) {
            FileAccess::ReadWrite
        } else {
            FileAccess::ReadOnly
        };
        self.open_named(name, access, &|message| self.file.error(span.clone(), message))
    }

    /// Returns the store called `name` for this access. `error` makes an error about the name.
    pub(crate) fn open_named(
        &self,
        name: &MountName,
        access: FileAccess,
        error: &dyn Fn(String) -> ConfigError,
    ) -> Result<Arc<dyn FileStore>, ConfigError> {
        let stores = &self.file.config.stores;
        let Some(config) = stores.get(name.as_str()) else {
            let known: Vec<_> = stores.keys().map(|k| format!("`{k}`")).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(error(format!(
                "there is no store `{name}`; stores of the configuration: {known}"
            )));
        };
        // A store in memory exists once, and has no form for reading only.
        let is_read_only = access == FileAccess::ReadOnly && config.memory != Some(true);
        let suffix = if is_read_only { ":ro" } else { "" };
        let key = (format!("{name}{suffix}"), self.values == Values::Leave);
        let mut open = self.file.open_stores.0.lock();
        if let Some(store) = open.get(&key) {
            return Ok(Arc::clone(store));
        }
        let store = self.open("stores", name.as_str(), config, access)?;
        open.insert(key, Arc::clone(&store));
        Ok(store)
    }

    /// Returns whether sessions share a store.
    pub(crate) fn sharing(&self, name: &MountName) -> StoreSharing {
        Self::sharing_of(self.file.config.stores.get(name.as_str()))
    }

    /// Returns whether sessions share a store with this configuration.
    pub(crate) fn sharing_of(config: Option<&StoreConfig>) -> StoreSharing {
        let is_per_session = config.is_some_and(|config| config.per_session);
        if is_per_session { StoreSharing::PerSession } else { StoreSharing::Shared }
    }

    /// Returns the store that the table `[files.NAME]` defines. It is opened once.
    pub(crate) fn open_own(
        &self,
        name: &str,
        config: &StoreConfig,
        access: FileAccess,
    ) -> Result<Arc<dyn FileStore>, ConfigError> {
        // Cannot conflict: names of `[stores]` have no dot.
        let key = (format!("files.{name}"), self.values == Values::Leave);
        let mut open = self.file.open_stores.0.lock();
        if let Some(store) = open.get(&key) {
            return Ok(Arc::clone(store));
        }
        let store = self.open("files", name, config, access)?;
        open.insert(key, Arc::clone(&store));
        Ok(store)
    }

    fn open(
        &self,
        table: &str,
        name: &str,
        config: &StoreConfig,
        access: FileAccess,
    ) -> Result<Arc<dyn FileStore>, ConfigError> {
        let file = self.file;
        // An explicit quota counts all content. The default limits only growth, because the
        // operator's directory or bucket may already be large.
        let quota = config.quota.unwrap_or_else(Quota::growth);
        match (&config.directory, &config.url, &config.memory) {
            (Some(directory), None, None) => {
                let path = file.resolve(directory.as_ref());
                mount_directory(&path, access, quota)
                    .map_err(|error| file.error(directory.span(), format!("{error:#}")))
            }
            (None, Some(url), None) => self.open_bucket(config, url, quota, access),
            (None, None, Some(true)) => {
                Ok(Arc::new(MemoryStore::new(config.quota.unwrap_or_default())))
            }
            _ => {
                let message = format!(
                    "[{table}.{name}] needs one of: directory = \"…\", url = \"s3://…\" (or \
                     gs://, az://), memory = true"
                );
                Err(file.error_in_table(&format!("[{table}.{name}"), message))
            }
        }
    }

    #[cfg(not(any(feature = "s3", feature = "gcs", feature = "azure")))]
    fn open_bucket(
        &self,
        _config: &StoreConfig,
        url: &toml::Spanned<String>,
        _quota: Quota,
        _access: FileAccess,
    ) -> Result<Arc<dyn FileStore>, ConfigError> {
        Err(self.file.error(url.span(), NO_BUCKETS))
    }

    #[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
    fn open_bucket(
        &self,
        config: &StoreConfig,
        url: &toml::Spanned<String>,
        quota: Quota,
        access: FileAccess,
    ) -> Result<Arc<dyn FileStore>, ConfigError> {
        let options = self.bucket(config, quota, access)?;
        open_bucket(url.as_ref(), &options)
            .map_err(|error| self.file.error(url.span(), format!("{error:#}")))
    }

    #[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
    fn bucket(
        &self,
        config: &StoreConfig,
        quota: Quota,
        access: FileAccess,
    ) -> Result<BucketOptions, ConfigError> {
        let options = BucketOptions {
            is_read_only: access == FileAccess::ReadOnly,
            quota,
            region: config.region.clone(),
            endpoint: config.endpoint.clone(),
            is_virtual_hosted: config.virtual_hosted,
            ..BucketOptions::default()
        };
        if self.values == Values::Leave {
            // Opening a store sends no request, so it needs no keys.
            let azure_needs_one =
                config.url.as_ref().is_some_and(|url| url.get_ref().starts_with("az://"));
            let access_key_id = config.access_key_id.clone().filter(|_| azure_needs_one);
            return Ok(BucketOptions { access_key_id, ..options });
        }
        let secret = |name: &Option<toml::Spanned<String>>| match name {
            None => Ok(None),
            Some(name) => self.secret(name.get_ref(), name.span()).map(Some),
        };
        Ok(BucketOptions {
            access_key_id: config.access_key_id.clone(),
            secret_key: secret(&config.secret_key)?,
            session_token: secret(&config.session_token)?,
            ..options
        })
    }

    #[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
    fn secret(&self, name: &str, span: Range<usize>) -> Result<String, ConfigError> {
        let Some(source) = self.file.config.secrets.get(name) else {
            return Err(self.file.error(span, format!("there is no secret `{name}` in [secrets]")));
        };
        Ok(self.file.read_secret(name, source)?.expose().to_owned())
    }
}
