//! The clock that makes running guests look up.
//!
//! A tick only asks guest code to run its epoch callback; whether a deadline has passed is decided there by comparing a
//! monotonic clock, because ticks come late on a busy machine.

use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::trim::RunningCalls;

/// How often a running guest looks up. It bounds how late a deadline in pure guest code is noticed, how long a call computes
/// on its caller's thread before it moves to the busy lane, and how long a turn there is: cancelling within 50 ms needs
/// some of them. Each look costs a running guest some microseconds, mostly for changing turns; at 10 ms that does not show.
///
/// The thread has no special priority, and a late tick makes nothing wrong, only later: the busy lane's threads, which are
/// what keeps a machine busy here, are nicer than this one where the system knows such a thing.
const PERIOD: Duration = Duration::from_millis(10);

/// Ticks after the last call before the thread rests. Waking it costs more than a small call, and where calls follow one another
/// it would be woken for most of them.
const LINGER: u32 = 20;

/// How long the engine has to be idle before it gives memory back. Calls that follow one another closely do not wait for
/// that.
const IDLE: Duration = Duration::from_secs(1);
/// How often the thread looks whether the engine has gone.
const LOOK: Duration = Duration::from_secs(5);

/// A thread that ticks while calls run, and a moment longer, and sleeps otherwise. It ends with the engine.
pub(crate) struct Ticker {
    running: Arc<RunningCalls>,
    thread: Thread,
}

/// Keeps the ticker awake.
pub(crate) struct Ticking {
    running: Arc<RunningCalls>,
}

impl Ticker {
    /// Starts the thread for `engine`, which it does not keep alive.
    pub(crate) fn start(engine: &wasmtime::Engine, idle_hook: Option<fn()>) -> std::io::Result<Self> {
        let running = Arc::new(RunningCalls::default());
        let weak = engine.weak();
        let counter = Arc::clone(&running);
        let handle = thread::Builder::new()
            .name("cofferdam-epoch".to_owned())
            .spawn(move || tick(&weak, &counter, idle_hook))?;
        Ok(Self { running, thread: handle.thread().clone() })
    }

    /// Ticks until the returned value is dropped. Comes before the instance of a call is created.
    pub(crate) fn keep_ticking(&self) -> Ticking {
        if self.running.begin() {
            self.thread.unpark();
        }
        Ticking { running: Arc::clone(&self.running) }
    }

    /// Whether a call keeps it awake.
    pub(crate) fn is_ticking(&self) -> bool {
        self.running.are_any()
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        // The engine is gone or about to go: the thread finds that out when it wakes.
        self.thread.unpark();
    }
}

impl Drop for Ticking {
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

/// Sleeps until there is something to do, and gives memory back when there was nothing for a moment after calls had run.
/// Says whether calls have run since memory was given back.
fn rest(
    engine: &wasmtime::EngineWeak,
    running: &RunningCalls,
    has_run: bool,
    idle_hook: Option<fn()>,
) -> bool {
    // A timeout and not a plain park: the thread must notice in the end that the engine has gone.
    let (started, at_most) = (Instant::now(), if has_run { IDLE } else { LOOK });
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
