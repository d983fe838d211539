//! Parts of a host, as a program or a command line names them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_engine::Grants;
use cofferdam_tool::permission::{RequestedLimits, SecretText};
use cofferdam_tool::recording::RecordingLevel;
use cofferdam_tool::sink::CallSink;
use cofferdam_tool::{FileAccess, Limits, Permission, PluginName, ToolSource};

use crate::code_mode::CodeSelection;
use crate::config::ValueSource;
use crate::config::edit::NewGrant;
use crate::granting::Values;
use crate::records::RecordMode;
use crate::{Error, Result, consent};

/// Stands for a value that is not read. It is long enough for a secret.
const UNREAD: &str = "(not read)";

/// Plugins, stores and other parts of a host. A configuration may name further ones.
#[derive(Clone, Default)]
pub struct Selection {
    /// Configuration file.
    pub config: Option<PathBuf>,
    /// Component files of plugins.
    pub plugins: Vec<PluginFile>,
    /// Stores that are mounted for these plugins.
    pub mounts: Vec<StoreMount>,
    /// Other grants of these plugins.
    pub grants: Grants,
    /// Limits of these plugins.
    pub limits: Limits,
    /// Permissions and limits that are offered to these plugins besides.
    pub permissions: Vec<OfferedPermission>,
    /// Store of the file-access tools.
    pub files: Option<FilesStore>,
    /// Directories of skills.
    #[cfg(feature = "skills")]
    pub skills: Vec<PathBuf>,
    /// Sources of tools that are neither plugins nor servers.
    pub sources: Vec<Arc<dyn ToolSource>>,
    /// Toolsets of the configuration whose tools are offered. If this or `tools` is not empty, no
    /// other tools are offered.
    pub toolsets: Vec<String>,
    /// Names of tools that are offered.
    pub tools: Vec<String>,
    /// Maximum wall-clock time of each call, for all plugins and servers.
    pub timeout: Option<Duration>,
    /// Maximum bytes of memory of each call, for all plugins.
    pub memory_bytes_max: Option<u64>,
    /// True to show the model the text of unexpected errors of these plugins, for development.
    pub shows_errors: bool,
    /// Programs of the model that call the tools.
    pub code: CodeSelection,
    /// Recording of calls in the call log.
    pub records: RecordMode,
    /// Calls of plugins that are recorded so that they can run again, instead of what the
    /// configuration says.
    pub recording: Option<RecordingLevel>,
    /// Receiver of all calls instead of the call log.
    pub call_sink: Option<Arc<dyn CallSink>>,
}

impl Selection {
    /// Returns whether neither toolsets nor tools restrict what is offered.
    pub(crate) fn selects_all_tools(&self) -> bool {
        self.toolsets.is_empty() && self.tools.is_empty()
    }

    /// Returns whether the CPU time of the plugins has a limit that was chosen. In
    /// [`limits`](Self::limits), the default counts as not chosen.
    pub(crate) fn limits_cpu_time(&self) -> bool {
        let sets_it = |permission: &Permission| matches!(permission, Permission::Limit(key, _) if key == "cpu-ms-max");
        self.limits.cpu_ms_max != Limits::default().cpu_ms_max
            || self.permissions.iter().any(|offered| sets_it(&offered.permission))
    }
}

/// A plugin that no configuration names.
#[derive(Debug, Clone)]
pub struct PluginFile {
    /// Name; by default the name of the file.
    pub name: Option<String>,
    /// Path of the component.
    pub component: PathBuf,
}

impl PluginFile {
    /// Returns the name of the plugin, by default derived from the name of the file.
    ///
    /// # Errors
    /// Returns an error if it is not a valid plugin name.
    pub(crate) fn to_name(&self) -> Result<PluginName> {
        let component = self.component.display();
        match &self.name {
            Some(name) => PluginName::new(name.as_str())
                .map_err(|error| Error::invalid(format!("plugin name `{name}`: {error}"))),
            None => crate::plugin_name(&self.component).map_err(|error| {
                let advice = "write --plugin NAME=PATH";
                Error::invalid(format!(
                    "`{component}` gives no name for the plugin; {advice}: {error}"
                ))
            }),
        }
    }
}

/// A store that is mounted for plugins.
#[derive(Debug, Clone)]
pub struct StoreMount {
    /// Name under which plugins see it, as `/NAME`.
    pub name: String,
    /// Location of the files.
    pub location: StoreLocation,
    /// Access of the plugins.
    pub access: FileAccess,
}

/// A permission that is offered to plugins that no configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferedPermission {
    /// The permission. Stores are offered as [`StoreMount`] instead.
    pub permission: Permission,
    /// Source of the value of a variable, a configuration key or a secret. By default, it is the
    /// environment variable of that name.
    pub value: Option<ValueSource>,
}

impl OfferedPermission {
    /// Returns the environment variable from which the value is read, if it is read from one.
    #[must_use]
    pub fn variable(&self) -> Option<&str> {
        match (&self.value, &self.permission) {
            (Some(ValueSource::Env(name)), _)
            | (None, Permission::Env(name) | Permission::Secret(name)) => Some(name),
            _ => None,
        }
    }

    /// Adds the permission to grants and limits. Values are not read with [`Values::Leave`].
    pub(crate) fn add_to(
        &self,
        grants: &mut Grants,
        limits: &mut Limits,
        values: Values,
    ) -> Result<()> {
        let permission = &self.permission;
        match permission {
            Permission::Files(..) => {
                return Err(Error::invalid(format!("`{permission}` needs a store; mount one")));
            }
            Permission::Env(name) => drop(grants.env.insert(name.clone(), self.read(values)?)),
            Permission::Config(key) => {
                drop(grants.config.insert(key.clone(), self.read(values)?));
            }
            Permission::Secret(name) => {
                grants.secrets.insert(name.clone(), self.read(values)?);
                grants.readable_secrets.insert(name.clone());
            }
            Permission::Limit(key, number) => {
                let limit = serde_json::json!({ key.as_str(): number });
                let limit: RequestedLimits = serde_json::from_value(limit)
                    .map_err(|error| Error::invalid(format!("`{permission}`: {error}")))?;
                *limits = limit.over(limits);
            }
            Permission::Http(_)
            | Permission::Socket(_)
            | Permission::Clock(_)
            | Permission::Random
            | Permission::Tool(_)
            | Permission::Ask(_) => {
                let permission = permission.clone();
                let grant = NewGrant { permission, directory: None, value: None };
                consent::widen(grants, limits, &grant)?;
            }
        }
        Ok(())
    }

    fn read(&self, values: Values) -> Result<SecretText> {
        let permission = &self.permission;
        if let Some(ValueSource::Literal(value)) = &self.value {
            return Ok(SecretText::new(value.as_str()));
        }
        let Some(variable) = self.variable() else {
            return Err(Error::invalid(format!("`{permission}` needs a value")));
        };
        if values == Values::Leave {
            return Ok(SecretText::new(UNREAD));
        }
        let value = std::env::var(variable).map_err(|_| {
            Error::invalid(format!(
                "the value of `{permission}` comes from the environment variable {variable}, which \
                 is not set or not UTF-8"
            ))
        })?;
        Ok(SecretText::new(value))
    }
}

/// Store of the file-access tools.
#[derive(Debug, Clone)]
pub struct FilesStore {
    /// Name; `workspace` by default.
    pub name: Option<String>,
    /// Location of the files.
    pub location: StoreLocation,
    /// Access of the tools.
    pub access: FileAccess,
}

/// Location of a store's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A bucket: `s3://BUCKET/PREFIX`, `gs://…` or `az://…`. Its keys come from the environment
    /// variables that the service's own tools read.
    Bucket(String),
    /// Memory of this process.
    Memory,
}

impl fmt::Display for StoreLocation {
    /// Formats the location as a phrase, with the resolved path of a directory.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => {
                let resolved = path.canonicalize().or_else(|_| std::path::absolute(path));
                write!(f, "the directory {}", resolved.as_ref().unwrap_or(path).display())
            }
            Self::Bucket(address) => write!(f, "the bucket {address}"),
            Self::Memory => f.write_str("a store in memory"),
        }
    }
}

impl StoreLocation {
    /// Parses `memory`, an address such as `s3://BUCKET/PREFIX`, or a directory.
    #[must_use]
    pub fn parse(typed: &str) -> Self {
        match typed {
            "memory" => Self::Memory,
            address if address.contains("://") => Self::Bucket(address.to_owned()),
            directory => Self::Directory(PathBuf::from(directory)),
        }
    }
}

impl std::fmt::Debug for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sources: Vec<_> = self.sources.iter().map(|source| source.name()).collect();
        let mut fields = f.debug_struct("Selection");
        #[cfg(feature = "skills")]
        fields.field("skills", &self.skills);
        fields
            .field("config", &self.config)
            .field("plugins", &self.plugins)
            .field("mounts", &self.mounts)
            .field("files", &self.files)
            .field("sources", &sources)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_cpu_time_is_chosen_in_the_limits_or_offered() {
        assert!(!Selection::default().limits_cpu_time());
        let limits = Limits { cpu_ms_max: 100, ..Limits::default() };
        assert!(Selection { limits, ..Selection::default() }.limits_cpu_time());
        let offers = |key: &str| {
            let permission = Permission::Limit(key.to_owned(), 10_000);
            let permissions = vec![OfferedPermission { permission, value: None }];
            Selection { permissions, ..Selection::default() }
        };
        assert!(offers("cpu-ms-max").limits_cpu_time());
        assert!(!offers("wall-ms-max").limits_cpu_time());
    }
}
