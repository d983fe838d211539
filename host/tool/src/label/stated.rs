//! Stated labels of tools, and the rules for how far they count (`LBL-4`, `LBL-5`).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Confidentiality, Destination, Integrity, Label, META_KEY, principals};

/// Labels stated about a tool (`LBL-5`). `None` means that a label is not stated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StatedLabels {
    /// Integrity of its results.
    pub source_integrity: Option<Integrity>,
    /// Confidentiality of its results.
    pub confidentiality: Option<Confidentiality>,
    /// True if it may be called with untrusted data, or after such data has entered the
    /// conversation.
    pub accepts_untrusted: Option<bool>,
    /// Highest confidentiality of the data that may go into it. If it is missing, any data may
    /// (`LBL-10`).
    pub max_allowed_confidentiality: Option<Confidentiality>,
    /// Principals whose data may go into it.
    pub authorized_principals: Option<BTreeSet<String>>,
}

/// Party that states labels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StatedBy {
    /// The program that has the tool, about its own function. Its labels count as given.
    Program,
    /// A third party, such as a plugin or a server. Its labels can only make others stricter.
    #[default]
    ThirdParty,
}

/// Effective labels of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolLabels {
    /// Label of its results, apart from the labels of its input.
    pub result: Label,
    /// True if it may be called with untrusted data, or after such data has entered the
    /// conversation.
    pub accepts_untrusted: bool,
    /// Destination of the data that goes into it; `None` if any data may.
    pub destination: Option<Destination>,
}

impl StatedLabels {
    /// Reads the labels that a listed tool states in its `_meta`, under `ifc`. Keys with invalid
    /// values count as not stated, and unknown keys are ignored.
    #[must_use]
    pub fn from_meta(meta: &Map<String, Value>) -> Self {
        let Some(said) = meta.get(META_KEY).and_then(Value::as_object) else {
            return Self::default();
        };
        let level = |name: &str| serde_json::from_value(said.get(name)?.clone()).ok();
        Self {
            source_integrity: said
                .get("source_integrity")
                .and_then(|word| serde_json::from_value(word.clone()).ok()),
            confidentiality: level("confidentiality"),
            accepts_untrusted: said.get("accepts_untrusted").and_then(Value::as_bool),
            max_allowed_confidentiality: level("max_allowed_confidentiality"),
            authorized_principals: principals(said.get("authorized_principals")),
        }
    }

    /// Returns whether no label is stated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns these labels, completed by `others` where they state nothing.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            source_integrity: self.source_integrity.or(others.source_integrity),
            confidentiality: self.confidentiality.or(others.confidentiality),
            accepts_untrusted: self.accepts_untrusted.or(others.accepts_untrusted),
            max_allowed_confidentiality: self
                .max_allowed_confidentiality
                .or(others.max_allowed_confidentiality),
            authorized_principals: self.authorized_principals.or(others.authorized_principals),
        }
    }

    /// Returns the destination of data that goes into the tool, if anything is stated about it. If
    /// only the principals are stated, all of their data may go in; if only the maximum is stated,
    /// no data that belongs to a principal may.
    fn destination(&self) -> Option<Destination> {
        let (max, authorized) =
            (self.max_allowed_confidentiality, self.authorized_principals.as_ref());
        (max.is_some() || authorized.is_some()).then(|| Destination {
            max: max.unwrap_or(Confidentiality::UserIdentity),
            authorized: authorized.cloned().unwrap_or_default(),
        })
    }
}

impl ToolLabels {
    /// Returns the effective labels of a tool from those that the program states about it
    /// (`program`) and those that its source states (`source`, stated by `by`). Without any, the
    /// results of a third party are untrusted and public, and those of the program's own functions
    /// trusted and public (`LBL-1`, `LBL-4`).
    #[must_use]
    pub fn resolve(program: &StatedLabels, source: &StatedLabels, by: StatedBy) -> Self {
        let nothing = StatedLabels::default();
        let (given, said) = match by {
            StatedBy::Program => (program.clone().or(source.clone()), &nothing),
            StatedBy::ThirdParty => (program.clone(), source),
        };
        let by_default = match by {
            StatedBy::Program => Integrity::Trusted,
            StatedBy::ThirdParty => Integrity::Untrusted,
        };
        let destination = match (given.destination(), said.destination()) {
            (Some(given), Some(said)) => Some(given.and(&said)),
            (given, said) => given.or(said),
        };
        Self {
            result: Label {
                integrity: given
                    .source_integrity
                    .unwrap_or(by_default)
                    .max(said.source_integrity.unwrap_or_default()),
                confidentiality: given
                    .confidentiality
                    .unwrap_or_default()
                    .max(said.confidentiality.unwrap_or_default()),
                ..Label::default()
            },
            accepts_untrusted: given.accepts_untrusted == Some(true)
                && said.accepts_untrusted != Some(false),
            destination,
        }
    }
}
