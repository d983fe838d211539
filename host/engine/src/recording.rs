//! Records everything that the guest of a call receives from outside, and supplies it again in a
//! replay.
//!
//! Host functions ask the [`CallRecorder`] of their call, if there is one. In a replay it answers
//! from the earlier recording, and records again, so that the two recordings can be compared. A
//! replay sends no request, opens no socket, calls no other tool, asks no question and changes no
//! file.

mod grants;
mod http;
mod playback;
mod questions;
mod recorder;

pub(crate) use self::http::{RequestTape, played_response};
pub(crate) use self::playback::Playback;
pub use self::playback::Replay;
pub(crate) use self::recorder::{CallRecorder, ClockKind, RandomSources, RecordedCall};
