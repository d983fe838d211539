//! Statements about artifacts: predicates of in-toto, such as a list of components or a provenance.
//!
//! A statement says what its signer says. Only its signature and its subject are verified.

use serde::Serialize;
use serde_json::{Value, json};

use crate::provenance::BUILD_TYPE;

/// Type of the statement that an artifact is signed.
pub(crate) const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";
/// Type of the statement that lists the components of an artifact, in the format of CycloneDX.
pub const CYCLONEDX: &str = "https://cyclonedx.org/bom";
/// Type of the statement that says how an artifact was built, in the format of SLSA.
pub const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
/// Maximum number of characters of a third party's string that is shown.
const SHOWN_CHARS_MAX: usize = 200;

/// Statement about an artifact.
#[derive(Debug, Clone, PartialEq)]
pub struct ArtifactStatement {
    /// Type, such as `https://slsa.dev/provenance/v1`.
    pub predicate_type: String,
    /// Contents of that type.
    pub predicate: Value,
}

/// Summary of a statement, for the operator. Strings are shortened and without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StatementSummary {
    /// Type.
    #[serde(rename = "type")]
    pub predicate_type: String,
    /// Number of components that an SBOM lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub components: Option<usize>,
    /// Identity of the builder that a provenance names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builder: Option<String>,
    /// Commit of the sources that a provenance names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// True if the sources differ from the commit, by a provenance of this program.
    #[serde(rename = "dirty", skip_serializing_if = "std::ops::Not::not")]
    pub is_dirty: bool,
}

impl ArtifactStatement {
    /// Returns the statement that an artifact is signed.
    #[must_use]
    pub fn signature() -> Self {
        Self { predicate_type: SIGNED.to_owned(), predicate: json!({}) }
    }

    /// Returns whether this says only that the artifact is signed.
    #[must_use]
    pub fn is_signature(&self) -> bool {
        self.predicate_type == SIGNED
    }

    /// Returns a summary.
    #[must_use]
    pub fn summary(&self) -> StatementSummary {
        let text = |pointer: &str| self.predicate.pointer(pointer)?.as_str().map(shown);
        let is = |kind: &str| self.predicate_type == kind;
        let components = self.predicate.get("components").and_then(Value::as_array).map(Vec::len);
        StatementSummary {
            predicate_type: shown(&self.predicate_type),
            components: is(CYCLONEDX).then(|| components.unwrap_or_default()),
            builder: text("/runDetails/builder/id").filter(|_| is(PROVENANCE)),
            commit: self.commit().filter(|_| is(PROVENANCE)),
            is_dirty: is(PROVENANCE) && self.is_dirty(),
        }
    }

    fn is_dirty(&self) -> bool {
        let definition = self.predicate.get("buildDefinition");
        let is = |pointer: &str, expected: Value| {
            definition.and_then(|it| it.pointer(pointer)) == Some(&expected)
        };
        is("/buildType", json!(BUILD_TYPE)) && is("/internalParameters/dirty", json!(true))
    }

    /// Returns the first commit among the dependencies of a provenance.
    fn commit(&self) -> Option<String> {
        let dependencies = self.predicate.pointer("/buildDefinition/resolvedDependencies")?;
        let commit = |it: &Value| it.pointer("/digest/gitCommit")?.as_str().map(shown);
        dependencies.as_array()?.iter().find_map(commit)
    }
}

/// Returns the beginning of a string that a third party wrote, for messages.
pub(crate) fn shown(string: &str) -> String {
    string.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(kind: &str, predicate: Value) -> Value {
        let statement = ArtifactStatement { predicate_type: kind.to_owned(), predicate };
        json!(statement.summary())
    }

    #[test]
    fn summaries_take_what_is_there() {
        let bom = summary(CYCLONEDX, json!({"components": [{}, {}]}));
        assert_eq!(bom, json!({"type": CYCLONEDX, "components": 2}));
        let provenance = json!({
            "buildDefinition": {"resolvedDependencies": [
                {"uri": "x"}, {"digest": {"gitCommit": "c0ffee\n"}}, {"digest": {"gitCommit": "b"}},
            ]},
            "runDetails": {"builder": {"id": format!("\u{1b}[2J{}", "x".repeat(300))}},
        });
        let builder = format!("[2J{}", "x".repeat(197));
        let expected = json!({"type": PROVENANCE, "builder": builder, "commit": "c0ffee"});
        assert_eq!(summary(PROVENANCE, provenance.clone()), expected);
        assert_eq!(summary("https://x.example", provenance), json!({"type": "https://x.example"}));
        for other in [json!(null), json!([]), json!({"components": "many", "runDetails": 1})] {
            assert_eq!(summary(CYCLONEDX, other.clone())["components"], 0);
            assert_eq!(summary(PROVENANCE, other), json!({"type": PROVENANCE}));
        }
    }
}
