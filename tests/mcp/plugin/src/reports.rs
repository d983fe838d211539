//! Progress and log lines of a running tool.

use std::thread::sleep;
use std::time::Duration;

use cofferdam_sdk::{call, client, tool};

/// Longer than the minimum time between two reports of a host.
const PAUSE: Duration = Duration::from_millis(60);

/// Reports progress three times.
#[tool(read_only)]
pub fn test_tool_with_progress() -> &'static str {
    for done in [0.0, 50.0, 100.0] {
        call::progress(done, Some(100.0), Some("Working"));
        sleep(PAUSE);
    }
    "Progress test completed"
}

/// Logs three lines.
#[tool(read_only)]
pub fn test_tool_with_logging() -> &'static str {
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        client::log::info(line);
        sleep(PAUSE);
    }
    "Logging test completed"
}

/// Logs a line, which reaches a client that wants to have it.
#[tool(read_only)]
pub fn test_logging_tool() -> &'static str {
    client::log::line(client::log::Level::Emergency, "A line of the tool");
    "Logging tool completed"
}

/// Takes a moment, in which the connection may be lost.
#[tool(read_only)]
pub fn test_reconnection() -> &'static str {
    sleep(Duration::from_millis(100));
    "Reconnection test completed"
}
