//! Where data comes from and who may have it: the labels of information-flow control, and the rules
//! that need nothing else (`LBL-1` to `LBL-3`, `LBL-5`, `LBL-12`).
//!
//! Nothing here is enforced: labels are words. Who runs tools decides by them, such as an agent's
//! label policy.

mod stated;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use stated::{StatedBy, StatedLabels, ToolLabels};

/// The key of `_meta` that labels stand under (`LBL-12`).
const META_KEY: &str = "ifc";
/// Most principals of one label that somebody else has written.
const PRINCIPALS_MAX: usize = 64;
/// Longest name of a principal that somebody else has written, in bytes.
const PRINCIPAL_BYTES_MAX: usize = 256;

/// Whether data can be relied on not to have been written by somebody who wants the model to do
/// something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Integrity {
    /// It can.
    #[default]
    Trusted,
    /// It cannot.
    Untrusted,
}

/// Who may have data, from everybody to named principals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidentiality {
    /// Everybody.
    #[default]
    Public,
    /// Nobody outside.
    Private,
    /// The principals of the label alone.
    UserIdentity,
}

/// What is known of a piece of data (`LBL-1`). The default is trusted, public, without principals.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Label {
    /// Whether it can be relied on.
    #[serde(default)]
    pub integrity: Integrity,
    /// Who may have it.
    #[serde(default)]
    pub confidentiality: Confidentiality,
    /// Whose data it is.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub principals: BTreeSet<String>,
    /// What else is known. It decides nothing.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
}

/// Where data can go to: a tool that takes it out of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The highest confidentiality that may go there.
    pub max: Confidentiality,
    /// Whose data may go there, of the data that is somebody's.
    pub authorized: BTreeSet<String>,
}

impl Integrity {
    /// `trusted` or `untrusted`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
        }
    }
}

impl Confidentiality {
    /// `public`, `private` or `user_identity`.
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
    /// Untrusted, public, of nobody: what a stranger says (`LBL-4`).
    #[must_use]
    pub fn untrusted() -> Self {
        Self { integrity: Integrity::Untrusted, ..Self::default() }
    }

    /// The label of data that all of these have gone into: untrusted if one is, the highest
    /// confidentiality, all principals. Of several values for one word of the metadata the last one
    /// stands. Combining nothing gives the default (`LBL-2`).
    #[must_use]
    pub fn combine<'l>(labels: impl IntoIterator<Item = &'l Self>) -> Self {
        let mut all = Self::default();
        for label in labels {
            all.add(label);
        }
        all
    }

    /// The same, into this label.
    pub fn add(&mut self, other: &Self) {
        self.integrity = self.integrity.max(other.integrity);
        self.confidentiality = self.confidentiality.max(other.confidentiality);
        self.principals.extend(other.principals.iter().cloned());
        self.metadata
            .extend(other.metadata.iter().map(|(name, value)| (name.clone(), value.clone())));
    }

    /// This label made stricter by what somebody says who is not relied on (`LBL-12`). Principals
    /// are a claim that data is somebody's: they count with the confidentiality that they come
    /// with, or beside principals that are there. Where data is known to be nobody's in particular
    /// and may go nowhere, they do not open a way for it.
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

    /// Whether data with this label may go to a destination: its confidentiality is not above the
    /// destination's, and of data that is somebody's every principal is authorised there, and there
    /// is one (`LBL-3`).
    #[must_use]
    pub fn may_flow(&self, to: &Destination) -> bool {
        let is_known = !self.principals.is_empty() && self.principals.is_subset(&to.authorized);
        self.confidentiality <= to.max
            && (self.confidentiality < Confidentiality::UserIdentity || is_known)
    }

    /// The label of a result in its `_meta`: under `ifc`, if that is a map whose integrity and
    /// confidentiality are both valid (`LBL-12`). Principals count where they are a list of texts.
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
    /// What may go to both.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.max = self.max.min(other.max);
        self.authorized.retain(|principal| other.authorized.contains(principal));
        self
    }
}

/// A list of texts as principals; `None` for something else, or for more than anybody has use for.
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
