//! Content of an entry: a header, and the bytes of a result.

use bytes::Bytes;
use cofferdam_tool::CallContext;
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::frame::{self, InvalidFrame};

/// A key, and the call that it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyedCall {
    /// Name of the entry: a digest of the caller and the key, so that one caller cannot name the
    /// entries of another.
    pub(crate) entry: String,
    /// Digest of the tool and the arguments.
    pub(crate) call: String,
}

/// State of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum EntryState {
    /// A gateway runs the call and renews the entry.
    Running,
    /// The call has no result, and may run again.
    Free,
    /// The body has the result.
    Ended,
    /// The call has ended, and its result was too large for the store.
    TooLarge,
}

/// Header of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntryHeader {
    pub(crate) state: EntryState,
    /// Digest of the call that the key stands for.
    pub(crate) call: String,
    /// Gateway and number of the call that wrote the entry.
    pub(crate) claim: String,
}

impl KeyedCall {
    /// Returns the entry and the digest of a call; `None` if the call has no key.
    pub(crate) fn new(
        (source, tool): (&str, &str),
        arguments: &str,
        context: &CallContext,
    ) -> Option<Self> {
        let key = context.idempotency_key.as_deref()?;
        let caller = context.session.as_deref().unwrap_or_default();
        let effects = if context.file_effects.is_dry_run { "dry run" } else { "" };
        Some(Self {
            entry: digest(&[caller, key]),
            call: digest(&[source, tool, arguments, effects]),
        })
    }
}

impl EntryHeader {
    pub(crate) fn encode(&self, result: &[u8]) -> Bytes {
        frame::encode(self, result)
    }

    /// Reads an entry: its header and the result.
    ///
    /// # Errors
    /// If the bytes are not those of an entry.
    pub(crate) fn decode(value: &Bytes) -> Result<(Self, Bytes), InvalidFrame> {
        frame::decode(value)
    }
}

/// Returns the name of the entry of a task: a digest of the caller and the task's id. It differs
/// from the names of all keys.
pub(crate) fn task_entry(caller: &str, id: &str) -> String {
    digest(&["task", caller, id])
}

/// Returns the name of the entry of a value that gateways share.
pub(crate) fn value_entry(name: &str) -> String {
    digest(&["value", "", "", name])
}

/// Returns the digest of a list of strings.
fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    HEXLOWER.encode(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use cofferdam_tool::invoke::FileEffects;

    use super::*;

    fn keyed(session: &str, key: &str, tool: &str, arguments: &str) -> KeyedCall {
        let context = CallContext {
            session: Some(session.to_owned()),
            idempotency_key: Some(key.to_owned()),
            ..CallContext::default()
        };
        KeyedCall::new(("s", tool), arguments, &context).unwrap()
    }

    #[test]
    fn a_key_belongs_to_one_caller_and_one_call() {
        let first = keyed("a", "k", "t", "{}");
        assert_eq!(first, keyed("a", "k", "t", "{}"));
        assert_ne!(first.entry, keyed("b", "k", "t", "{}").entry);
        assert_ne!(first.entry, keyed("ak", "", "t", "{}").entry);
        for other in [keyed("a", "k", "u", "{}"), keyed("a", "k", "t", "{\"a\":1}")] {
            assert_eq!(first.entry, other.entry);
            assert_ne!(first.call, other.call);
        }
        let context = CallContext {
            session: Some("a".to_owned()),
            idempotency_key: Some("k".to_owned()),
            file_effects: FileEffects { is_dry_run: true, shows_diffs: true },
            ..CallContext::default()
        };
        let dry_run = KeyedCall::new(("s", "t"), "{}", &context).unwrap();
        assert_ne!(first.call, dry_run.call);
        assert_eq!(KeyedCall::new(("s", "t"), "{}", &CallContext::default()), None);
    }

    #[test]
    fn an_entry_is_read_as_it_was_written() {
        let header =
            EntryHeader { state: EntryState::Ended, call: "c".into(), claim: "g.1".into() };
        let written = header.encode(b"{\n}");
        let (read, result) = EntryHeader::decode(&written).unwrap();
        assert_eq!((read, &result[..]), (header, &b"{\n}"[..]));
        for other in ["", "{}\n", "{\"state\":\"ended\"}\n", "\0\0\n"] {
            assert!(EntryHeader::decode(&Bytes::from(other.to_owned())).is_err(), "{other}");
        }
    }
}
