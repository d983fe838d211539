//! Log lines for the client, which may show them to the user. Output on standard error stays in the
//! host's record of the call. The host drops lines of more than 8 KiB, and lines that are too many.
//!
//! ```
//! cofferdam_sdk::client::log::warning("the file has 3 lines that are no CSV");
//! ```

/// Severity of a log line, as in MCP and syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the words of RFC 5424")]
pub enum Level {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// Logs a line with a severity.
pub fn line(level: Level, message: &str) {
    host::log(level, message);
}

/// Logs a line for debugging.
pub fn debug(message: &str) {
    line(Level::Debug, message);
}

/// Logs a normal event.
pub fn info(message: &str) {
    line(Level::Info, message);
}

/// Logs a notable event.
pub fn notice(message: &str) {
    line(Level::Notice, message);
}

/// Logs something that may be wrong.
pub fn warning(message: &str) {
    line(Level::Warning, message);
}

/// Logs an error after which the tool continues. To end the tool, return a
/// [`ToolFailure`](crate::ToolFailure).
pub fn error(message: &str) {
    line(Level::Error, message);
}

/// Logs an error after which the tool cannot continue.
pub fn critical(message: &str) {
    line(Level::Critical, message);
}

#[cfg(target_arch = "wasm32")]
mod host {
    use super::Level;
    use crate::guest::bindings::cofferdam::plugin::client;

    pub(super) fn log(level: Level, message: &str) {
        let level = match level {
            Level::Debug => client::LogLevel::Debug,
            Level::Info => client::LogLevel::Info,
            Level::Notice => client::LogLevel::Notice,
            Level::Warning => client::LogLevel::Warning,
            Level::Error => client::LogLevel::Error,
            Level::Critical => client::LogLevel::Critical,
            Level::Alert => client::LogLevel::Alert,
            Level::Emergency => client::LogLevel::Emergency,
        };
        client::log(level, message);
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod host {
    pub(super) use crate::testing::host::log;
}
