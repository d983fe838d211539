//! The call that is being served.
//!
//! A component that uses nothing of this does not import `cofferdam:plugin/call`. In a unit test
//! progress goes to the [`testing::Host`](crate::testing::Host), and there is no session and no end
//! to the time.

use std::time::Duration;

/// The id of the call, unique within its session; empty if there is none.
#[must_use]
pub fn id() -> String {
    host::id()
}

/// The session that the call belongs to, if it belongs to one.
#[must_use]
pub fn session() -> Option<String> {
    host::session()
}

/// Returns the time until the host ends the call as timed out.
#[must_use]
pub fn time_left() -> Duration {
    Duration::from_millis(host::time_left_ms())
}

/// Returns whether the caller has given up. The host stops a cancelled call by itself, soon; a tool
/// that asks can stop sooner.
#[must_use]
pub fn cancelled() -> bool {
    host::cancelled()
}

/// Says how far the call has come, in a unit of the tool's own. `done` should not fall. The host
/// may leave reports out when they come too fast.
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
