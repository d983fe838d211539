//! Zone maps: the summary of a segment by which readers skip it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::blocks::BlockZone;
use crate::entry::CallLineKind;
use crate::{CallEntry, UtcTime};

/// Maximum number of different names in a zone map.
const NAMES_MAX: usize = 256;

/// Summary of a segment: time range, and numbers of calls by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ZoneMap {
    /// Earliest start of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<UtcTime>,
    /// Latest start of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<UtcTime>,
    /// Number of lines about calls.
    #[serde(default)]
    pub(crate) calls: u64,
    /// Number of `begin` lines.
    #[serde(default)]
    pub(crate) begins: u64,
    /// Longest duration in microseconds.
    #[serde(default)]
    pub(crate) longest_us: u64,
    /// Number of calls that were refused a capability.
    #[serde(default)]
    pub(crate) refused: u64,
    /// Number of calls that changed files.
    #[serde(default)]
    pub(crate) changed: u64,
    #[serde(default)]
    pub(crate) tools: NameCounts,
    #[serde(default)]
    pub(crate) plugins: NameCounts,
    #[serde(default)]
    pub(crate) sessions: NameCounts,
    #[serde(default)]
    pub(crate) outcomes: NameCounts,
    /// Blocks of the compressed segment, in order. None in segments of older versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) blocks: Vec<BlockZone>,
}

/// Numbers of calls by name, as long as there are few names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct NameCounts(BTreeMap<String, u64>);

impl NameCounts {
    fn add(&mut self, name: &str) {
        if let Some(count) = self.0.get_mut(name) {
            *count += 1;
        } else if self.0.len() <= NAMES_MAX {
            self.0.insert(name.to_owned(), 1);
        }
    }

    /// Returns false if no call has the name.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        self.0.len() > NAMES_MAX || self.0.contains_key(name)
    }
}

impl ZoneMap {
    /// Adds a call.
    pub(crate) fn add(&mut self, entry: &CallEntry) {
        self.from = Some(self.from.map_or(entry.at, |from| from.min(entry.at)));
        self.to = Some(self.to.map_or(entry.at, |to| to.max(entry.at)));
        self.calls += 1;
        self.begins += u64::from(entry.kind == CallLineKind::Begin);
        self.longest_us = self.longest_us.max(entry.us);
        self.refused += u64::from(!entry.refused.is_empty());
        self.changed += u64::from(!entry.files.is_empty());
        self.tools.add(&entry.tool);
        if let Some(plugin) = &entry.plugin {
            self.plugins.add(plugin);
        }
        if let Some(session) = &entry.session {
            self.sessions.add(session);
        }
        if !entry.outcome.is_empty() {
            self.outcomes.add(&entry.outcome);
        }
    }
}
