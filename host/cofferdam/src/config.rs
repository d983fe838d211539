//! `cofferdam.toml`: plugins, remote servers, file stores, skills, models, secrets, grants and
//! limits.
//!
//! The file is read only if it is named explicitly or trusted ([`trust`](crate::trust)), because a
//! configuration in the working directory could come from an untrusted repository. Paths in it are
//! relative to the file. `docs/configuration.md` describes every key.

#[cfg(feature = "agent")]
mod agent;
#[cfg(feature = "agent")]
mod agent_calls;
#[cfg(feature = "cluster")]
mod cluster;
mod code;
mod component;
pub mod edit;
mod files;
mod grants;
#[cfg(feature = "labels")]
mod labels;
#[cfg(any(feature = "anthropic", feature = "openai"))]
mod models;
#[cfg(feature = "registry")]
mod plugin_index;
#[cfg(feature = "registry")]
mod registry;
mod secrets;
#[cfg(feature = "mcp")]
mod serve;
#[cfg(feature = "mcp")]
mod servers;
#[cfg(feature = "skills")]
mod skills;
mod toolsets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_files::{FileStore, Quota, read_named_text_ambient};
use cofferdam_tool::Limits;
use cofferdam_tool::permission::{RequestedLimits, SecretText};
use cofferdam_tool::recording::RecordingLevel;
use cofferdam_tool::usage::UsageLimits;
use parking_lot::Mutex;
use serde::Deserialize;
use toml::Spanned;

#[cfg(feature = "agent")]
pub use self::agent::AgentTable;
#[cfg(all(feature = "workflows", any(feature = "anthropic", feature = "openai")))]
pub(crate) use self::agent::loop_names;
#[cfg(feature = "cluster")]
pub(crate) use self::cluster::{ClusterTable, VersionTable};
pub(crate) use self::code::CodeTable;
pub use self::component::{ComponentLocation, InvalidLocation};
pub(crate) use self::files::FilesTable;
#[cfg(feature = "otlp")]
pub(crate) use self::grants::sources;
pub use self::grants::{GrantsTable, OfferedGrants, SpannedMessage, ValueSource};
#[cfg(feature = "labels")]
pub use self::labels::LabelsTable;
#[cfg(any(feature = "anthropic", feature = "openai"))]
pub(crate) use self::models::{ModelTable, Provider, TimeoutTable};
#[cfg(feature = "registry")]
pub use self::plugin_index::{InvalidIndex, PluginIndex};
#[cfg(feature = "registry")]
pub use self::registry::UnsignedPolicy;
#[cfg(feature = "registry")]
pub(crate) use self::registry::{AdvisoryLocation, MirrorTable, RegistryTable, TrustTable};
pub use self::secrets::{SECRET_FILE_BYTES_MAX, SecretSource};
#[cfg(feature = "mcp")]
pub use self::serve::{OAuthTable, ServeTable};
#[cfg(feature = "mcp")]
pub use self::servers::{HeaderSource, ServerOAuthTable, ServerTable};
#[cfg(feature = "skills")]
pub use self::skills::SkillsTable;
pub use self::toolsets::ToolsetTable;
use crate::StoreLocation;
use crate::records::RecordsTable;

/// Maximum size of a configuration file in bytes.
pub(crate) const CONFIG_BYTES_MAX: u64 = 1024 * 1024;

/// Parsed content of a configuration file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
#[derive(Default)]
pub struct Config {
    /// File stores by name.
    pub stores: BTreeMap<String, StoreConfig>,
    /// Stores of the file-access tools, by name.
    pub files: BTreeMap<String, FilesTable>,
    /// Sources of secrets, by name.
    pub secrets: BTreeMap<String, Spanned<SecretSource>>,
    /// Grants of every plugin.
    pub grants: GrantsTable,
    /// Plugins by name.
    pub plugins: BTreeMap<String, PluginConfig>,
    /// Remote MCP servers by name.
    #[cfg(feature = "mcp")]
    pub servers: BTreeMap<String, ServerTable>,
    /// Default limits of plugins.
    pub(crate) limits: Limits,
    /// Tools for MCP clients, and access over HTTP.
    #[cfg(feature = "mcp")]
    pub(crate) serve: ServeTable,
    /// Versions of the tools of workers.
    #[cfg(feature = "cluster")]
    pub(crate) cluster: ClusterTable,
    /// Directories of skills, and grants of their scripts.
    #[cfg(feature = "skills")]
    pub(crate) skills: SkillsTable,
    /// Models by name.
    #[cfg(any(feature = "anthropic", feature = "openai"))]
    pub models: BTreeMap<String, ModelTable>,
    /// Settings of agents.
    #[cfg(feature = "agent")]
    pub(crate) agent: AgentTable,
    /// Label policy.
    #[cfg(feature = "labels")]
    pub labels: LabelsTable,
    /// Programs of the model that call tools.
    pub(crate) code: CodeTable,
    /// Registries that plugins come from.
    #[cfg(feature = "registry")]
    pub(crate) registry: RegistryTable,
    /// Call log.
    pub(crate) records: RecordsTable,
    /// Subsets of the tools, by name.
    pub(crate) toolsets: BTreeMap<String, ToolsetTable>,
}

/// `[stores.NAME]`: one of `directory`, `url` and `memory`, and the related settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct StoreConfig {
    /// Directory of the store.
    pub directory: Option<Spanned<PathBuf>>,
    /// Bucket of the store: `s3://bucket/prefix`, `gs://…` or `az://…`.
    pub(crate) url: Option<Spanned<String>>,
    /// True if the store is in memory: initially empty, and lost when the process ends.
    pub(crate) memory: Option<bool>,
    /// Quota of the store.
    pub(crate) quota: Option<Quota>,
    /// True if each session has its own directory in the store.
    pub(crate) per_session: bool,
    /// Region of a bucket.
    pub(crate) region: Option<String>,
    /// Endpoint of a compatible service, instead of Amazon's, Google's or Microsoft's own.
    pub(crate) endpoint: Option<String>,
    /// True if the bucket's name is part of the host name.
    pub(crate) virtual_hosted: bool,
    /// Id of the access key; for Azure the name of the account.
    pub(crate) access_key_id: Option<String>,
    /// Name of the secret that holds the key.
    pub(crate) secret_key: Option<Spanned<String>>,
    /// Name of the secret that holds the token of a temporary key.
    pub(crate) session_token: Option<Spanned<String>>,
}

impl StoreConfig {
    /// Returns whether the store outlasts the process.
    pub(crate) fn is_lasting(&self) -> bool {
        self.directory.is_some() || self.url.is_some()
    }
}

/// `[plugins.NAME]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct PluginConfig {
    /// Component.
    pub component: Spanned<ComponentLocation>,
    /// Grants of the plugin.
    #[serde(default)]
    pub grants: GrantsTable,
    /// True if the plugin gets the default grants of all plugins.
    #[serde(default = "yes")]
    pub(crate) default_grants: bool,
    /// True if a change of the component or its definitions needs consent.
    #[serde(default = "yes")]
    pub(crate) pin: bool,
    /// Maximum number of retries of a call that ends as `Conflict`.
    #[serde(default)]
    pub(crate) retries: u32,
    /// Maximum number of retries of a call that ends in a transient failure.
    #[serde(default)]
    pub(crate) transient_retries: u32,
    /// Treatment of its unexpected errors.
    #[serde(default)]
    pub(crate) errors: UnexpectedErrors,
    /// Calls that are recorded so that they can run again. Omitted, `[records]` decides.
    #[serde(default)]
    pub(crate) replay: Option<RecordingLevel>,
    /// Limits on the calls of all its tools together.
    #[serde(default)]
    pub(crate) usage: UsageLimits,
    /// Limits of its calls. Omitted keys have the value of the file's `[limits]`.
    #[serde(default)]
    pub(crate) limits: RequestedLimits,
}

/// Treatment of errors that the author of a plugin did not mean for the model, such as unhandled
/// exceptions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum UnexpectedErrors {
    /// The model sees only the type. The text is in the record of the call.
    #[default]
    Hidden,
    /// The model sees the text, which may contain anything that the plugin has read.
    Shown,
}

fn yes() -> bool {
    true
}

/// A well-formed configuration, with its source.
#[derive(Debug)]
pub struct ConfigFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Content of the file.
    pub text: String,
    /// Parsed content.
    pub config: Config,
    pub(crate) open_stores: OpenStores,
}

/// Open stores of a configuration, by name and by whether secret values were left unread. All users
/// of a store share one instance, so they see each other's changes.
#[derive(Default)]
pub(crate) struct OpenStores(pub(crate) Mutex<BTreeMap<(String, bool), Arc<dyn FileStore>>>);

impl std::fmt::Debug for OpenStores {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenStores").finish_non_exhaustive()
    }
}

/// Error in a configuration, with its position.
#[derive(Debug, thiserror::Error)]
#[error("{}{}: {message}", .path.display(), position(*.at))]
pub struct ConfigError {
    pub(crate) path: PathBuf,
    /// Line and column, from 1.
    pub at: Option<(usize, usize)>,
    /// Description of the error.
    pub message: String,
}

fn position(at: Option<(usize, usize)>) -> String {
    at.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default()
}

impl ConfigFile {
    /// Reads a configuration file and checks its form.
    pub fn read_ambient(path: &Path) -> Result<Self, ConfigError> {
        let error = |at, message| ConfigError { path: path.to_owned(), at, message };
        let text = read_named_text_ambient(path, CONFIG_BYTES_MAX);
        let text = text.map_err(|e| error(None, e.to_string()))?;
        Self::parse(path, &text)
    }

    /// Parses the content of a configuration file and checks its form.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let config = toml::from_str(text).map_err(|e| ConfigError {
            path: path.to_owned(),
            at: e.span().map(|span| line_and_column(text, span.start)),
            message: e.message().to_owned(),
        })?;
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            config,
            open_stores: OpenStores::default(),
        })
    }

    /// Returns the value of the secret `name` from `source`.
    pub(crate) fn read_secret(
        &self,
        name: &str,
        source: &Spanned<SecretSource>,
    ) -> Result<SecretText, ConfigError> {
        let read = source.get_ref().read_ambient(|path| self.resolve(path));
        read.map_err(|e| {
            self.error(source.span(), format!("the secret `{name}` cannot be read: {e:#}"))
        })
    }

    /// Returns whether any plugin, or the file-access tools, may change something in a store.
    pub(crate) fn may_write(&self, store: &str) -> bool {
        let is_it =
            |table: &&FilesTable| table.store.as_ref().is_some_and(|name| name.get_ref() == store);
        if self.config.files.values().filter(is_it).any(FilesTable::may_write) {
            return true;
        }
        self.grants_tables().any(|grants| grants.may_write(store))
    }

    /// Returns whether any plugin, the file-access tools or clients may read something in a store.
    pub(crate) fn is_granted(&self, store: &str) -> bool {
        let is_it = |name: &Spanned<String>| name.get_ref() == store;
        let mut files = self.config.files.values();
        if files.any(|table| table.store.as_ref().is_some_and(is_it)) {
            return true;
        }
        #[cfg(feature = "mcp")]
        if self.config.serve.stores.iter().any(is_it) {
            return true;
        }
        self.grants_tables().any(|grants| grants.names_store(store))
    }

    /// Returns the directories of `[stores]` that [are granted](Self::is_granted).
    pub(crate) fn granted_directories(&self) -> impl Iterator<Item = PathBuf> {
        let granted = self.config.stores.iter().filter(|(name, _)| self.is_granted(name));
        let directories = granted.filter_map(|(_, store)| store.directory.as_ref());
        directories.map(|directory| self.resolve(directory.get_ref()))
    }

    /// Returns all grants: of each plugin, of all plugins, and of the scripts of skills.
    pub(crate) fn grants_tables(&self) -> impl Iterator<Item = &GrantsTable> {
        let plugins = self.config.plugins.values().map(|plugin| &plugin.grants);
        #[cfg(feature = "skills")]
        let plugins = plugins.chain([&self.config.skills.grants]);
        plugins.chain([&self.config.grants])
    }

    /// Resolves a path of the configuration, relative to the file.
    pub fn resolve(&self, path: &Path) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    /// Describes where the files of a store are.
    pub(crate) fn location(&self, store: &StoreConfig) -> String {
        let location = match (&store.directory, &store.url) {
            (Some(directory), _) => StoreLocation::Directory(self.resolve(directory.get_ref())),
            (None, Some(url)) => StoreLocation::Bucket(url.get_ref().clone()),
            (None, None) => StoreLocation::Memory,
        };
        match &store.endpoint {
            Some(endpoint) => format!("{location} at {endpoint}"),
            None => location.to_string(),
        }
    }

    /// Returns an error about the value at `span`.
    pub fn error(&self, span: std::ops::Range<usize>, message: impl Into<String>) -> ConfigError {
        let at = Some(line_and_column(&self.text, span.start));
        ConfigError { path: self.path.clone(), at, message: message.into() }
    }

    /// Returns an error about a table, positioned at its header.
    pub fn error_in_table(&self, header: &str, message: impl Into<String>) -> ConfigError {
        let at = self.text.find(header).map(|offset| line_and_column(&self.text, offset));
        ConfigError { path: self.path.clone(), at, message: message.into() }
    }
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ConfigFile, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cofferdam.toml");
        std::fs::write(&path, text).unwrap();
        ConfigFile::read_ambient(&path)
            .map_err(|e| e.to_string().replace(&directory.path().display().to_string(), ""))
    }

    #[test]
    fn errors_have_line_and_column() {
        let error = read("[stores.docs]\ndirectory = \"docs\"\nfoo = 1\n").unwrap_err();
        assert!(error.starts_with("/cofferdam.toml:3:1: unknown field `foo`"), "{error}");
        let error = read("[plugins.text]\ncomponent = 5\n").unwrap_err();
        assert!(error.starts_with("/cofferdam.toml:2:13: invalid type"), "{error}");
        for (text, expected) in [
            ("plugins = 1\n", "1:11: invalid type: integer `1`, expected a map"),
            (
                "[plugins.a]\nlimits = 1\n",
                "2:10: invalid type: integer `1`, expected limits by name",
            ),
            ("agent = 1\n", "1:9: invalid type: integer `1`, expected a table"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(&format!("/cofferdam.toml:{expected}")), "{error}");
        }
        let error = read("a = \n").unwrap_err();
        assert!(error.starts_with("/cofferdam.toml:1:5:"), "{error}");
    }

    #[test]
    fn limits_that_are_left_out_have_their_defaults() {
        let file = read("[limits]\nwall-ms-max = 5\n").unwrap();
        assert_eq!(file.config.limits, Limits { wall_ms_max: 5, ..Limits::default() });
    }
}
