//! Parts of a host, as a program or a command line names them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_engine::Grants;
use cofferdam_tool::{FileAccess, Limits, PluginName, ToolSource};

use crate::{Error, Result};

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
    /// Store of the file-access tools.
    pub files: Option<FilesStore>,
    /// Directories of skills.
    #[cfg(feature = "skills")]
    pub skills: Vec<PathBuf>,
    /// Sources of tools that are neither plugins nor servers.
    pub sources: Vec<Arc<dyn ToolSource>>,
    /// Maximum wall-clock time of each call, for all plugins and servers.
    pub timeout: Option<Duration>,
    /// Maximum bytes of memory of each call, for all plugins.
    pub memory_bytes_max: Option<u64>,
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
    pub fn to_name(&self) -> Result<PluginName> {
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
