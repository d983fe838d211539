//! The sealed state between the rounds of a request whose answers come with its next attempt.
//!
//! The state travels through the client, so it is attacker's input: it is bound by an HMAC to the
//! principal, the method, and the name and arguments of the request, and it expires. What it holds
//! is what the client itself has answered; sealing it keeps an answer that was given to one
//! question from being taken for the answer to another one.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// How long a person may take to answer.
const STATE_TTL: Duration = Duration::from_secs(15 * 60);
/// Longest state that is opened, in bytes. Answers are forms and messages.
const STATE_BYTES_MAX: usize = 1 << 20;

/// Seals and opens states. The key lives as long as the process.
#[derive(Clone)]
pub(super) struct Seal {
    codec: RequestStateCodec,
}

/// What was asked and answered so far, by the question's key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// Answers of earlier rounds and the questions that they belong to.
    pub(super) answers: BTreeMap<String, Answered>,
    /// Digests of the questions of the last round.
    pub(super) asked: BTreeMap<String, String>,
    /// Number of answers that did not fit their questions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) misfits: BTreeMap<String, u32>,
}

/// An answer, with the digest of its question; `None` if the client answered before it was asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Answered {
    pub(super) question: Option<String>,
    pub(super) answer: Value,
}

/// The state was not issued for this request, was changed, or is too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "requestState was not issued for this request or has expired; send the request again without it"
)]
pub(super) struct InvalidState;

impl Seal {
    pub(super) fn new(key: [u8; 32]) -> Result<Self, InvalidState> {
        Ok(Self { codec: RequestStateCodec::try_new(key.to_vec()).map_err(|_| InvalidState)? })
    }

    pub(super) fn seal(&self, state: &State, binding: &Binding) -> Result<String, InvalidState> {
        let options = SealOptions::new().associated_data(&binding.0).ttl(STATE_TTL);
        self.codec.seal_json_with(state, &options).map_err(|_| InvalidState)
    }

    pub(super) fn open(&self, sealed: &str, binding: &Binding) -> Result<State, InvalidState> {
        if sealed.len() > STATE_BYTES_MAX {
            return Err(InvalidState);
        }
        self.codec.open_json_with(sealed, &binding.0).map_err(|_| InvalidState)
    }
}

/// What a state is bound to.
pub(super) struct Binding([u8; 32]);

impl Binding {
    pub(super) fn new(principal: &str, method: &str, name: &str, arguments: &[u8]) -> Self {
        let mut digest = Sha256::new();
        for part in [principal.as_bytes(), method.as_bytes(), name.as_bytes(), arguments] {
            digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part);
        }
        Self(digest.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_state_opens_for_its_own_request_alone() {
        let seal = Seal::new([7; 32]).unwrap();
        let mine = Binding::new("p", "tools/call", "t", b"{}");
        let state = State {
            answers: BTreeMap::from([(
                "q1".to_owned(),
                Answered { question: Some("d".into()), answer: json!(1) },
            )]),
            ..State::default()
        };
        let sealed = seal.seal(&state, &mine).unwrap();
        assert_eq!(seal.open(&sealed, &mine), Ok(state));
        let others = [
            Binding::new("q", "tools/call", "t", b"{}"),
            Binding::new("p", "prompts/get", "t", b"{}"),
            Binding::new("p", "tools/call", "u", b"{}"),
            Binding::new("p", "tools/call", "t", b"{\"a\":1}"),
        ];
        for other in others {
            assert_eq!(seal.open(&sealed, &other), Err(InvalidState));
        }
        assert_eq!(seal.open(&format!("{sealed}A"), &mine), Err(InvalidState));
        assert_eq!(Seal::new([8; 32]).unwrap().open(&sealed, &mine), Err(InvalidState));
        assert_eq!(seal.open("", &mine), Err(InvalidState));
    }
}
