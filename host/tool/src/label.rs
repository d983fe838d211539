//! Labels of information-flow control, which describe the origin of data and its permitted
//! recipients, and the rules that depend only on labels (`LBL-1` to `LBL-3`, `LBL-5`, `LBL-12`).
//!
//! Nothing here is enforced. The code that runs tools decides by labels, such as an agent's label
//! policy.

mod stated;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use stated::{StatedBy, StatedLabels, ToolLabels};

/// Key of `_meta` that holds labels (`LBL-12`).
const META_KEY: &str = "ifc";
/// Owner of data of which no label was kept.
const UNKNOWN_OWNER: &str = "?";
/// Maximum number of principals in a third-party label.
const PRINCIPALS_MAX: usize = 64;
/// Longest name of a principal in a third-party label, in bytes.
const PRINCIPAL_BYTES_MAX: usize = 256;

/// Integrity of data: an attacker may have written untrusted data to influence the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Integrity {
    /// Data that can be relied on.
    #[default]
    Trusted,
    /// Data that cannot be relied on.
    Untrusted,
}

/// Confidentiality of data, from public to named principals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidentiality {
    /// Public data.
    #[default]
    Public,
    /// Data for no one outside.
    Private,
    /// Data for only the principals of the label.
    UserIdentity,
}

/// Label of a piece of data (`LBL-1`). The default is trusted, public, without principals.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// Integrity of the data.
    #[serde(default)]
    pub integrity: Integrity,
    /// Confidentiality of the data.
    #[serde(default)]
    pub confidentiality: Confidentiality,
    /// Owners of the data.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub principals: BTreeSet<String>,
    /// Other information, which decides nothing.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Destination of data: a tool that takes it out of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Highest confidentiality that may go there.
    pub max: Confidentiality,
    /// Principals whose data may go there.
    pub authorized: BTreeSet<String>,
}

impl Integrity {
    /// Returns `trusted` or `untrusted`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
        }
    }
}

impl Confidentiality {
    /// Returns `public`, `private` or `user_identity`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::UserIdentity => "user_identity",
        }
    }
}

impl Label {
    /// Returns the label of third-party data: untrusted, public, without principals (`LBL-4`).
    #[must_use]
    pub fn untrusted() -> Self {
        Self { integrity: Integrity::Untrusted, ..Self::default() }
    }

    /// Returns the label of data of which no label was kept, as strict as a label can be:
    /// untrusted, and `user_identity` of an owner that no destination authorizes (`LBL-3`), also
    /// not after it is combined with data of known owners (`LBL-2`).
    #[must_use]
    pub fn unknown() -> Self {
        Self {
            confidentiality: Confidentiality::UserIdentity,
            principals: BTreeSet::from([UNKNOWN_OWNER.to_owned()]),
            ..Self::untrusted()
        }
    }

    /// Returns the label of data that combines data with these labels: untrusted if one is, the
    /// highest confidentiality, all principals. Of several metadata values for one key the last one
    /// wins. Combining nothing returns the default (`LBL-2`).
    #[must_use]
    pub fn combine<'l>(labels: impl IntoIterator<Item = &'l Self>) -> Self {
        let mut all = Self::default();
        for label in labels {
            all.add(label);
        }
        all
    }

    /// Combines another label into this one, like [`combine`](Self::combine).
    pub fn add(&mut self, other: &Self) {
        self.integrity = self.integrity.max(other.integrity);
        self.confidentiality = self.confidentiality.max(other.confidentiality);
        self.principals.extend(other.principals.iter().cloned());
        self.metadata
            .extend(other.metadata.iter().map(|(name, value)| (name.clone(), value.clone())));
    }

    /// Tightens this label by one that an untrusted party states (`LBL-12`). Its principals claim
    /// to own the data. They count only if `said` raises the confidentiality or this label already
    /// has principals. Otherwise they would open a flow for data that has no known owner and may go
    /// nowhere.
    #[must_use]
    pub fn stricter(mut self, said: &Self) -> Self {
        let counts = said.confidentiality > self.confidentiality || !self.principals.is_empty();
        self.integrity = self.integrity.max(said.integrity);
        self.confidentiality = self.confidentiality.max(said.confidentiality);
        if counts {
            self.principals.extend(said.principals.iter().cloned());
        }
        self
    }

    /// Returns whether data with this label may flow to a destination (`LBL-3`): its
    /// confidentiality must not exceed the destination's, and data of `UserIdentity` must have
    /// principals that are all authorized there.
    #[must_use]
    pub fn may_flow(&self, to: &Destination) -> bool {
        let is_known = !self.principals.is_empty()
            && !self.principals.contains(UNKNOWN_OWNER)
            && self.principals.is_subset(&to.authorized);
        self.confidentiality <= to.max
            && (self.confidentiality < Confidentiality::UserIdentity || is_known)
    }

    /// Reads the label of a result from its `_meta`: under `ifc`, if that is a map whose integrity
    /// and confidentiality are both valid (`LBL-12`). Principals count only if they are a list of
    /// strings.
    #[must_use]
    pub fn from_meta(meta: &Map<String, Value>) -> Option<Self> {
        let said = meta.get(META_KEY)?.as_object()?;
        let word = |name: &str| said.get(name).filter(|value| value.is_string()).cloned();
        Some(Self {
            integrity: serde_json::from_value(word("integrity")?).ok()?,
            confidentiality: serde_json::from_value(word("confidentiality")?).ok()?,
            principals: principals(said.get("principals")).unwrap_or_default(),
            metadata: Map::new(),
        })
    }
}

impl Destination {
    /// Returns the destination that permits only what both permit.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.max = self.max.min(other.max);
        self.authorized.retain(|principal| other.authorized.contains(principal));
        self
    }
}

/// Reads a list of strings as principals. Returns `None` for anything else, or if the list or a
/// name is too long.
fn principals(written: Option<&Value>) -> Option<BTreeSet<String>> {
    let names = written?.as_array()?;
    if names.len() > PRINCIPALS_MAX {
        return None;
    }
    let name = |name: &Value| {
        name.as_str().filter(|name| name.len() <= PRINCIPAL_BYTES_MAX).map(str::to_owned)
    };
    names.iter().map(name).collect()
}

#[cfg(test)]
mod tests;
