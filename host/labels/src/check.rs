//! Checks whether a call may be made (`LBL-3`, `LBL-9`, `LBL-10`).

use cofferdam_agent::guard::Objection;
use cofferdam_tool::label::{Confidentiality, Integrity, Label, ToolLabels};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Reason why a call is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Violation {
    /// The tool does not accept untrusted data, and the context or a variable in the arguments is
    /// untrusted (`LBL-9`).
    Integrity,
    /// The tool would send the data to a destination that may not have it (`LBL-10`).
    Confidentiality {
        /// Confidentiality of the data.
        context: Confidentiality,
        /// Maximum confidentiality that the destination may receive.
        max: Confidentiality,
    },
}

impl Violation {
    /// Returns the message for the model, without the function's name.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Integrity => {
                "Policy violation: Tool cannot be called in untrusted context".to_owned()
            }
            Self::Confidentiality { context, max } => format!(
                "Cannot write {} data to {} destination (data exfiltration blocked)",
                context.word().to_ascii_uppercase(),
                max.word().to_ascii_uppercase(),
            ),
        }
    }

    /// Returns the result of the blocked call.
    #[must_use]
    pub fn result(&self, function: &str) -> Value {
        json!({ "error": self.message(), "function": function })
    }
}

impl From<&Violation> for Objection {
    fn from(violation: &Violation) -> Self {
        // Plain words, so this cannot fail. If it did, the objection would never match a waived
        // one.
        let data = serde_json::to_value(violation).unwrap_or_default();
        Self { message: violation.message(), data }
    }
}

/// Returns the violations among the objections that a user has waived.
pub(super) fn waived_violations(objections: Vec<Objection>) -> Vec<Violation> {
    objections
        .into_iter()
        .filter_map(|objection| serde_json::from_value(objection.data).ok())
        .collect()
}

/// Returns all violations of a call with data of this label, integrity first (`LBL-10`).
pub(super) fn violations(tool: &ToolLabels, data: &Label) -> Vec<Violation> {
    let mut found = Vec::new();
    if data.integrity == Integrity::Untrusted && !tool.accepts_untrusted {
        found.push(Violation::Integrity);
    }
    if let Some(destination) =
        tool.destination.as_ref().filter(|destination| !data.may_flow(destination))
    {
        found.push(Violation::Confidentiality {
            context: data.confidentiality,
            max: destination.max,
        });
    }
    found
}
