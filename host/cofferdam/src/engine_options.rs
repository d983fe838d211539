//! The engine of a host.

use std::path::{Path, PathBuf};

use cofferdam_engine::{Compiler, Engine, EngineConfig, PoolSize};
use cofferdam_files::SpillOptions;
use etcetera::BaseStrategy as _;

use crate::error::Context as _;
use crate::{Result, compile_child, directories};

/// Maximum bytes that changes of one call may take on disk before they are made.
const SPILL_BYTES_MAX: u64 = 256 << 20;
/// Minimum bytes of a changed file that go to disk.
const SPILL_FILE_BYTES_MIN: u64 = 1 << 20;
/// Calls that run at the same time, unless more are asked for.
const CONCURRENT_CALLS_MAX: u32 = 8;

/// Settings of the engine that plugins run on.
#[derive(Clone)]
pub struct EngineOptions {
    /// Directory for compiled code.
    pub cache: CacheDirectory,
    /// Maximum calls at the same time, and their shares of the pool. The default is 8 calls.
    pub pool: PoolSize,
    /// Compiler of plugins, in place of this program started again.
    pub compiler: Option<Compiler>,
    /// Function that is called when no call runs any more.
    pub idle_hook: Option<fn()>,
}

/// Directory for compiled code. It belongs to the user only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CacheDirectory {
    /// `cofferdam` in the user's cache directory.
    User,
    /// Another directory.
    At(PathBuf),
    /// No directory: plugins are compiled anew in every process.
    None,
}

impl Default for EngineOptions {
    fn default() -> Self {
        let pool = PoolSize { concurrent_calls_max: CONCURRENT_CALLS_MAX, ..PoolSize::default() };
        Self { cache: CacheDirectory::User, pool, compiler: None, idle_hook: None }
    }
}

impl EngineOptions {
    /// Starts an engine. Takes about a millisecond.
    ///
    /// # Errors
    /// When [`init`](crate::init) was not called, the cache directory cannot be used, or the
    /// machine has no room for the pool.
    pub fn start(&self) -> Result<Engine> {
        let compiler = match &self.compiler {
            Some(compiler) => compiler.clone(),
            None => compile_child::compiler()?,
        };
        let mut config = EngineConfig::new(compiler);
        config.pool = self.pool;
        config.idle_hook = self.idle_hook;
        config.cache_directory = match &self.cache {
            CacheDirectory::None => None,
            CacheDirectory::At(directory) => Some(directory.clone()),
            CacheDirectory::User => {
                let base = etcetera::choose_base_strategy().context(
                    "the home directory is not known; name a cache directory, or use none",
                )?;
                Some(base.cache_dir().join("cofferdam"))
            }
        };
        config.spill = config.cache_directory.as_deref().and_then(spill);
        Ok(Engine::new(config)?)
    }
}

/// Returns where changes of a call go that are too large for memory: beside the cache. If that
/// directory cannot be created, they stay in memory, and a call that changes too much fails.
fn spill(cache: &Path) -> Option<SpillOptions> {
    let directory = cache.join("spill");
    directories::make_private(&directory).ok()?;
    let directory_ambient = directory.canonicalize().ok()?;
    Some(SpillOptions {
        directory_ambient,
        bytes_max: SPILL_BYTES_MAX,
        file_bytes_min: SPILL_FILE_BYTES_MIN,
    })
}
