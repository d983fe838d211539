//! Wasmtime engines in which calls run: by default one for each core that makes calls at the same
//! time.
//!
//! The instance pool of one wasmtime engine is one set of lists under locks, and a slot that one
//! core has released is cold for the next: two cores on one pool get about a third more done than
//! one core. So there can be several engines, and concurrent calls of different threads run in
//! different ones ([`PoolSize::pools_max`]; with 1, all calls share one).
//!
//! * **A process that makes one call at a time has one engine.** The others start once two calls
//!   have run at the same time.
//! * **A thread belongs to one engine** ([`thread_number`]), so that it reuses the instance slots
//!   that it used before.
//! * **A plugin's code is loaded into another engine in the background**, never during a call (see
//!   [`PluginCode`]).

mod code;
mod plugin_code;

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};
use std::thread;

use parking_lot::Mutex;
use wasmtime::component::Linker;

pub(crate) use self::code::{Code, CodeForm};
pub(crate) use self::plugin_code::PluginCode;
use crate::config::{MEMORY_RESERVATION_BYTES, Metering, PoolSize, runtime_config};
use crate::error::one_line;
use crate::host_api::{CallState, link};
use crate::scheduler::epoch::EpochTicker;
use crate::{Confinement, EngineConfig, EngineError};

/// Address space for the instance pools of one kind of code: half of a process's on x86-64.
const ADDRESS_BYTES_MAX: u64 = 64 << 40;

/// The wasmtime engines for one kind of compiled code, each started when it is first used.
pub(crate) struct EnginePool {
    metering: Metering,
    idle_hook: Option<fn()>,
    size: PoolSize,
    confinement_min: Option<Confinement>,
    /// First engine, which every pool has.
    first: OnceLock<Arc<WasmEngine>>,
    others: Box<[OnceLock<Arc<WasmEngine>>]>,
}

/// One wasmtime engine with its instance pool, linker and epoch thread.
pub(crate) struct WasmEngine {
    pub(crate) wasmtime: wasmtime::Engine,
    pub(crate) linker: Linker<CallState>,
    pub(crate) ticker: EpochTicker,
    pub(crate) metering: Metering,
    /// Digest of the inputs of compiled code besides the component: configuration, wasmtime
    /// version, host CPU, and the confinement that is required of the compiler. Equal for all
    /// engines of a pool.
    pub(crate) fingerprint: [u8; 32],
}

impl EnginePool {
    /// Creates a pool of at most [`PoolSize::pools_max`] engines: one for each core, as long as
    /// there is address space. None is started.
    pub(crate) fn new(config: &EngineConfig, metering: Metering) -> Self {
        let size = config.pool;
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let memories = u64::from(size.memories_per_call_max) + 1;
        let slots = u64::from(size.concurrent_calls_max).saturating_mul(memories);
        let reserved = slots.saturating_mul(MEMORY_RESERVATION_BYTES);
        let fitting = usize::try_from(ADDRESS_BYTES_MAX / reserved.max(1)).unwrap_or(usize::MAX);
        let allowed = usize::try_from(size.pools_max).unwrap_or(usize::MAX);
        let others = cores.min(fitting).min(allowed).saturating_sub(1);
        Self {
            metering,
            idle_hook: config.idle_hook,
            size,
            confinement_min: config.confinement_min,
            first: OnceLock::new(),
            others: (0..others).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns the maximum number of engines.
    pub(crate) fn len(&self) -> usize {
        self.others.len() + 1
    }

    /// Returns the first engine, and starts it if it is not running.
    pub(crate) fn first(&self) -> Result<&Arc<WasmEngine>, EngineError> {
        self.started(&self.first)
    }

    /// Returns the engine at `index`, and starts it if it is not running, which takes about a
    /// millisecond. `None` if the pool is smaller.
    pub(crate) fn get(&self, index: usize) -> Option<Result<&Arc<WasmEngine>, EngineError>> {
        let slot = match index.checked_sub(1) {
            None => &self.first,
            Some(other) => self.others.get(other)?,
        };
        Some(self.started(slot))
    }

    /// Returns the index of the engine that this thread belongs to.
    pub(crate) fn index_of_this_thread(&self) -> usize {
        if self.others.is_empty() { 0 } else { thread_number() % self.len() }
    }

    fn started<'a>(
        &self,
        slot: &'a OnceLock<Arc<WasmEngine>>,
    ) -> Result<&'a Arc<WasmEngine>, EngineError> {
        if let Some(engine) = slot.get() {
            return Ok(engine);
        }
        let engine = Arc::new(WasmEngine::start(self)?);
        // If two threads start the engine at the same time, the second one drops its own.
        Ok(slot.get_or_init(|| engine))
    }
}

impl WasmEngine {
    fn start(pool: &EnginePool) -> Result<Self, EngineError> {
        let metering = pool.metering;
        let error = |error: wasmtime::Error| EngineError::Runtime { reason: one_line(&error) };
        let wasmtime =
            wasmtime::Engine::new(&runtime_config(&pool.size, metering)).map_err(error)?;
        let linker = link::offered(&wasmtime).map_err(error)?;
        let ticker = EpochTicker::start(&wasmtime, pool.idle_hook).map_err(EngineError::Ticker)?;
        let fingerprint = fingerprint(&wasmtime, pool.confinement_min);
        Ok(Self { wasmtime, linker, ticker, metering, fingerprint })
    }
}

fn fingerprint(engine: &wasmtime::Engine, confinement_min: Option<Confinement>) -> [u8; 32] {
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
    // Code that was compiled with less confinement is compiled again when more is required.
    hasher.write(&[confinement_min.unwrap_or(Confinement::None).to_byte()]);
    *hasher.0.finalize().as_bytes()
}

/// Returns the smallest number that no other living thread holds. Only threads that make calls take
/// numbers, and there are about as many of them as cores, so that the numbers are small.
fn thread_number() -> usize {
    static TAKEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

    struct Number(usize);
    impl Number {
        fn take() -> Self {
            let mut taken = TAKEN.lock();
            let free = (0..).find(|number| !taken.contains(number)).unwrap_or_default();
            taken.insert(free);
            Self(free)
        }
    }
    impl Drop for Number {
        fn drop(&mut self) {
            TAKEN.lock().remove(&self.0);
        }
    }
    thread_local! {
        static OWN: OnceCell<Number> = const { OnceCell::new() };
    }
    // A thread that is ending has returned its number.
    OWN.try_with(|own| own.get_or_init(Number::take).0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compiler;

    fn engines(pool: PoolSize) -> usize {
        let config = EngineConfig { pool, ..EngineConfig::new(Compiler::InProcess) };
        EnginePool::new(&config, Metering::Time).len()
    }

    fn pool(calls: u32) -> PoolSize {
        PoolSize { concurrent_calls_max: calls, ..PoolSize::default() }
    }

    #[test]
    fn there_are_no_more_than_cores_and_address_space_for() {
        let number = |calls| engines(pool(calls));
        let cores = thread::available_parallelism().unwrap().get();
        assert_eq!(number(8), cores.min(8));
        assert_eq!(engines(PoolSize { pools_max: 1, ..pool(8) }), 1);
        assert_eq!(engines(PoolSize { pools_max: 0, ..pool(8) }), 1);
        // 20 TiB each.
        assert_eq!(number(1024), cores.min(3));
        assert_eq!(number(u32::MAX), 1);
        assert_eq!(number(0), cores.min(8));
    }

    #[test]
    fn threads_side_by_side_have_numbers_of_their_own_and_later_ones_have_them_again() {
        let at_once = || {
            let barrier = std::sync::Barrier::new(4);
            thread::scope(|scope| {
                let number = || {
                    let number = (thread_number(), thread_number());
                    barrier.wait();
                    number
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(number)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<BTreeSet<_>>()
            })
        };
        let first = at_once();
        assert_eq!(first.len(), 4);
        assert!(first.iter().all(|(once, again)| once == again));
        // Other tests have threads with numbers too.
        let largest = first.iter().map(|(number, _)| *number).max().unwrap();
        assert!(at_once().iter().all(|(number, _)| *number <= largest + 64));
    }
}
