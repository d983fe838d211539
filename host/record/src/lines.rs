//! Lines of a segment besides calls.

use serde::Serialize;

use crate::UtcTime;
use crate::entry::LINE_VERSION;
use crate::event::LogEvent;
use crate::zone::ZoneMap;

/// First line of a segment.
#[derive(Serialize)]
pub(crate) struct OpenLine<'l> {
    v: u32,
    kind: &'static str,
    n: u64,
    at: UtcTime,
    pid: u32,
    process: &'l str,
    version: &'static str,
    /// Monotonic clock of the machine at `at`, in microseconds.
    monotonic_us: i64,
    /// Segment of the same process before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<&'l str>,
}

/// Last line of a segment.
#[derive(Serialize)]
pub(crate) struct CloseLine<'l> {
    v: u32,
    kind: &'static str,
    n: u64,
    at: UtcTime,
    zone: &'l ZoneMap,
}

/// Number of calls and events that were not recorded.
#[derive(Serialize)]
pub(crate) struct DropsLine {
    v: u32,
    kind: &'static str,
    n: u64,
    at: UtcTime,
    count: u64,
}

/// An event besides calls.
#[derive(Serialize)]
pub(crate) struct EventLine {
    v: u32,
    #[serde(flatten)]
    event: LogEvent,
    n: u64,
    at: UtcTime,
}

impl<'l> OpenLine<'l> {
    pub(crate) fn new(process: &'l str, previous: Option<&'l str>) -> Self {
        Self {
            v: LINE_VERSION,
            kind: "open",
            n: 0,
            at: UtcTime::now(),
            pid: std::process::id(),
            process,
            version: env!("CARGO_PKG_VERSION"),
            monotonic_us: monotonic_us(),
            previous,
        }
    }
}

/// Returns the time of the system's monotonic clock in microseconds.
#[cfg(unix)]
fn monotonic_us() -> i64 {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    clock.tv_sec.saturating_mul(1_000_000) + clock.tv_nsec / 1000
}

/// Returns the time since the first call in microseconds: the system's clock cannot be read.
#[cfg(not(unix))]
fn monotonic_us() -> i64 {
    static ORIGIN: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    i64::try_from(ORIGIN.elapsed().as_micros()).unwrap_or(i64::MAX)
}

impl<'l> CloseLine<'l> {
    pub(crate) fn new(n: u64, zone: &'l ZoneMap) -> Self {
        Self { v: LINE_VERSION, kind: "close", n, at: UtcTime::now(), zone }
    }
}

impl DropsLine {
    pub(crate) fn new(n: u64, count: u64) -> Self {
        Self { v: LINE_VERSION, kind: "drops", n, at: UtcTime::now(), count }
    }
}

impl EventLine {
    pub(crate) fn new(n: u64, at: UtcTime, event: LogEvent) -> Self {
        Self { v: LINE_VERSION, event, n, at }
    }
}
