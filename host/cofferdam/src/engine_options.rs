//! Options of a host's engine.

use std::fmt;
use std::path::{Path, PathBuf};

use cofferdam_engine::{Compiler, Confinement, Engine, EngineConfig, EngineError, PoolSize};
use cofferdam_files::SpillOptions;

use crate::error::Context as _;
use crate::{Error, Result, compile_child, directories};

/// Maximum bytes of uncommitted changes of one call on disk.
const SPILL_BYTES_MAX: u64 = 256 << 20;
/// Minimum bytes of a changed file that is written to disk instead of memory.
const SPILL_FILE_BYTES_MIN: u64 = 1 << 20;
/// Default number of concurrent calls.
const CONCURRENT_CALLS_MAX: u32 = 8;

/// Settings of the engine that plugins run on.
#[derive(Clone)]
pub struct EngineOptions {
    /// Directory for compiled code.
    pub cache: CacheDirectory,
    /// Maximum number of concurrent calls, at least 1, and their shares of the pool. The default is
    /// 8 calls.
    pub pool: PoolSize,
    /// Compiler of plugins. The default is this program, started again as a child process.
    pub compiler: Option<Compiler>,
    /// Minimum confinement of the process that compiles: with less, no plugin is compiled. If this
    /// is absent, any level is sufficient, and the operator gets a note about less than full
    /// confinement.
    pub confinement_min: Option<Confinement>,
    /// Function that threads of the engine call when there have been no calls for a second.
    pub idle_hook: Option<fn()>,
}

/// Directory for compiled code. Only the user may have access to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheDirectory {
    /// `cofferdam` in the user's cache directory.
    User,
    /// Another directory.
    At(PathBuf),
    /// No directory: plugins are compiled in every process.
    None,
}

impl CacheDirectory {
    /// Returns the path of the directory, or `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if the user's home directory is not known.
    pub fn path(&self) -> Result<Option<PathBuf>> {
        Ok(match self {
            Self::None => None,
            Self::At(directory) => Some(directory.clone()),
            Self::User => {
                Some(directories::cache().context("name a cache directory, or use none")?)
            }
        })
    }
}

impl Default for EngineOptions {
    fn default() -> Self {
        let pool = PoolSize { concurrent_calls_max: CONCURRENT_CALLS_MAX, ..PoolSize::default() };
        Self {
            cache: CacheDirectory::User,
            pool,
            compiler: None,
            confinement_min: None,
            idle_hook: None,
        }
    }
}

impl EngineOptions {
    /// Starts an engine, which takes about a millisecond.
    ///
    /// # Errors
    /// Returns an error if [`init`](crate::init) was not called, the cache directory cannot be
    /// used, the pool has no room for a call, or there is not enough address space for it.
    pub fn start(&self) -> Result<Engine> {
        let compiler = match &self.compiler {
            Some(compiler) => compiler.clone(),
            None => compile_child::compiler()?,
        };
        let mut config = EngineConfig::new(compiler);
        config.pool = self.pool;
        config.idle_hook = self.idle_hook;
        config.confinement_min = self.confinement_min;
        config.cache_directory = self.cache.path()?;
        config.spill = config.cache_directory.as_deref().and_then(spill);
        Engine::new(config).map_err(|error| match error {
            EngineError::NoCalls => Error::invalid(error.to_string()),
            error => error.into(),
        })
    }
}

impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOptions")
            .field("cache", &self.cache)
            .field("pool", &self.pool)
            .field("confinement_min", &self.confinement_min)
            .finish_non_exhaustive()
    }
}

/// Returns the options for changes of a call that are too large for memory: they go to a directory
/// beside the cache. If it cannot be created, changes stay in memory, and a call that changes too
/// much fails.
fn spill(cache: &Path) -> Option<SpillOptions> {
    let directory = cache.join("spill");
    // The cache first: on Windows, what is created in it inherits its access list.
    directories::make_private(cache).ok()?;
    directories::make_private(&directory).ok()?;
    let directory_ambient = directory.canonicalize().ok()?;
    Some(SpillOptions {
        directory_ambient,
        bytes_max: SPILL_BYTES_MAX,
        file_bytes_min: SPILL_FILE_BYTES_MIN,
    })
}
