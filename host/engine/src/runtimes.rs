//! A wasmtime engine for each core that calls at the same time.
//!
//! The pool of one wasmtime engine is one set of lists under locks, and a place that one core has left is cold for the next:
//! two cores on one pool do about a third more than one core alone. So there can be several engines, and calls of threads
//! that run side by side are in different ones.
//!
//! * **A process that makes one call at a time has one engine.** The others are started when two calls have run at the same time.
//! * **A thread belongs to one of them** ([`thread_number`]), so that what it uses again is what it has used before.
//! * **A plugin's code is loaded into another engine beside the calls** and never during one (see [`Codes`](crate::codes::Codes)).

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use wasmtime::component::Linker;

use crate::compile::one_line;
use crate::config::{MEMORY_RESERVATION_BYTES, Metering, PoolSize, runtime_config};
use crate::scheduler::epoch::EpochTicker;
use crate::state::CallState;
use crate::{EngineError, link};

/// Address space for the pools of one kind of code: half of what a process has on x86-64.
const ADDRESS_BYTES_MAX: u64 = 64 << 40;

/// The wasmtime engines for one kind of compiled code.
pub(crate) struct Runtimes {
    metering: Metering,
    idle_hook: Option<fn()>,
    pool: PoolSize,
    first: Place,
    others: Box<[Place]>,
}

/// Where a runtime is, once it is started.
type Place = OnceLock<Arc<Runtime>>;

/// One wasmtime engine, and what belongs to it.
pub(crate) struct Runtime {
    pub(crate) wasmtime: wasmtime::Engine,
    pub(crate) linker: Linker<CallState>,
    pub(crate) ticker: EpochTicker,
    pub(crate) metering: Metering,
    /// What compiled code depends on besides the component: configuration, wasmtime version, host CPU. The same for all
    /// runtimes of one kind of code.
    pub(crate) fingerprint: [u8; 32],
}

impl Runtime {
    fn start(pool: &PoolSize, metering: Metering, idle_hook: Option<fn()>) -> Result<Self, EngineError> {
        let error = |error: wasmtime::Error| EngineError::Runtime { reason: one_line(&error) };
        let wasmtime = wasmtime::Engine::new(&runtime_config(pool, metering)).map_err(error)?;
        let linker = link::offered(&wasmtime).map_err(error)?;
        let ticker = EpochTicker::start(&wasmtime, idle_hook).map_err(EngineError::Ticker)?;
        let fingerprint = fingerprint(&wasmtime);
        Ok(Self { wasmtime, linker, ticker, metering, fingerprint })
    }
}

impl Runtimes {
    /// As many as there are cores, and as there is address space for; none is started.
    pub(crate) fn new(pool: PoolSize, metering: Metering, idle_hook: Option<fn()>) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let memories = u64::from(pool.memories_per_call_max) + 1;
        let places = u64::from(pool.concurrent_calls_max).saturating_mul(memories);
        let reserved = places.saturating_mul(MEMORY_RESERVATION_BYTES);
        let fitting = usize::try_from(ADDRESS_BYTES_MAX / reserved.max(1)).unwrap_or(usize::MAX);
        let allowed = usize::try_from(pool.pools_max).unwrap_or(usize::MAX);
        let others = cores.min(fitting).min(allowed).saturating_sub(1);
        Self {
            metering,
            idle_hook,
            pool,
            first: Place::new(),
            others: (0..others).map(|_| Place::new()).collect(),
        }
    }

    /// How many there can be.
    pub(crate) fn len(&self) -> usize {
        self.others.len() + 1
    }

    /// The first one, started if it is not.
    pub(crate) fn first(&self) -> Result<&Arc<Runtime>, EngineError> {
        started(&self.first, &self.pool, self.metering, self.idle_hook)
    }

    /// The one of that number, started if it is not; `None` if there can be none. Starting takes about a millisecond.
    pub(crate) fn numbered(&self, number: usize) -> Option<Result<&Arc<Runtime>, EngineError>> {
        let place = match number.checked_sub(1) {
            None => &self.first,
            Some(other) => self.others.get(other)?,
        };
        Some(started(place, &self.pool, self.metering, self.idle_hook))
    }

    /// The number of the one that this thread belongs to.
    pub(crate) fn of_this_thread(&self) -> usize {
        if self.others.is_empty() { 0 } else { thread_number() % self.len() }
    }
}

fn started<'p>(
    place: &'p Place,
    pool: &PoolSize,
    metering: Metering,
    idle_hook: Option<fn()>,
) -> Result<&'p Arc<Runtime>, EngineError> {
    if let Some(runtime) = place.get() {
        return Ok(runtime);
    }
    let started = Arc::new(Runtime::start(pool, metering, idle_hook)?);
    // Whoever comes second at the same time drops what it has started.
    Ok(place.get_or_init(|| started))
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

/// The smallest number that no other living thread has which has asked. Threads that serve calls are as many as cores: their
/// numbers lie close together, whatever other threads there are.
fn thread_number() -> usize {
    static TAKEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

    struct Number(usize);
    impl Number {
        fn take() -> Self {
            let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
            let free = (0..).find(|number| !taken.contains(number)).unwrap_or_default();
            taken.insert(free);
            Self(free)
        }
    }
    impl Drop for Number {
        fn drop(&mut self) {
            TAKEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
        }
    }
    thread_local! {
        static OWN: OnceCell<Number> = const { OnceCell::new() };
    }
    // A thread that is ending has given its number back.
    OWN.try_with(|own| own.get_or_init(Number::take).0).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(calls: u32) -> PoolSize {
        PoolSize { concurrent_calls_max: calls, ..PoolSize::default() }
    }

    #[test]
    fn there_are_no_more_than_cores_and_address_space_for() {
        let number = |calls| Runtimes::new(pool(calls), Metering::Time, None).len();
        let cores = thread::available_parallelism().unwrap().get();
        assert_eq!(number(8), cores.min(8));
        assert_eq!(Runtimes::new(PoolSize { pools_max: 1, ..pool(8) }, Metering::Time, None).len(), 1);
        assert_eq!(Runtimes::new(PoolSize { pools_max: 0, ..pool(8) }, Metering::Time, None).len(), 1);
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
