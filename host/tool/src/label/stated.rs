//! What is stated about a tool, and what of it counts (`LBL-4`, `LBL-5`).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Confidentiality, Destination, Integrity, Label, META_KEY, principals};

/// What somebody states about a tool (`LBL-5`). What is not stated is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StatedLabels {
    /// Whether its results can be relied on.
    pub source_integrity: Option<Integrity>,
    /// Who may have its results.
    pub confidentiality: Option<Confidentiality>,
    /// Whether it may be called with, and in view of, what cannot be relied on.
    pub accepts_untrusted: Option<bool>,
    /// The highest confidentiality of what may go into it; without one nothing is kept from it
    /// (`LBL-10`).
    pub max_allowed_confidentiality: Option<Confidentiality>,
    /// Whose data may go into it, of the data that is somebody's.
    pub authorized_principals: Option<BTreeSet<String>>,
}

/// Who has stated it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StatedBy {
    /// The program that has the tool, about a function of its own: it counts as given.
    Program,
    /// Somebody else, a plugin or a server: it can only make a label stricter.
    #[default]
    ThirdParty,
}

/// What counts of a tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolLabels {
    /// The label of its results, apart from what goes into them.
    pub result: Label,
    /// Whether it may be called with, and in view of, what cannot be relied on.
    pub accepts_untrusted: bool,
    /// What may go into it; `None` if nothing is kept from it.
    pub destination: Option<Destination>,
}

impl StatedLabels {
    /// What a tool of a listing states in its `_meta`, under `ifc`. A key with a value that is none
    /// is not stated; of others nothing is known.
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

    /// Whether nothing is stated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These, and where they say nothing what the others say.
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

    /// Where data goes that goes into the tool, if anything is stated about that. A tool of which
    /// only the principals are known may have everything of theirs; one of which only the height is
    /// known, nothing that is somebody's.
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
    /// What counts of a tool: what the program states about it (`program`), and what its source
    /// does (`source`), which is `by`. Without a word from anybody the results of a third party are
    /// untrusted and public, and those of the program's own functions trusted and public (`LBL-1`,
    /// `LBL-4`).
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
