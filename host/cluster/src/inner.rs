//! Calls that a running call makes of other tools, about which its gateway decides.
//!
//! An agent at a gateway has a label policy and other checks for these calls, and the worker has
//! only its grants. So the worker asks the gateway before each of them, and reports the label of
//! the result before the calling tool gets it. Both travel like the questions of the call, as
//! bodies that are JSON objects. A gateway can only refuse a call: the grants of the worker decide
//! first.

use cofferdam_tool::label::Label;
use cofferdam_tool::{ToolFailure, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of times that one start of a call asks about calls of other tools: twice for each
/// of 4,096 calls.
pub(crate) const CHECKS_MAX: usize = 8192;
/// Maximum size of the body of a check in bytes: names, and a label.
const CHECK_BYTES_MAX: usize = 8 * 1024;
/// Maximum size of the principals of a label in bytes. A label with more counts as unknown.
const PRINCIPALS_BYTES_MAX: usize = 4 * 1024;
/// Longest message of a refusal, in characters.
const REFUSAL_CHARS_MAX: usize = 1024;

/// Demand that the gateway decides about calls of other tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InnerCallsHeader {
    /// Combined label of everything that the called tool has, if there is a label policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) label: Option<Label>,
}

/// Question of a worker about a call of another tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "check", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum InnerCheck {
    /// Asks whether the call may be made.
    Begin { call: String, outer: Option<String>, source: String, tool: ToolName },
    /// Reports that the call has ended, and the label that its source gave the result.
    End { call: String, label: Option<Label> },
    /// Reports that the calling tool has a result of a tool that was not called now: one that the
    /// worker has kept. `own` is the label of the tool without the policy of the gateway, `label`
    /// that which its source gave the result.
    Received { source: String, tool: ToolName, own: Label, label: Option<Label> },
}

/// Answer of a gateway to a check.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum InnerDecision {
    /// Accepts the call, or the end of it. Has the label of everything that the calling tool has.
    Accepted { label: Option<Label> },
    /// Refuses the call.
    Refused { message: String, is_bare: bool },
}

impl InnerCheck {
    /// Returns the bytes of the check.
    ///
    /// # Errors
    /// If it is larger than a gateway accepts.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, String> {
        let bytes = serde_json::to_vec(self).unwrap_or_default();
        match bytes.len() {
            0..=CHECK_BYTES_MAX => Ok(bytes),
            found => Err(format!(
                "a gateway can be asked about a call with at most {CHECK_BYTES_MAX} bytes; this \
                 one has {found}"
            )),
        }
    }

    /// Returns whether a body is that of a check. Otherwise it has questions, which are a list.
    pub(crate) fn is_in(body: &[u8]) -> bool {
        body.first() == Some(&b'{')
    }

    /// Reads a check.
    ///
    /// # Errors
    /// What is wrong with the bytes, for the operator.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > CHECK_BYTES_MAX {
            return Err(format!("expected at most {CHECK_BYTES_MAX} bytes, found {}", bytes.len()));
        }
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
}

impl InnerDecision {
    pub(crate) fn refused(message: &str) -> Self {
        Self::Refused { message: message.to_owned(), is_bare: false }
    }

    pub(crate) fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Returns the label of everything that the calling tool has.
    ///
    /// # Errors
    /// The refusal of the gateway.
    pub(crate) fn into_label(self) -> Result<Option<Label>, Box<ToolFailure>> {
        match self {
            Self::Accepted { label } => Ok(label),
            Self::Refused { message, is_bare: true } => Err(Box::new(ToolFailure::bare(message))),
            Self::Refused { message, is_bare: false } => Err(Box::new(ToolFailure::new(message))),
        }
    }
}

impl From<ToolFailure> for InnerDecision {
    fn from(failure: ToolFailure) -> Self {
        let message = failure.message.chars().take(REFUSAL_CHARS_MAX).collect();
        Self::Refused { message, is_bare: failure.is_bare }
    }
}

/// Returns a label for a message: without metadata, which decides nothing, and the strictest label
/// if it has too many principals.
pub(crate) fn carried(label: Label) -> Label {
    let principals = serde_json::to_vec(&label.principals).unwrap_or_default();
    if principals.len() > PRINCIPALS_BYTES_MAX {
        return Label::unknown();
    }
    Label { metadata: serde_json::Map::new(), ..label }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = InnerCheck::decode(&bytes);
        }
    }

    #[test]
    fn checks_are_read_as_they_were_written() {
        let begin = InnerCheck::Begin {
            call: "a.1".to_owned(),
            outer: Some("a".to_owned()),
            source: "mail".to_owned(),
            tool: ToolName::new("send").unwrap(),
        };
        let end = InnerCheck::End { call: "a.1".to_owned(), label: Some(Label::unknown()) };
        let received = InnerCheck::Received {
            source: "mail".to_owned(),
            tool: ToolName::new("read").unwrap(),
            own: Label::untrusted(),
            label: None,
        };
        for check in [begin, end, received] {
            let bytes = check.encode().unwrap();
            assert!(InnerCheck::is_in(&bytes));
            assert_eq!(InnerCheck::decode(&bytes), Ok(check));
        }
        let large = InnerCheck::End { call: "a".repeat(CHECK_BYTES_MAX), label: None };
        assert!(large.encode().is_err());
        assert!(InnerCheck::decode(br#"{"check":"grant"}"#).is_err());
    }

    #[test]
    fn a_refusal_stays_one() {
        for failure in [ToolFailure::new("no"), ToolFailure::bare("not in this mode")] {
            assert_eq!(InnerDecision::from(failure.clone()).into_label(), Err(Box::new(failure)));
        }
    }

    #[test]
    fn a_label_that_is_too_large_becomes_the_strictest() {
        let label = Label { principals: BTreeSet::from(["ann".to_owned()]), ..Label::untrusted() };
        let mut with_metadata = label.clone();
        with_metadata.metadata.insert("from".to_owned(), json!("a mail"));
        assert_eq!(carried(with_metadata), label);
        let many = (0..2000).map(|number| number.to_string()).collect();
        assert_eq!(carried(Label { principals: many, ..label }), Label::unknown());
    }
}
