//! Settings of an engine, and the wasmtime configuration derived from them.

use std::path::PathBuf;

use cofferdam_files::SpillOptions;
use cofferdam_network::ClientConfig;
use cofferdam_tool::Limits;

use crate::screen::ScreenLimits;
use crate::{Compiler, Confinement};

/// Maximum stack of guest code, in bytes. Deep recursion in a parser needs about 100 KiB, and that
/// of an interpreted script several times as much: with 512 KiB, a JavaScript function ran out of
/// stack 200 calls deep. 1 MiB leaves headroom and still ends a runaway recursion within a
/// millisecond.
const WASM_STACK_BYTES_MAX: usize = 1024 * 1024;
/// Size of the stack on which guest and host functions run together, in bytes. The host's part
/// needs a fixed margin.
const FIBER_STACK_BYTES: usize = 2 * 1024 * 1024;
/// Maximum number of frames that are recorded of a guest's call stack at a trap.
const BACKTRACE_FRAMES_MAX: usize = 64;
/// Maximum bytes of pages that the memories, and the tables, of one slot keep after a call: enough
/// for everything that a call of a compiled language, JavaScript or TypeScript writes. An
/// interpreter like Python writes more, and the excess goes back to the system.
const RESIDENT_BYTES_MAX: usize = 1 << 20;
/// Minimum that is worth keeping: the pages that a small tool writes.
const RESIDENT_BYTES_MIN: usize = 64 << 10;
/// Maximum bytes that all slots of one pool keep together if each has one memory. Slots of large
/// pools keep less each.
const RESIDENT_BYTES_OF_POOL: usize = 128 << 20;
/// Number of memories that are returned to the system in one batch where no pages stay resident.
const DECOMMIT_BATCH: usize = 16;
/// Address space reserved for one linear memory. With all 4 GiB that 32 bits can address, no access
/// needs a bounds check.
pub(crate) const MEMORY_RESERVATION_BYTES: u64 = 4 << 30;

/// Settings of an [`Engine`](crate::Engine).
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Directory of compiled code and definitions; `None` recompiles in every process.
    pub cache_directory: Option<PathBuf>,
    /// Compiler of untrusted bytes to machine code.
    pub compiler: Compiler,
    /// Minimum confinement of a process that compiles. Where the system confines it less, nothing
    /// is compiled. Without a minimum, any level is sufficient, and an observer is notified
    /// unless it is the highest. The limits of the process are required in any case.
    pub confinement_min: Option<Confinement>,
    /// Number of concurrent calls and of instances that the engine has room for.
    pub pool: PoolSize,
    /// Budget of all calls of the engine together.
    pub budget: ProcessBudget,
    /// Limits of the structural screen.
    pub screen: ScreenLimits,
    /// Settings for HTTP requests of guests.
    pub network: ClientConfig,
    /// Directory for changes of a call that are too large for memory; `None` keeps all of them in
    /// memory, up to 80 MiB per call. The directory must not overlap any mount.
    pub spill: Option<SpillOptions>,
    /// Function that threads of the engine call when there have been no calls for a second, once
    /// after each burst of calls. An allocator that keeps freed memory per thread can release it
    /// there.
    pub idle_hook: Option<fn()>,
}

/// Budget of all calls of an engine together, in addition to the slots of
/// [`PoolSize::concurrent_calls_max`]. One plugin may use seven times what it leaves free: a single
/// plugin gets seven eighths, and a second one still finds some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessBudget {
    /// Linear memory and tables of all running calls, in bytes, counted as they grow, except for up
    /// to 64 KiB of each call. A growth beyond the budget is refused like one beyond the call's own
    /// limit.
    pub memory_bytes_max: u64,
    /// Maximum number of waiting calls of one plugin. Further calls are rejected.
    pub waiting_calls_per_plugin_max: u32,
    /// Maximum number of waiting calls of all plugins, which bounds the memory of arguments and
    /// tasks. Calls of a plugin that has used up its share are rejected.
    pub waiting_calls_max: u32,
}

impl Default for ProcessBudget {
    fn default() -> Self {
        Self {
            // 64 calls at their own limit of 64 MiB, or a sixth of a laptop's memory. On average,
            // calls grow to far less.
            memory_bytes_max: 4 << 30,
            waiting_calls_per_plugin_max: 1024,
            waiting_calls_max: 8192,
        }
    }
}

/// Capacity for calls. The pool reserves address space, not memory, so an unused slot costs next to
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSize {
    /// Maximum number of concurrent calls, at least 1. Further calls wait.
    pub concurrent_calls_max: u32,
    /// Maximum number of linear memories in one component, over all instances.
    pub memories_per_call_max: u32,
    /// Maximum number of tables in one component, over all instances.
    pub tables_per_call_max: u32,
    /// Maximum number of core instances in one component.
    pub core_instances_per_call_max: u32,
    /// Maximum number of elements in one table.
    pub table_elements_max: usize,
    /// Maximum number of instance pools of this size. Each core that makes calls has its own pool,
    /// so that cores do not contend for locks; there are never more pools than cores, or than fit
    /// into 64 TiB of address space. A pool is created when it is first used, and holds a copy of
    /// the code of the plugins that are called in it. With 1, all cores share one pool.
    pub pools_max: u32,
}

impl Default for PoolSize {
    fn default() -> Self {
        Self {
            // A thousand calls that mostly wait. With 5 memories of 4 GiB each this is 20 TiB of a
            // 128 TiB address space, so that three cores can have their own pools.
            concurrent_calls_max: 1024,
            memories_per_call_max: 4,
            tables_per_call_max: 32,
            // A Python component has 65 core instances, of all kinds.
            core_instances_per_call_max: 128,
            // A Python interpreter has tables of about 10,000 functions.
            table_elements_max: 100_000,
            // Bounds the memory of a busy plugin; cores beyond this number share pools.
            pools_max: 8,
        }
    }
}

impl EngineConfig {
    /// Returns default settings with a compiler and without a cache on disk.
    #[must_use]
    pub fn new(compiler: Compiler) -> Self {
        Self {
            cache_directory: None,
            compiler,
            confinement_min: None,
            pool: PoolSize::default(),
            budget: ProcessBudget::default(),
            screen: ScreenLimits::default(),
            network: ClientConfig::default(),
            spill: None,
            idle_hook: None,
        }
    }
}

/// Metering of compiled code: whether it counts the instructions that it executes. Counting makes
/// code larger and slower, so such code is a separate variant that is only compiled for plugins
/// with an instruction budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Metering {
    /// Only time limits end a call.
    Time,
    /// An instruction budget also ends a call (`CpuLimit`).
    Instructions,
}

impl Metering {
    /// Returns the metering that calls under `limits` need.
    pub(crate) fn under(limits: &Limits) -> Self {
        if limits.fuel_max.is_some() { Self::Instructions } else { Self::Time }
    }
}

/// Returns the settings that compiled code depends on. The compile child must use exactly these, or
/// its output does not load.
pub(crate) fn compile_config(metering: Metering) -> wasmtime::Config {
    let mut config = wasmtime::Config::new();
    config.epoch_interruption(true);
    config.consume_fuel(metering == Metering::Instructions);
    config.max_wasm_stack(WASM_STACK_BYTES_MAX);
    config.memory_reservation(MEMORY_RESERVATION_BYTES);
    // Proposals that no supported toolchain needs are off: features that do not exist have no
    // vulnerabilities.
    config.wasm_component_model(true);
    config.wasm_tail_call(false);
    // Not for guests, whose own modules may have one memory each (the screen refuses more). In a
    // component that contains components which call each other, as those of JavaScript do, the
    // compiler generates an adapter module that reads the memory of one and writes that of the
    // other.
    config.wasm_multi_memory(true);
    config.wasm_memory64(false);
    config.wasm_relaxed_simd(false);
    config.wasm_wide_arithmetic(false);
    config.wasm_custom_page_sizes(false);
    config.wasm_gc(false);
    config.wasm_function_references(false);
    // C++ and Kotlin throw exceptions. An exception is an object on the collected heap, so this
    // requires a collector. The null collector never collects, which needs the least code and
    // suffices for the length of one call: the exceptions of a call count against its memory limit.
    // A component that throws none has no such heap.
    config.wasm_exceptions(true);
    config.collector(wasmtime::Collector::Null);
    // Toolchains emit atomic instructions for non-shared memories too. Shared memories stay off,
    // here and in the screen.
    config.wasm_threads(true);
    config.shared_memory(false);
    config
}

/// Returns [`compile_config`] with the settings that only running needs: stacks, backtraces and the
/// instance pool.
pub(crate) fn runtime_config(pool: &PoolSize, metering: Metering) -> wasmtime::Config {
    let mut config = compile_config(metering);
    // Only the module of `trim` is compiled here, which is not worth starting threads.
    config.parallel_compilation(false);
    config.async_stack_size(FIBER_STACK_BYTES);
    config.wasm_backtrace_max_frames(std::num::NonZeroUsize::new(BACKTRACE_FRAMES_MAX));
    config.allocation_strategy(pooling(pool));
    config
}

fn pooling(pool: &PoolSize) -> wasmtime::PoolingAllocationConfig {
    let calls = pool.concurrent_calls_max;
    let mut config = wasmtime::PoolingAllocationConfig::default();
    config
        .total_component_instances(calls)
        .total_stacks(calls)
        .total_core_instances(calls.saturating_mul(pool.core_instances_per_call_max))
        // The heap of exceptions is a memory of the pool as well.
        .total_memories(calls.saturating_mul(pool.memories_per_call_max.saturating_add(1)))
        .total_gc_heaps(calls)
        .total_tables(calls.saturating_mul(pool.tables_per_call_max))
        .max_core_instances_per_component(pool.core_instances_per_call_max)
        .max_memories_per_component(pool.memories_per_call_max)
        .max_tables_per_component(pool.tables_per_call_max)
        // One module may have all of them: with reference types, several tables are common.
        .max_tables_per_module(pool.tables_per_call_max)
        .table_elements(pool.table_elements_max)
        .max_memory_size(usize::try_from(MEMORY_RESERVATION_BYTES).unwrap_or(usize::MAX));
    keep_pages(&mut config, calls);
    config
}

/// Keeps pages that a call has written, where that is worthwhile. Returning the pages of a memory
/// to the system after each call, and faulting them in again in the next, costs more than
/// everything else in a small call. So the pages stay, and are overwritten with the initial
/// contents for a new instance.
///
/// That is worthwhile only if the kernel reports which pages were written (Linux 6.7 and later);
/// otherwise every resident page would have to be overwritten.
fn keep_pages(config: &mut wasmtime::PoolingAllocationConfig, calls: u32) {
    if wasmtime::PoolingAllocationConfig::is_pagemap_scan_available() {
        let slots = usize::try_from(calls).unwrap_or(usize::MAX).max(1);
        let resident =
            (RESIDENT_BYTES_OF_POOL / slots).clamp(RESIDENT_BYTES_MIN, RESIDENT_BYTES_MAX);
        config.pagemap_scan(wasmtime::Enabled::Auto);
        config.linear_memory_keep_resident(resident).table_keep_resident(resident);
    } else {
        config.decommit_batch_size(DECOMMIT_BATCH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pool_defaults_are_pinned() {
        let pool = PoolSize::default();
        assert_eq!(
            (pool.concurrent_calls_max, pool.memories_per_call_max, pool.tables_per_call_max),
            (1024, 4, 32)
        );
        assert_eq!((pool.core_instances_per_call_max, pool.table_elements_max), (128, 100_000));
        assert_eq!(pool.pools_max, 8);
    }

    #[test]
    fn budget_defaults_are_pinned() {
        let budget = ProcessBudget::default();
        assert_eq!(budget.memory_bytes_max, 4_294_967_296);
        assert_eq!((budget.waiting_calls_per_plugin_max, budget.waiting_calls_max), (1024, 8192));
    }
}
