//! What one call has used of the CPU, and the signs that pass between the call and whoever runs it.
//!
//! CPU time is the time of the thread that polls the call, read before and after every poll. It counts the guest and the
//! host functions that run on that thread; waiting does not count, and neither does what other threads do for the call.
//! Reading it is a system call. Most calls are over after one poll that takes less than a few of those, so the first poll is
//! timed by the wall: that is never less, and more only if the thread had to wait for its turn.
//! The guest looks up at every tick of the epoch clock, and only there a limit is noticed: it may be passed by one tick.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// CPU time that a call may use on its caller's thread before it moves to the busy lane. A tool that does a little work
/// is done by then, and the tick that notices it comes at most one period later.
const IN_PLACE_MAX: Duration = Duration::from_millis(2);
/// CPU time after which the next call of the same tool starts in the busy lane. More than [`IN_PLACE_MAX`]: in the lane a
/// call waits for the ticks of others, which only a call that computes for about as long does not feel.
const STARTS_IN_PLACE_MAX: Duration = Duration::from_millis(5);

/// The guest has used up its CPU time. Raised by the epoch callback.
#[derive(Debug, thiserror::Error)]
#[error("the CPU time limit of {max_ms} ms is used up")]
pub(crate) struct CpuSpent {
    max_ms: u64,
}

/// Shared by a call's future, its epoch callback and the one who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Of the polls that have ended, in nanoseconds.
    used_ns: AtomicU64,
    /// What the clock of the running poll said when it began.
    began_ns: AtomicU64,
    /// Whether the first poll has ended, which is timed by another clock.
    is_timed_by_thread: AtomicBool,
    busy: AtomicBool,
    stopped: AtomicBool,
}

// Relaxed everywhere: a call is polled by one thread at a time, and handing it over synchronises.
impl Pulse {
    /// Counts what `poll` uses.
    pub(crate) fn measure<T>(&self, poll: impl FnOnce() -> T) -> T {
        self.began_ns.store(self.clock_ns(), Ordering::Relaxed);
        let polled = poll();
        self.used_ns.store(self.now_ns(), Ordering::Relaxed);
        self.is_timed_by_thread.store(true, Ordering::Relaxed);
        polled
    }

    /// For the epoch callback, within a poll: notes whether the call is busy.
    ///
    /// # Errors
    /// [`CpuSpent`] when more than `max_ms` of CPU time is used.
    pub(crate) fn look_up(&self, max_ms: u64) -> Result<(), CpuSpent> {
        let used = Duration::from_nanos(self.now_ns());
        if used > Duration::from_millis(max_ms) {
            return Err(CpuSpent { max_ms });
        }
        if used > IN_PLACE_MAX {
            self.busy.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// CPU time of all polls that have ended.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_nanos(self.used_ns.load(Ordering::Relaxed))
    }

    /// Whether the call used so much that the next one like it had better start in the busy lane.
    pub(crate) fn used_much(&self) -> bool {
        self.used() > STARTS_IN_PLACE_MAX
    }

    /// Whether the call should go on in the busy lane.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Asks the call to end at its next poll.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the call was asked to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn now_ns(&self) -> u64 {
        let in_this_poll = self.clock_ns().saturating_sub(self.began_ns.load(Ordering::Relaxed));
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

/// Without a clock of the thread, the time that passes within polls takes its place: never less than the CPU time.
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
        let pulse = Pulse::default();
        pulse.measure(|| work(Duration::from_millis(3)));
        let between = Instant::now();
        work(Duration::from_millis(20));
        pulse.measure(|| work(Duration::from_millis(3)));
        assert!(between.elapsed() >= Duration::from_millis(20));
        assert!(pulse.used() >= Duration::from_millis(6), "{:?}", pulse.used());
        assert!(pulse.used() < Duration::from_millis(20), "{:?}", pulse.used());
    }

    #[cfg(unix)]
    #[test]
    fn waiting_in_a_poll_is_no_cpu_time() {
        let pulse = Pulse::default();
        pulse.measure(|| {});
        pulse.measure(|| std::thread::sleep(Duration::from_millis(50)));
        assert!(pulse.used() < Duration::from_millis(25), "{:?}", pulse.used());
    }

    #[test]
    fn a_call_is_busy_before_it_is_over_its_limit() {
        let pulse = Pulse::default();
        pulse.measure(|| {
            assert!(pulse.look_up(60_000).is_ok());
            assert!(!pulse.is_busy());
            work(IN_PLACE_MAX + Duration::from_millis(1));
            assert!(pulse.look_up(60_000).is_ok());
            assert!(pulse.is_busy());
            assert!(pulse.look_up(1).is_err());
        });
    }
}
