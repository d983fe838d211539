//! What a server can make grow, and how far.

use std::time::Duration;

/// Tools of one server. A model cannot choose among more, and what is above this is there to fill
/// memory.
pub(crate) const TOOLS_MAX: usize = 1000;
/// Prompts of one server, which become tools as well.
pub(crate) const PROMPTS_MAX: usize = 200;
/// Resources of one server, and as many templates.
pub(crate) const RESOURCES_MAX: usize = 1000;
/// The address of a resource.
pub(crate) const ADDRESS_BYTES_MAX: usize = 2048;
/// Pages of one listing. Servers send 50 to 100 tools in one; a cursor that never ends does not get
/// further.
pub(crate) const PAGES_MAX: usize = 100;
/// All schemas and descriptions of one server together, in bytes of JSON.
pub(crate) const LISTING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// One schema, in bytes of JSON: as much as a plugin may declare twice over, for nobody here wrote
/// it.
pub(crate) const SCHEMA_BYTES_MAX: usize = 128 * 1024;
/// Levels of one schema; further than any declaration goes.
pub(crate) const SCHEMA_LEVELS_MAX: usize = 64;
/// One description. Hosts cut at 2 KiB; the rest of a longer one is left out.
pub(crate) const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;
/// A title is a few words.
pub(crate) const TITLE_BYTES_MAX: usize = 256;
/// The message of an error of the protocol. It goes to a model, and a stack trace should not.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4096;
/// The words of a tool about its own failure: the output of a compiler fits.
pub(crate) const ERROR_BYTES_MAX: usize = 64 * 1024;
/// One message of the protocol, in bytes: a result of some MiB in base64, with room. Nothing longer
/// is read.
pub(crate) const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Items of one result.
pub(crate) const ITEMS_MAX: usize = 4096;
/// What of one result is kept, in bytes of the items. A screenshot passes, a video does not.
pub(crate) const RESULT_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// A request or a notification of a server, in bytes: a form with its schema, a conversation to go
/// on with.
pub(crate) const OWN_MESSAGE_BYTES_MAX: usize = 256 * 1024;
/// Requests of a server that wait for their answer at a time, for each call.
pub(crate) const REQUESTS_IN_FLIGHT_MAX: u32 = 8;
/// Requests of a server in quick succession, for each call. One that sends more loses the
/// connection.
pub(crate) const REQUESTS_MAX: u32 = 100;
/// The time after which a server may send one request more.
pub(crate) const REQUEST_INTERVAL: Duration = Duration::from_secs(1);
/// Questions for the user in one call, apart from those that come in rounds.
pub(crate) const QUESTIONS_PER_CALL_MAX: u32 = 50;
/// Log lines of one call that are shown, each of `MESSAGE_BYTES_MAX` at most.
pub(crate) const LOG_LINES_MAX: u32 = 1000;
/// Log lines of one call that are shown in one second.
pub(crate) const LOG_LINES_PER_SECOND_MAX: u32 = 50;
/// How often a server may ask for more before it answers, as the SDKs have it.
pub(crate) const ROUNDS_MAX: usize = 10;
/// Questions of one round.
pub(crate) const QUESTIONS_MAX: usize = 16;
/// An id of a task, which is sent back with every poll.
pub(crate) const TASK_ID_BYTES_MAX: usize = 1024;
/// Opening a connection, its handshake included.
pub(crate) const CONNECT_WAIT: Duration = Duration::from_secs(30);
/// One page of a listing.
pub(crate) const LISTING_WAIT: Duration = Duration::from_secs(30);
/// `tasks/cancel` (`MCP-35`).
pub(crate) const CANCEL_WAIT: Duration = Duration::from_secs(5);
/// Between two reloads of the list of tools, however often a server says that it has changed.
pub(crate) const RELOAD_SPACING: Duration = Duration::from_secs(1);

/// The text, or as many of its first bytes as are allowed.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default()
}
