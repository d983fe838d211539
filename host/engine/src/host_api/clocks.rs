//! Clocks of a guest, with the precision that it was granted.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use cofferdam_tool::permission::ClockPrecision;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

use crate::recording::{CallRecorder, ClockKind};

/// Step of a coarse clock. Timing differences due to caches and speculation are thousands of times
/// smaller, and few tools measure anything shorter.
const COARSE_STEP: Duration = Duration::from_millis(1);
/// Step of a precise clock.
const PRECISE_STEP: Duration = Duration::from_nanos(1);

/// Configures the clocks of a guest. Its call started at `started`.
pub(crate) fn configure(
    builder: &mut WasiCtxBuilder,
    precision: ClockPrecision,
    started: Instant,
    recorder: Option<&Arc<CallRecorder>>,
) {
    let step = match precision {
        // The runtime's own clocks are those of the host.
        ClockPrecision::Precise if recorder.is_none() => return,
        ClockPrecision::Precise => Some(PRECISE_STEP),
        ClockPrecision::Coarse => Some(COARSE_STEP),
        ClockPrecision::Frozen => None,
    };
    let started_unix = unix_time().saturating_sub(started.elapsed());
    let (monotonic, wall) = (Monotonic { started, step }, Wall { started_unix, step });
    match recorder {
        None => {
            builder.monotonic_clock(monotonic);
            builder.wall_clock(wall);
        }
        Some(recorder) => {
            recorder.start_clock(ClockKind::Monotonic, monotonic.now());
            recorder.start_clock(ClockKind::Wall, nanoseconds(wall.now()));
            builder.monotonic_clock(RecordedClock {
                clock: monotonic,
                recorder: Arc::clone(recorder),
            });
            builder.wall_clock(RecordedClock { clock: wall, recorder: Arc::clone(recorder) });
        }
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Rounds `time` down to a multiple of `step`.
fn floor(time: Duration, step: Duration) -> Duration {
    let over = time.as_nanos() % step.as_nanos().max(1);
    time.saturating_sub(Duration::from_nanos(u64::try_from(over).unwrap_or_default()))
}

/// Monotonic clock that starts one step above zero at the start of the call: a runtime may take
/// zero for a broken clock. Go's does, and exits.
struct Monotonic {
    started: Instant,
    /// Step of the clock; `None` if it is frozen.
    step: Option<Duration>,
}

impl HostMonotonicClock for Monotonic {
    fn resolution(&self) -> u64 {
        nanoseconds(self.step.unwrap_or(Duration::from_secs(1)))
    }

    fn now(&self) -> u64 {
        let passed = self.step.map_or(Duration::ZERO, |step| floor(self.started.elapsed(), step));
        nanoseconds(COARSE_STEP.saturating_add(passed))
    }
}

/// Clock for date and time.
struct Wall {
    started_unix: Duration,
    /// Step of the clock; `None` if it is frozen.
    step: Option<Duration>,
}

impl HostWallClock for Wall {
    fn resolution(&self) -> Duration {
        self.step.unwrap_or(Duration::from_secs(1))
    }

    fn now(&self) -> Duration {
        match self.step {
            Some(step) => floor(unix_time(), step),
            None => floor(self.started_unix, COARSE_STEP),
        }
    }
}

/// Clock whose readings are recorded.
struct RecordedClock<C> {
    clock: C,
    recorder: Arc<CallRecorder>,
}

impl HostMonotonicClock for RecordedClock<Monotonic> {
    fn resolution(&self) -> u64 {
        self.clock.resolution()
    }

    fn now(&self) -> u64 {
        self.recorder.read_clock(ClockKind::Monotonic, || self.clock.now())
    }
}

impl HostWallClock for RecordedClock<Wall> {
    fn resolution(&self) -> Duration {
        self.clock.resolution()
    }

    fn now(&self) -> Duration {
        let live = || nanoseconds(self.clock.now());
        Duration::from_nanos(self.recorder.read_clock(ClockKind::Wall, live))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coarse_clock_advances_in_steps() {
        let clock = Monotonic { started: Instant::now(), step: Some(COARSE_STEP) };
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(5) {
            assert_eq!(clock.now() % 1_000_000, 0);
        }
        assert!(clock.now() >= 4_000_000);
        assert_eq!(
            Wall { started_unix: unix_time(), step: Some(COARSE_STEP) }.now().subsec_nanos()
                % 1_000_000,
            0
        );
    }

    #[test]
    fn no_clock_is_ever_zero() {
        for step in [Some(COARSE_STEP), None] {
            assert_ne!(Monotonic { started: Instant::now(), step }.now(), 0);
        }
    }

    #[test]
    fn a_frozen_clock_stands_still() {
        let monotonic = Monotonic { started: Instant::now(), step: None };
        let wall = Wall { started_unix: unix_time(), step: None };
        let before = (monotonic.now(), wall.now());
        std::thread::sleep(Duration::from_millis(3));
        assert_eq!((monotonic.now(), wall.now()), before);
        assert!(wall.now() > Duration::from_secs(1_000_000_000));
    }
}
