//! The engine: one wasmtime engine with its pool, its linker, its clock and its cache.

use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime::component::Linker;

use crate::cache::Cache;
use crate::compile::one_line;
use crate::config::runtime_config;
use crate::state::CallState;
use crate::ticker::Ticker;
use crate::{EngineConfig, EngineError, link};

/// Runs plugins. Cheap to clone; one per process is enough and best, since plugins share its pool.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<EngineInner>,
}

pub(crate) struct EngineInner {
    pub(crate) wasmtime: wasmtime::Engine,
    pub(crate) linker: Linker<CallState>,
    pub(crate) ticker: Ticker,
    /// One permit for each call that the pool has room for.
    pub(crate) places: Semaphore,
    pub(crate) cache: Option<Cache>,
    pub(crate) config: EngineConfig,
    /// What compiled code depends on besides the component: configuration, wasmtime version, host CPU.
    pub(crate) fingerprint: [u8; 32],
}

impl Engine {
    /// Builds an engine. Takes about a millisecond and reserves address space for the whole pool.
    ///
    /// # Errors
    /// When the cache directory cannot be used safely, or the machine cannot give the pool its address space.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        let wasmtime = wasmtime::Engine::new(&runtime_config(&config.pool)).map_err(runtime_error)?;
        let linker = link::offered(&wasmtime).map_err(runtime_error)?;
        let ticker = Ticker::start(&wasmtime).map_err(EngineError::Ticker)?;
        let cache = config.cache_directory.as_deref().map(Cache::open_ambient).transpose()?;
        let places = Semaphore::new(usize::try_from(config.pool.concurrent_calls_max).unwrap_or(usize::MAX));
        let fingerprint = fingerprint(&wasmtime);
        let inner = EngineInner { wasmtime, linker, ticker, places, cache, config, fingerprint };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The directory that compiled code is kept in, if there is one.
    #[must_use]
    pub fn cache_directory(&self) -> Option<&Path> {
        self.inner.cache.as_ref().map(Cache::directory)
    }
}

fn runtime_error(error: wasmtime::Error) -> EngineError {
    EngineError::Runtime { reason: one_line(&error) }
}

fn fingerprint(engine: &wasmtime::Engine) -> [u8; 32] {
    struct Blake3(blake3::Hasher);
    impl Hasher for Blake3 {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }
        fn finish(&self) -> u64 {
            0
        }
    }
    let mut hasher = Blake3(blake3::Hasher::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    *hasher.0.finalize().as_bytes()
}
