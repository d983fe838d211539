//! Thread that interrupts running guests.
//!
//! A tick only makes guest code run its epoch callback, which compares a monotonic clock with the
//! deadline: on a busy machine, ticks are late.

use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::trim::RunningCalls;

/// Time between two ticks. It determines how late a deadline in pure guest code is detected, how
/// long a call computes on its caller's thread before it moves to the CPU pool, and how long a turn
/// in that pool is: cancellation within 50 ms takes several ticks. A tick costs a running guest a
/// few microseconds, mostly for switching turns, which is not measurable at 10 ms.
///
/// The thread has no special priority, and a late tick only causes a delay: where the system has
/// priorities, this thread preempts those of the CPU pool.
const PERIOD: Duration = Duration::from_millis(10);

/// Number of ticks after the last call before the thread sleeps. Waking it costs more than a small
/// call, and would otherwise happen for most calls in a sequence.
const LINGER: u32 = 20;

/// Time without calls after which the engine returns memory to the system.
const IDLE: Duration = Duration::from_secs(1);
/// Interval at which the sleeping thread checks whether the engine is gone.
const CHECK: Duration = Duration::from_secs(5);

/// Handle of the thread. It ticks while calls run and for a moment after, sleeps otherwise, and
/// ends with the engine.
pub(crate) struct EpochTicker {
    running: Arc<RunningCalls>,
    thread: Thread,
}

/// Keeps the thread ticking until it is dropped.
pub(crate) struct TickerGuard {
    running: Arc<RunningCalls>,
}

impl EpochTicker {
    /// Starts the thread for `engine`, which it does not keep alive.
    pub(crate) fn start(
        engine: &wasmtime::Engine,
        idle_hook: Option<fn()>,
    ) -> std::io::Result<Self> {
        let running = Arc::new(RunningCalls::default());
        let weak = engine.weak();
        let counter = Arc::clone(&running);
        let handle = thread::Builder::new()
            .name("cofferdam-epoch".to_owned())
            .spawn(move || tick(&weak, &counter, idle_hook))?;
        Ok(Self { running, thread: handle.thread().clone() })
    }

    /// Keeps the thread ticking until the returned value is dropped. Must be called before the
    /// instance of a call is created.
    pub(crate) fn keep_ticking(&self) -> TickerGuard {
        if self.running.begin() {
            self.thread.unpark();
        }
        TickerGuard { running: Arc::clone(&self.running) }
    }

    /// Returns true while a call is running.
    pub(crate) fn is_ticking(&self) -> bool {
        self.running.are_any()
    }
}

impl Drop for EpochTicker {
    fn drop(&mut self) {
        // The thread checks for the end of the engine when it wakes.
        self.thread.unpark();
    }
}

impl Drop for TickerGuard {
    fn drop(&mut self) {
        self.running.end();
    }
}

fn tick(engine: &wasmtime::EngineWeak, running: &RunningCalls, idle_hook: Option<fn()>) {
    let mut has_run = false;
    let mut idle_ticks = LINGER;
    loop {
        if running.are_any() {
            (has_run, idle_ticks) = (true, 0);
            thread::sleep(PERIOD);
        } else if idle_ticks < LINGER {
            idle_ticks += 1;
            thread::sleep(PERIOD);
        } else {
            has_run = rest(engine, running, has_run, idle_hook);
        }
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
    }
}

/// Sleeps until a call runs, and returns memory to the system when none has run for a while.
/// Returns true if calls have run since memory was returned.
fn rest(
    engine: &wasmtime::EngineWeak,
    running: &RunningCalls,
    has_run: bool,
    idle_hook: Option<fn()>,
) -> bool {
    // With a timeout, because the thread must detect the end of the engine.
    let (started, at_most) = (Instant::now(), if has_run { IDLE } else { CHECK });
    thread::park_timeout(at_most);
    let is_idle = !running.are_any() && started.elapsed() >= at_most;
    if is_idle
        && has_run
        && let Some(engine) = engine.upgrade()
    {
        running.trim(&engine);
        if let Some(hook) = idle_hook {
            hook();
        }
    }
    !is_idle
}
