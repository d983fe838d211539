//! Call logs of workers on one machine: workers give out parts of their logs, and a collector
//! copies them.
//!
//! The collector asks for everything, and a worker remembers nothing of it: a collector that was
//! away goes on where its copies end. Its subjects are not those of calls, so that the permissions
//! of a bus can keep gateways from reading logs, and collectors from calling tools.

mod collector;
mod server;

use bytes::Bytes;
use cofferdam_record::{ChangedFile, FilePart, FileState};
use serde::{Deserialize, Serialize};

pub use self::collector::{CollectedLog, LogCollector};
pub use self::server::LogServer;

/// Message of a collector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
enum CollectorMessage {
    /// Asks all workers which logs they have.
    Logs {},
    /// Asks for the files of a log that have changed after this one.
    Changes {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<ChangedFile>,
    },
    /// Asks for a part of a file.
    Read { name: String, offset: u64 },
}

/// Answer to a collector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
enum LogMessage {
    /// Log of a worker: its public key.
    Log { key: String },
    /// Files that have changed. The body has a list of them.
    Changes { is_last: bool },
    /// Part of a file. The body has the checkpoint and then the part.
    Part { is_last: bool, state: FileState, checkpoint_bytes: usize },
    /// Declares that there is no such file.
    Missing {},
    /// Declares that the log cannot be read.
    Unreadable {},
}

/// Returns the message for a part, and its body.
fn part_message(part: &FilePart) -> (LogMessage, Vec<u8>) {
    let checkpoint = part.checkpoint.as_deref().unwrap_or_default();
    let message = LogMessage::Part {
        is_last: part.is_last,
        state: part.state,
        checkpoint_bytes: checkpoint.len(),
    };
    (message, [checkpoint.as_bytes(), &part.bytes].concat())
}

/// Reads the body of a part. Returns `None` if it is invalid.
fn read_part(
    is_last: bool,
    state: FileState,
    checkpoint_bytes: usize,
    body: &Bytes,
) -> Option<FilePart> {
    let (checkpoint, bytes) = body.split_at_checked(checkpoint_bytes)?;
    let checkpoint = std::str::from_utf8(checkpoint).ok()?.to_owned();
    let checkpoint = (!checkpoint.is_empty()).then_some(checkpoint);
    Some(FilePart { bytes: bytes.to_vec(), is_last, state, checkpoint })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame;

    #[test]
    fn a_part_is_a_message_and_back() {
        for checkpoint in [None, Some("a note\n".to_owned())] {
            let bytes = b"{}\n\0".to_vec();
            let part = FilePart { bytes, is_last: true, state: FileState::Live, checkpoint };
            let (message, body) = part_message(&part);
            let LogMessage::Part { is_last, state, checkpoint_bytes } = message else {
                panic!("{message:?}");
            };
            let body = Bytes::from(body);
            assert_eq!(read_part(is_last, state, checkpoint_bytes, &body), Some(part));
            assert_eq!(read_part(is_last, state, body.len() + 1, &body), None);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let bytes = Bytes::from(bytes);
            let _ = frame::decode::<CollectorMessage>(&bytes);
            if let Ok((LogMessage::Part { is_last, state, checkpoint_bytes }, body)) =
                frame::decode(&bytes)
            {
                let _ = read_part(is_last, state, checkpoint_bytes, &body);
            }
        }
    }
}
