//! CPU time of one call, and the flag that stops it.
//!
//! The meter reads the CPU time of the thread that polls the call, before and after every poll.
//! That includes the guest and the host functions that run on that thread, but neither waiting nor
//! the work of other threads. Reading it is a system call, and most calls end after a single poll
//! that is shorter than a few of those, so the first poll is measured by the wall clock, which
//! never shows less. Limits are checked at every epoch tick, so a call may exceed them by one tick.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use atomic_waker::AtomicWaker;

/// Maximum CPU time of a call on its caller's thread before it moves to the CPU pool. A tool that
/// does little work ends before that; the tick that detects the excess comes at most one period
/// later.
const INLINE_MAX: Duration = Duration::from_millis(2);
/// Maximum CPU time of a call for which the next call of the same tool starts on its caller's
/// thread. It is longer than [`INLINE_MAX`] because a call in the pool waits for other calls,
/// which only long calls do not notice.
const STARTS_INLINE_MAX: Duration = Duration::from_millis(5);

/// Error raised by the epoch callback when the guest has exceeded its CPU time.
#[derive(Debug, thiserror::Error)]
#[error("exceeded the CPU time limit of {max_ms} ms")]
pub(crate) struct CpuLimitExceeded {
    max_ms: u64,
}

/// CPU time and stop flag of one call. Shared by its future, its epoch callback and its caller.
#[derive(Debug, Default)]
pub(crate) struct CpuMeter {
    /// CPU time of all completed polls, in nanoseconds.
    used_ns: AtomicU64,
    /// Clock reading at the start of the current poll, in nanoseconds.
    poll_started_ns: AtomicU64,
    /// True after the first poll, which is measured by the wall clock.
    is_timed_by_thread: AtomicBool,
    is_computing: AtomicBool,
    is_stopped: AtomicBool,
    stopped: AtomicWaker,
}

// All accesses are relaxed: only one thread at a time polls a call, and moving the call between
// threads synchronizes.
impl CpuMeter {
    /// Measures one poll of the call.
    pub(crate) fn measure<T>(&self, poll: impl FnOnce() -> T) -> T {
        self.poll_started_ns.store(self.clock_ns(), Ordering::Relaxed);
        let polled = poll();
        self.used_ns.store(self.now_ns(), Ordering::Relaxed);
        self.is_timed_by_thread.store(true, Ordering::Relaxed);
        polled
    }

    /// Checks the CPU time at an epoch tick, within a poll.
    ///
    /// # Errors
    /// [`CpuLimitExceeded`] if the call has used more than `max_ms`.
    pub(crate) fn check(&self, max_ms: u64) -> Result<(), CpuLimitExceeded> {
        let used = Duration::from_nanos(self.now_ns());
        if used > Duration::from_millis(max_ms) {
            return Err(CpuLimitExceeded { max_ms });
        }
        if used > INLINE_MAX {
            self.is_computing.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the CPU time of all completed polls.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_nanos(self.used_ns.load(Ordering::Relaxed))
    }

    /// Returns true if the next call of the same tool should start in the CPU pool.
    pub(crate) fn prefers_cpu_pool(&self) -> bool {
        self.used() > STARTS_INLINE_MAX
    }

    /// Returns true if the call should continue in the CPU pool.
    pub(crate) fn is_computing(&self) -> bool {
        self.is_computing.load(Ordering::Relaxed)
    }

    /// Tells the call to end at its next poll.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.stopped.wake();
    }

    /// Returns true if the call should end at its next poll.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Registers the waker that [`CpuMeter::stop`] wakes.
    pub(crate) fn wake_when_stopped(&self, waker: &Waker) {
        self.stopped.register(waker);
    }

    fn now_ns(&self) -> u64 {
        let in_this_poll =
            self.clock_ns().saturating_sub(self.poll_started_ns.load(Ordering::Relaxed));
        self.used_ns.load(Ordering::Relaxed).saturating_add(in_this_poll)
    }

    fn clock_ns(&self) -> u64 {
        if self.is_timed_by_thread.load(Ordering::Relaxed) { thread_ns() } else { wall_ns() }
    }
}

#[cfg(unix)]
fn thread_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the wall-clock time, for systems without a CPU clock for threads. Over a poll it
/// advances at least as much as CPU time.
#[cfg(not(unix))]
fn thread_ns() -> u64 {
    wall_ns()
}

fn wall_ns() -> u64 {
    use std::sync::LazyLock;
    use std::time::Instant;
    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(ORIGIN.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::Instant;

    use super::*;

    fn work(duration: Duration) {
        let began = thread_ns();
        while thread_ns() - began < u64::try_from(duration.as_nanos()).unwrap() {
            black_box(());
        }
    }

    #[test]
    fn polls_are_summed_and_what_lies_between_them_is_not() {
        let meter = CpuMeter::default();
        meter.measure(|| work(Duration::from_millis(3)));
        let between = Instant::now();
        work(Duration::from_millis(20));
        meter.measure(|| work(Duration::from_millis(3)));
        assert!(between.elapsed() >= Duration::from_millis(20));
        assert!(meter.used() >= Duration::from_millis(6), "{:?}", meter.used());
        assert!(meter.used() < Duration::from_millis(20), "{:?}", meter.used());
    }

    #[cfg(unix)]
    #[test]
    fn waiting_in_a_poll_is_no_cpu_time() {
        let meter = CpuMeter::default();
        meter.measure(|| {});
        meter.measure(|| std::thread::sleep(Duration::from_millis(50)));
        assert!(meter.used() < Duration::from_millis(25), "{:?}", meter.used());
    }

    #[test]
    fn a_call_is_computing_before_it_is_over_its_limit() {
        let meter = CpuMeter::default();
        meter.measure(|| {
            assert!(meter.check(60_000).is_ok());
            assert!(!meter.is_computing());
            work(INLINE_MAX + Duration::from_millis(1));
            assert!(meter.check(60_000).is_ok());
            assert!(meter.is_computing());
            assert!(meter.check(1).is_err());
        });
    }
}
