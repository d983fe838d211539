//! Sealed state between the rounds of a request. The client sends its answers with the next
//! attempt.
//!
//! The state travels through the client, so it is untrusted input: an HMAC binds it to the
//! principal, the method, and the name and arguments of the request, and it expires. It contains
//! the client's own answers; sealing it keeps the answer to one question from being used as the
//! answer to another one.

use std::collections::BTreeMap;
use std::time::Duration;

use cofferdam_tool::prompt::ANSWER_TIME_MAX;
use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Maximum time for the user to answer.
const STATE_TTL: Duration = ANSWER_TIME_MAX;
/// Maximum size of a state that is opened, in bytes. Answers are forms and messages.
const STATE_BYTES_MAX: usize = 1 << 20;

/// Seals and opens states. The key lives as long as the process.
#[derive(Clone)]
pub(super) struct Seal {
    codec: RequestStateCodec,
}

/// Questions and answers so far, by the key of the question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct RoundState {
    /// Answers of earlier rounds with the questions that they belong to.
    pub(super) answers: BTreeMap<String, AnsweredQuestion>,
    /// Digests of the questions of the last round.
    pub(super) asked: BTreeMap<String, String>,
    /// Number of answers per question that did not fit it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) misfits: BTreeMap<String, u32>,
    /// Ids of the operator's prompts for the questions of the last round.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) prompts: BTreeMap<String, String>,
}

/// Answer with the digest of its question, or with `None` if the client answered before it was
/// asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AnsweredQuestion {
    pub(super) question: Option<String>,
    pub(super) answer: Value,
    /// True if the operator answered, and not the client.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_of_operator: bool,
}

impl AnsweredQuestion {
    /// Returns an answer of the client.
    pub(super) fn of_client(question: Option<String>, answer: Value) -> Self {
        Self { question, answer, is_of_operator: false }
    }
}

/// Error for a state that was not issued for this request, was modified, or has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "requestState was not issued for this request or has expired; send the request again without it"
)]
pub(super) struct InvalidState;

impl Seal {
    pub(super) fn new(key: [u8; 32]) -> Result<Self, InvalidState> {
        Ok(Self { codec: RequestStateCodec::try_new(key.to_vec()).map_err(|_| InvalidState)? })
    }

    pub(super) fn seal(
        &self,
        state: &RoundState,
        binding: &StateBinding,
    ) -> Result<String, InvalidState> {
        let options = SealOptions::new().associated_data(&binding.0).ttl(STATE_TTL);
        self.codec.seal_json_with(state, &options).map_err(|_| InvalidState)
    }

    pub(super) fn open(
        &self,
        sealed: &str,
        binding: &StateBinding,
    ) -> Result<RoundState, InvalidState> {
        if sealed.len() > STATE_BYTES_MAX {
            return Err(InvalidState);
        }
        self.codec.open_json_with(sealed, &binding.0).map_err(|_| InvalidState)
    }
}

/// Digest of everything that a state is bound to.
pub(super) struct StateBinding([u8; 32]);

impl StateBinding {
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
        let mine = StateBinding::new("p", "tools/call", "t", b"{}");
        let state = RoundState {
            answers: BTreeMap::from([(
                "q1".to_owned(),
                AnsweredQuestion::of_client(Some("d".into()), json!(1)),
            )]),
            ..RoundState::default()
        };
        let sealed = seal.seal(&state, &mine).unwrap();
        assert_eq!(seal.open(&sealed, &mine), Ok(state));
        let others = [
            StateBinding::new("q", "tools/call", "t", b"{}"),
            StateBinding::new("p", "prompts/get", "t", b"{}"),
            StateBinding::new("p", "tools/call", "u", b"{}"),
            StateBinding::new("p", "tools/call", "t", b"{\"a\":1}"),
        ];
        for other in others {
            assert_eq!(seal.open(&sealed, &other), Err(InvalidState));
        }
        assert_eq!(seal.open(&format!("{sealed}A"), &mine), Err(InvalidState));
        assert_eq!(Seal::new([8; 32]).unwrap().open(&sealed, &mine), Err(InvalidState));
        assert_eq!(seal.open("", &mine), Err(InvalidState));
    }
}
