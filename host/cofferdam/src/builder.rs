//! From plugins and grants to a host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_engine::{
    Compiler, Component, Engine, EngineConfig, EngineError, Grants, LoadError, Mount, PluginOptions, PoolSize,
};
use cofferdam_files::{OpenDirectoryError, Quota, SpillOptions};
use cofferdam_tool::{
    DuplicateTool, FileAccess, InvalidMountName, InvalidName, Limits, MountName, PluginName, ToolSource,
    Toolset,
};
use etcetera::BaseStrategy as _;

use crate::policy_files::{self, HoldsPolicyFile};
use crate::{Host, compile_child, stores};

/// Maximum bytes that changes of one call may take on disk before they are made.
const SPILL_BYTES_MAX: u64 = 256 << 20;
/// Minimum bytes of a changed file that go to disk.
const SPILL_FILE_BYTES_MIN: u64 = 1 << 20;

/// Builds a [`Host`].
#[must_use]
pub struct HostBuilder {
    plugins: Vec<(Option<String>, PathBuf)>,
    mounts: Vec<DirectoryMount>,
    grants: Grants,
    limits: Limits,
    sources: Vec<Arc<dyn ToolSource>>,
    cache: CacheDirectory,
    compiler: Option<Compiler>,
    pool: PoolSize,
}

/// A directory of the host that plugins get.
struct DirectoryMount {
    name: String,
    directory: PathBuf,
    access: FileAccess,
}

/// Directory for compiled code.
enum CacheDirectory {
    /// The one of the user.
    User,
    At(PathBuf),
    None,
}

/// Reason why there is no host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The program has not called [`init`](crate::init).
    #[error(
        "call `cofferdam::init()` first thing in `main`: plugins are compiled in a child process, which is this program \
         again and would otherwise start a second copy of it"
    )]
    NotInitialized,
    /// The program does not know where it is.
    #[error("the path of this program, which compiles plugins, is not known")]
    Program(#[source] std::io::Error),
    /// The user has no home directory.
    #[error("the home directory is not known; name a directory with `cache_directory`, or use `no_cache`")]
    NoCacheDirectory,
    /// The engine does not start.
    #[error("the engine does not start")]
    Engine(#[from] EngineError),
    /// A plugin has no valid name.
    #[error("{} has no name for a plugin", .component.display())]
    PluginName {
        /// The component.
        component: PathBuf,
        /// Reason.
        source: InvalidName,
    },
    /// A plugin cannot be loaded.
    #[error("{} cannot be loaded", .component.display())]
    Plugin {
        /// The component.
        component: PathBuf,
        /// Reason.
        source: LoadError,
    },
    /// A mount has no valid name.
    #[error("`{name}` cannot be the name of a mount")]
    MountName {
        /// The name.
        name: String,
        /// Reason.
        source: InvalidMountName,
    },
    /// Two mounts have the same name.
    #[error("two mounts are called `{0}`")]
    DuplicateMount(String),
    /// A directory cannot be mounted.
    #[error("the directory of the mount `{name}` cannot be opened")]
    Directory {
        /// Name of the mount.
        name: String,
        /// Reason.
        source: OpenDirectoryError,
    },
    /// A plugin could write what decides about its own grants.
    #[error(transparent)]
    HoldsPolicyFile(#[from] HoldsPolicyFile),
    /// Two tools have the same name.
    #[error(transparent)]
    DuplicateTool(#[from] DuplicateTool),
    /// The MCP server cannot be made.
    #[cfg(feature = "mcp")]
    #[error(transparent)]
    Server(cofferdam_mcp::ServeError),
}

impl Default for HostBuilder {
    fn default() -> Self {
        Self {
            plugins: Vec::new(),
            mounts: Vec::new(),
            grants: Grants::default(),
            limits: Limits::default(),
            sources: Vec::new(),
            cache: CacheDirectory::User,
            compiler: None,
            pool: PoolSize::default(),
        }
    }
}

impl HostBuilder {
    /// Adds a plugin, a component file. It is named after the file.
    pub fn plugin(mut self, component: impl Into<PathBuf>) -> Self {
        self.plugins.push((None, component.into()));
        self
    }

    /// Adds a plugin under a name.
    pub fn named_plugin(mut self, name: impl Into<String>, component: impl Into<PathBuf>) -> Self {
        self.plugins.push((Some(name.into()), component.into()));
        self
    }

    /// Grants a directory to all plugins, which see it as `/NAME`. What they create in it may take at most 64 MiB and 10 000 entries.
    pub fn mount(
        mut self,
        name: impl Into<String>,
        directory: impl Into<PathBuf>,
        access: FileAccess,
    ) -> Self {
        self.mounts.push(DirectoryMount { name: name.into(), directory: directory.into(), access });
        self
    }

    /// Grants everything in `grants` to all plugins, beside the directories of [`mount`](Self::mount). Without this they have no
    /// network, no environment and no secrets.
    pub fn grants(mut self, grants: Grants) -> Self {
        self.grants = grants;
        self
    }

    /// Sets the limits of each call.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds tools that are no plugin, such as functions of the program.
    pub fn source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.sources.push(source);
        self
    }

    /// Keeps compiled code in a directory, which belongs to the user only. The default is `cofferdam` in the user's cache directory.
    pub fn cache_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache = CacheDirectory::At(directory.into());
        self
    }

    /// Compiles plugins anew in every process.
    pub fn no_cache(mut self) -> Self {
        self.cache = CacheDirectory::None;
        self
    }

    /// Sets the compiler of plugins, in place of this program started again.
    pub fn compiler(mut self, compiler: Compiler) -> Self {
        self.compiler = Some(compiler);
        self
    }

    /// Sets the number of calls that run at the same time, and their shares of the pool.
    pub fn pool(mut self, pool: PoolSize) -> Self {
        self.pool = pool;
        self
    }

    /// Opens the mounts, loads the plugins and builds the host. Compiling a plugin for the first time takes about a second for
    /// each megabyte.
    ///
    /// # Errors
    /// When something of that is not possible; nothing has been called then.
    pub async fn build(self) -> Result<Host, BuildError> {
        let mut toolset = Toolset::new();
        if !self.plugins.is_empty() {
            let grants = self.all_grants()?;
            let engine = Engine::new(self.engine_config()?)?;
            for (name, component) in &self.plugins {
                let options = PluginOptions {
                    name: name_of(name.as_deref(), component)?,
                    grants: grants.clone(),
                    limits: self.limits.clone(),
                    retries_max: 0,
                };
                let plugin = engine.load(&Component::from_file_ambient(component), options, &()).await;
                let plugin =
                    plugin.map_err(|source| BuildError::Plugin { component: component.clone(), source })?;
                toolset.add(Arc::new(plugin))?;
            }
        }
        for source in self.sources {
            toolset.add(source)?;
        }
        Ok(Host::new(toolset))
    }

    fn all_grants(&self) -> Result<Grants, BuildError> {
        let mut grants = self.grants.clone();
        for DirectoryMount { name, directory, access } in &self.mounts {
            let mount = MountName::new(name.as_str())
                .map_err(|source| BuildError::MountName { name: name.clone(), source })?;
            if grants.mounts.iter().any(|other| other.name == mount) {
                return Err(BuildError::DuplicateMount(name.clone()));
            }
            let store = stores::open_directory(directory, *access, Quota::growth())
                .map_err(|source| BuildError::Directory { name: name.clone(), source })?;
            grants.mounts.push(Mount::new(mount, store, *access));
        }
        let components: Vec<_> = self.plugins.iter().map(|(_, component)| component.clone()).collect();
        policy_files::check_mounts(&grants.mounts, &policy_files::locate(&components, None))?;
        Ok(grants)
    }

    fn engine_config(&self) -> Result<EngineConfig, BuildError> {
        let compiler = match &self.compiler {
            Some(compiler) => compiler.clone(),
            None => compile_child::compiler()?,
        };
        let mut config = EngineConfig::new(compiler);
        config.pool = self.pool;
        config.cache_directory = match &self.cache {
            CacheDirectory::None => None,
            CacheDirectory::At(directory) => Some(directory.clone()),
            CacheDirectory::User => {
                let base = etcetera::choose_base_strategy().map_err(|_| BuildError::NoCacheDirectory)?;
                Some(base.cache_dir().join("cofferdam"))
            }
        };
        config.spill = config.cache_directory.as_deref().and_then(spill);
        Ok(config)
    }
}

fn name_of(name: Option<&str>, component: &Path) -> Result<PluginName, BuildError> {
    let name = match name {
        Some(name) => PluginName::new(name),
        None => stores::plugin_name(component),
    };
    name.map_err(|source| BuildError::PluginName { component: component.to_owned(), source })
}

/// Returns where changes of a call go that are too large for memory: beside the cache. If that directory cannot be created, they
/// stay in memory, and a call that changes too much fails.
fn spill(cache: &Path) -> Option<SpillOptions> {
    let directory = cache.join("spill");
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(&directory).ok()?;
    let directory_ambient = directory.canonicalize().ok()?;
    Some(SpillOptions { directory_ambient, bytes_max: SPILL_BYTES_MAX, file_bytes_min: SPILL_FILE_BYTES_MIN })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refused(builder: HostBuilder) -> BuildError {
        match builder.build().await {
            Ok(_) => panic!("the host was built"),
            Err(error) => error,
        }
    }

    /// A directory with a file that is named like a component.
    fn directory() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let component = directory.path().join("tool.wasm");
        std::fs::write(&component, b"not a component").unwrap();
        (directory, component)
    }

    #[tokio::test]
    async fn a_program_without_the_hook_is_told_to_add_it() {
        let (_directory, component) = directory();
        let error = refused(Host::builder().plugin(component)).await;
        assert!(error.to_string().contains("call `cofferdam::init()` first thing in `main`"), "{error}");
    }

    #[tokio::test]
    async fn no_plugin_can_write_what_decides_about_its_grants() {
        let (directory, component) = directory();
        let host = |access| Host::builder().plugin(&component).mount("here", directory.path(), access);
        let error = refused(host(FileAccess::ReadWrite)).await;
        assert!(matches!(&error, BuildError::HoldsPolicyFile(holds) if holds.file == component), "{error}");
        let error = refused(host(FileAccess::ReadOnly)).await;
        assert!(matches!(error, BuildError::NotInitialized), "{error}");
    }

    #[tokio::test]
    async fn names_are_checked() {
        let (directory, component) = directory();
        let host = || Host::builder().plugin(&component);
        let error = refused(host().mount("no/name", directory.path(), FileAccess::ReadOnly)).await;
        assert!(matches!(error, BuildError::MountName { .. }), "{error}");
        let twice = host().mount("a", directory.path(), FileAccess::ReadOnly).mount(
            "a",
            directory.path(),
            FileAccess::ReadOnly,
        );
        assert!(matches!(refused(twice).await, BuildError::DuplicateMount(_)));
        let error = refused(host().mount("a", directory.path().join("none"), FileAccess::ReadOnly)).await;
        assert!(matches!(error, BuildError::Directory { .. }), "{error}");
        let host = Host::builder().named_plugin("a b", &component).no_cache().compiler(Compiler::InProcess);
        assert!(matches!(refused(host).await, BuildError::PluginName { .. }));
    }
}
