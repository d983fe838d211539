//! The parts of a host, as a program or a command line names them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_engine::Grants;
use cofferdam_tool::{FileAccess, Limits, PluginName, ToolSource};

use crate::{Error, Result};

/// Plugins, directories and other parts of a host. A configuration names some of them; the others
/// stand here.
#[derive(Clone, Default)]
pub struct Selection {
    /// Configuration file.
    pub config: Option<PathBuf>,
    /// Component files of plugins.
    pub plugins: Vec<PluginFile>,
    /// Stores that these plugins get.
    pub mounts: Vec<StoreMount>,
    /// Other grants of these plugins.
    pub grants: Grants,
    /// Limits of these plugins.
    pub limits: Limits,
    /// Store that the file-access tools work on.
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
    /// Name; that of the file if it is missing.
    pub name: Option<String>,
    /// Component.
    pub component: PathBuf,
}

impl PluginFile {
    /// Returns the name, or that of the file.
    ///
    /// # Errors
    /// When it cannot be the name of a plugin.
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

/// A store that plugins get.
#[derive(Debug, Clone)]
pub struct StoreMount {
    /// Name under which plugins see it, as `/NAME`.
    pub name: String,
    /// Location of the files.
    pub location: StoreLocation,
    /// Access of the plugins.
    pub access: FileAccess,
}

/// A store that the file-access tools work on.
#[derive(Debug, Clone)]
pub struct FilesStore {
    /// Name; `workspace` if it is missing.
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
    /// A bucket: `s3://BUCKET/PREFIX`, `gs://…` or `az://…`. Its keys come from the variables that
    /// the tools of its service read.
    Bucket(String),
    /// Memory of this process.
    Memory,
}

impl StoreLocation {
    /// Reads `memory`, an address such as `s3://BUCKET/PREFIX`, or a directory.
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
