//! Limits for everything that a server can make grow.

use std::time::Duration;

/// Maximum number of tools of one server. A model cannot choose among more, so further ones would
/// only fill memory.
pub(crate) const TOOLS_MAX: usize = 1000;
/// Maximum number of prompts of one server, which become tools as well.
pub(crate) const PROMPTS_MAX: usize = 200;
/// Maximum number of resources of one server, and of resource templates.
pub(crate) const RESOURCES_MAX: usize = 1000;
/// Maximum length of a resource's address.
pub(crate) const ADDRESS_BYTES_MAX: usize = 2048;
/// Maximum number of pages of one listing. Servers send 50 to 100 tools per page; the limit stops a
/// cursor that never ends.
pub(crate) const PAGES_MAX: usize = 100;
/// Maximum total size of one server's schemas and descriptions, in bytes of JSON.
pub(crate) const LISTING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum size of one schema, in bytes of JSON: twice the limit for plugins, because the user of a
/// server cannot change its schemas.
pub(crate) const SCHEMA_BYTES_MAX: usize = 128 * 1024;
/// Maximum nesting depth of one schema, deeper than any real declaration.
pub(crate) const SCHEMA_LEVELS_MAX: usize = 64;
/// Maximum length of one description. Hosts cut at 2 KiB; anything beyond this limit is left out.
pub(crate) const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;
/// Maximum length of a title, which is a few words.
pub(crate) const TITLE_BYTES_MAX: usize = 256;
/// Maximum length of an error message. It goes to the model, and a stack trace should not.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4096;
/// Maximum length of a tool's own failure message: enough for the output of a compiler.
pub(crate) const ERROR_BYTES_MAX: usize = 64 * 1024;
/// Maximum size of one JSON-RPC message, in bytes: enough for a result of several MiB in base64.
/// Longer messages are not read.
pub(crate) const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum total size of the messages that wait until a server on a pipe reads them, in bytes: that
/// of the largest answer. A message that would exceed it is not sent.
pub(crate) const UNREAD_BYTES_MAX: usize = FRAME_BYTES_MAX;
/// Maximum number of items in one result.
pub(crate) const ITEMS_MAX: usize = 4096;
/// Maximum total size of the items of one result, in bytes: enough for a screenshot, but not for a
/// video.
pub(crate) const RESULT_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Maximum size of a server's request or notification, in bytes: enough for a form with its schema,
/// or a conversation for sampling.
pub(crate) const OWN_MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of a server's unanswered requests, per call.
pub(crate) const REQUESTS_IN_FLIGHT_MAX: u32 = 8;
/// Maximum number of a server's requests in quick succession, per call. A server that sends more
/// loses the connection.
pub(crate) const REQUESTS_MAX: u32 = 100;
/// Interval after which a server may send one more request.
pub(crate) const REQUEST_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of questions for the user in one call, apart from those that come in rounds.
pub(crate) const QUESTIONS_PER_CALL_MAX: u32 = 50;
/// Maximum number of log lines of one call that are shown, each of at most `MESSAGE_BYTES_MAX`.
pub(crate) const LOG_LINES_MAX: u32 = 1000;
/// Maximum number of log lines of one call that are shown per second.
pub(crate) const LOG_LINES_PER_SECOND_MAX: u32 = 50;
/// Maximum number of progress reports of one call that are passed on per second.
pub(crate) const REPORTS_PER_SECOND_MAX: u32 = 50;
/// Maximum number of rounds in which a server may ask for more input, as in the SDKs.
pub(crate) const ROUNDS_MAX: usize = 10;
/// Maximum number of questions in one round.
pub(crate) const QUESTIONS_MAX: usize = 16;
/// Maximum length of a task id, which is sent with every poll.
pub(crate) const TASK_ID_BYTES_MAX: usize = 1024;
/// Maximum time to open a connection and to list what the server offers.
pub(crate) const CONNECT_WAIT: Duration = Duration::from_secs(30);
/// Maximum time for `tasks/cancel` (`MCP-35`).
pub(crate) const CANCEL_WAIT: Duration = Duration::from_secs(5);
/// Minimum time between two reloads of the tools, however often a server reports changes.
pub(crate) const RELOAD_SPACING: Duration = Duration::from_secs(1);

/// Returns the longest prefix of `text` of at most `bytes_max` bytes.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}
