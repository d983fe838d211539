//! The current call.
//!
//! A component that does not use this module does not import `cofferdam:plugin/call`. In a unit
//! test, progress goes to the [`testing::Host`](crate::testing::Host), there is no session, and
//! time is unlimited.

use std::time::Duration;

/// Returns the id of the call, unique within its session. Empty outside a call.
#[must_use]
pub fn id() -> String {
    host::id()
}

/// Returns the session of the call, if there is one.
#[must_use]
pub fn session() -> Option<String> {
    host::session()
}

/// Returns the time until the host stops the call with a timeout.
#[must_use]
pub fn time_left() -> Duration {
    Duration::from_millis(host::time_left_ms())
}

/// Returns whether the caller has canceled the call. The host soon stops a canceled call by itself;
/// a tool that checks can stop sooner.
#[must_use]
pub fn cancelled() -> bool {
    host::cancelled()
}

/// Reports progress in a unit that the tool chooses. `done` should not decrease. The host may drop
/// reports that come too fast.
///
/// ```
/// # let (row, rows) = (3, 10);
/// cofferdam_sdk::call::progress(f64::from(row), Some(f64::from(rows)), Some("reading rows"));
/// ```
pub fn progress(done: f64, total: Option<f64>, message: Option<&str>) {
    host::progress(done, total, message);
}

#[cfg(target_arch = "wasm32")]
use crate::guest::bindings::cofferdam::plugin::call as host;

#[cfg(not(target_arch = "wasm32"))]
mod host {
    pub(super) use crate::testing::host::report as progress;

    pub(super) fn id() -> String {
        let id = if crate::testing::host::is_there() { "test" } else { "" };
        id.to_owned()
    }

    pub(super) fn session() -> Option<String> {
        None
    }

    pub(super) fn time_left_ms() -> u64 {
        u64::MAX
    }

    pub(super) fn cancelled() -> bool {
        false
    }
}
