//! Engine: wasmtime engines with their pools, linkers and clocks, and the cache.
//!
//! Code that counts instructions needs separate wasmtime engines. The first one starts when the
//! first plugin with an instruction budget is loaded, so that other plugins cost nothing extra.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use cofferdam_files::SpillOptions;
use cofferdam_network::Client;
use cofferdam_tool::Limits;

use crate::cache::Cache;
use crate::config::Metering;
use crate::engine_pool::{EnginePool, WasmEngine};
use crate::scheduler::admission::Admission;
use crate::scheduler::cpu_pool::CpuPool;
use crate::usage::EngineUsage;
use crate::{EngineConfig, EngineError};

/// Runs plugins. Cheap to clone; a process should have only one engine, because plugins share its
/// permits and memory, and each core has its own pool.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<EngineInner>,
}

pub(crate) struct EngineInner {
    /// Engines for plugins without an instruction budget.
    timed: Arc<EnginePool>,
    /// Engines for plugins with an instruction budget.
    counting: Arc<EnginePool>,
    /// Fingerprint of `timed`.
    fingerprint: [u8; 32],
    /// Permits for as many calls as a pool has slots, and the memory of all calls.
    pub(crate) admission: Admission,
    /// Threads for calls that compute.
    pub(crate) cpu_pool: CpuPool,
    pub(crate) cache: Option<Cache>,
    pub(crate) config: EngineConfig,
    /// Options for large changes, from `config`, for every call.
    pub(crate) spill: Option<Arc<SpillOptions>>,
    /// Sends the HTTP requests of all calls.
    pub(crate) client: Client,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Engine");
        fields.field("cache_directory", &self.cache_directory()).finish_non_exhaustive()
    }
}

impl EngineInner {
    /// Returns the engines for code that counts instructions, or for code that does not.
    pub(crate) fn pool(&self, metering: Metering) -> &Arc<EnginePool> {
        match metering {
            Metering::Time => &self.timed,
            Metering::Instructions => &self.counting,
        }
    }

    /// Returns the first engine for calls under `limits`.
    pub(crate) fn first_engine(&self, limits: &Limits) -> Result<&Arc<WasmEngine>, EngineError> {
        self.pool(Metering::under(limits)).first()
    }

    /// Returns the digest of everything besides the component that compiled code depends on.
    pub(crate) fn fingerprint(&self) -> [u8; 32] {
        self.fingerprint
    }

    /// Returns the first engine for plugins without an instruction budget.
    #[cfg(feature = "floor")]
    pub(crate) fn timed(&self) -> Result<&Arc<WasmEngine>, EngineError> {
        self.timed.first()
    }
}

impl Engine {
    /// Builds an engine. Takes about a millisecond and reserves address space for the whole pool.
    ///
    /// # Errors
    /// Returns an error if the pool has no room for a call, the cache directory cannot be used
    /// safely, or the machine cannot provide the pool's address space.
    pub fn new(config: EngineConfig) -> Result<Self, EngineError> {
        if config.pool.concurrent_calls_max == 0 {
            return Err(EngineError::NoCalls);
        }
        let [timed, counting] = [Metering::Time, Metering::Instructions]
            .map(|metering| Arc::new(EnginePool::new(&config, metering)));
        let fingerprint = timed.first()?.fingerprint;
        let cache = config.cache_directory.as_deref().map(Cache::open_ambient).transpose()?;
        let admission = Admission::new(config.pool.concurrent_calls_max, config.budget);
        let cpu_pool = CpuPool::new(config.idle_hook);
        let client = Client::new(config.network.clone()).map_err(EngineError::Network)?;
        let spill = config.spill.clone().map(Arc::new);
        let inner = EngineInner {
            timed,
            counting,
            fingerprint,
            admission,
            cpu_pool,
            cache,
            config,
            spill,
            client,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the calls and the memory that are in use now.
    #[must_use]
    pub fn usage(&self) -> EngineUsage {
        self.inner.admission.usage()
    }

    /// Returns the directory of the cache, if there is one.
    #[must_use]
    pub fn cache_directory(&self) -> Option<&Path> {
        self.inner.cache.as_ref().map(Cache::directory)
    }
}
