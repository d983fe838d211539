//! Whether a call may be made (`LBL-3`, `LBL-9`, `LBL-10`).

use cofferdam_agent::guard::Objection;
use cofferdam_tool::label::{Confidentiality, Integrity, Label, ToolLabels};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Why a call is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Violation {
    /// The tool takes nothing that is untrusted, and the context, or a variable in the arguments,
    /// is (`LBL-9`).
    Integrity,
    /// The tool takes data out that may not go there (`LBL-10`).
    Confidentiality {
        /// How confidential the data is.
        context: Confidentiality,
        /// What the tool may have.
        max: Confidentiality,
    },
}

impl Violation {
    /// What the model is told, beside the function.
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

    /// The result of the call that is not made.
    #[must_use]
    pub fn result(&self, function: &str) -> Value {
        json!({ "error": self.message(), "function": function })
    }
}

impl From<&Violation> for Objection {
    fn from(violation: &Violation) -> Self {
        // Words: this cannot fail, and if it did the objection would be recognised as none that is
        // waived.
        let data = serde_json::to_value(violation).unwrap_or_default();
        Self { message: violation.message(), data }
    }
}

/// Returns the violations among objections that a user has waived.
pub(super) fn waived(objections: Vec<Objection>) -> Vec<Violation> {
    objections
        .into_iter()
        .filter_map(|objection| serde_json::from_value(objection.data).ok())
        .collect()
}

/// Everything that speaks against a call with data of this label, integrity first (`LBL-10`).
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
