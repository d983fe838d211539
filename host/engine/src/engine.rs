//! The engine: a wasmtime engine with its pool, its linker and its clock, and the cache.
//!
//! Code that counts instructions needs a wasmtime engine of its own. It is started when the first plugin with an
//! instruction budget is loaded, so that all others pay nothing for it.

use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use cofferdam_files::SpillOptions;
use cofferdam_network::Client;
use cofferdam_tool::Limits;
use wasmtime::component::Linker;

use crate::cache::Cache;
use crate::compile::one_line;
use crate::config::{Metering, PoolSize, runtime_config};
use crate::lane::Lane;
use crate::places::Places;
use crate::state::CallState;
use crate::ticker::Ticker;
use crate::{EngineConfig, EngineError, link};

/// Runs plugins. Cheap to clone; one per process is enough and best, since plugins share its pool.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<EngineInner>,
}

pub(crate) struct EngineInner {
    /// For plugins without an instruction budget.
    timed: Runtime,
    /// For plugins with one.
    counting: OnceLock<Runtime>,
    /// One place for each call that a pool has room for, and the memory of all of them.
    pub(crate) places: Arc<Places>,
    /// Where calls go on that compute.
    pub(crate) lane: Lane,
    pub(crate) cache: Option<Cache>,
    pub(crate) config: EngineConfig,
    /// What `config` says about large changes, for every call.
    pub(crate) spill: Option<Arc<SpillOptions>>,
    /// Sends the HTTP requests of all calls.
    pub(crate) client: Client,
}

/// A wasmtime engine for one kind of compiled code, and what belongs to it.
pub(crate) struct Runtime {
    pub(crate) wasmtime: wasmtime::Engine,
    pub(crate) linker: Linker<CallState>,
    pub(crate) ticker: Ticker,
    pub(crate) metering: Metering,
    /// What compiled code depends on besides the component: configuration, wasmtime version, host CPU.
    pub(crate) fingerprint: [u8; 32],
}

impl Runtime {
    fn start(pool: &PoolSize, metering: Metering) -> Result<Self, EngineError> {
        let wasmtime = wasmtime::Engine::new(&runtime_config(pool, metering)).map_err(runtime_error)?;
        let linker = link::offered(&wasmtime).map_err(runtime_error)?;
        let ticker = Ticker::start(&wasmtime).map_err(EngineError::Ticker)?;
        let fingerprint = fingerprint(&wasmtime);
        Ok(Self { wasmtime, linker, ticker, metering, fingerprint })
    }
}

impl EngineInner {
    /// The runtime that calls under `limits` need.
    pub(crate) fn runtime(&self, limits: &Limits) -> Result<&Runtime, EngineError> {
        if limits.fuel_max.is_none() {
            return Ok(&self.timed);
        }
        if let Some(counting) = self.counting.get() {
            return Ok(counting);
        }
        let started = Runtime::start(&self.config.pool, Metering::Instructions)?;
        // Whoever comes second at the same time drops what it has started.
        Ok(self.counting.get_or_init(|| started))
    }

    /// What compiled code depends on besides the component.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        self.timed.fingerprint
    }

    /// The runtime of plugins without an instruction budget.
    #[cfg(feature = "floor")]
    pub(crate) fn timed(&self) -> &Runtime {
        &self.timed
    }
}

impl Engine {
    /// Builds an engine. Takes about a millisecond and reserves address space for the whole pool.
    ///
    /// # Errors
    /// When the cache directory cannot be used safely, or the machine cannot give the pool its address space.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        let timed = Runtime::start(&config.pool, Metering::Time)?;
        let cache = config.cache_directory.as_deref().map(Cache::open_ambient).transpose()?;
        let places = Places::new(config.pool.concurrent_calls_max, config.budget);
        let lane = Lane::new();
        let client = Client::new(config.network.clone()).map_err(EngineError::Network)?;
        let spill = config.spill.clone().map(Arc::new);
        let inner =
            EngineInner { timed, counting: OnceLock::new(), places, lane, cache, config, spill, client };
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
