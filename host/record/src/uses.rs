//! Uses of capabilities by plugin, as the lines of calls show them.
//!
//! A line has the hosts that a call contacted, the files that it changed, its questions, what it
//! was refused, and the calls that it made of other tools. It has no reads of files, and no use of
//! clocks, random numbers, variables, configuration values and secrets.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use memchr::memmem;

use crate::filter::CallBrief;
use crate::search::CallCollector;
use crate::summary::{SegmentSummary, SummaryKind};
use crate::{CallEntry, UtcTime};

/// Maximum number of names of one kind that are listed for a plugin.
const NAMES_MAX: usize = 256;
/// Maximum number of plugins.
const PLUGINS_MAX: usize = 1024;
/// Maximum number of calls whose inner calls are attributed.
const OUTER_MAX: usize = 20_000;
/// Parts of lines that name a use besides the call itself.
const KEYS: [&[u8]; 6] = [
    b"\"hosts\":[",
    b"\"files\":[",
    b"\"refused\":[",
    b"\"questions\":",
    b"\"inner_calls\":",
    b"\"outer\":\"",
];

/// Uses of one capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapabilityUse {
    /// Number of calls with such a use.
    pub calls: u64,
    /// Start of the newest of them.
    pub last: UtcTime,
}

/// Uses of the capabilities of one plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginUses {
    /// All calls.
    pub calls: Option<CapabilityUse>,
    /// Contacted hosts and ports.
    pub hosts: BTreeMap<(String, u16), CapabilityUse>,
    /// Mounts in which files were changed.
    pub mounts: BTreeMap<String, CapabilityUse>,
    /// Other tools that were called.
    pub tools: BTreeMap<String, CapabilityUse>,
    /// Questions to the caller.
    pub questions: Option<CapabilityUse>,
    /// Refused capabilities.
    pub refused: BTreeMap<String, CapabilityUse>,
    /// True if there are more names than are listed.
    pub is_cut: bool,
}

/// Call that made inner calls: its session and the id that its caller gave to it.
type OuterId = (Option<String>, String);

/// Collects the uses of all plugins.
#[derive(Clone, Default)]
pub(crate) struct UseCollector {
    plugins: BTreeMap<String, PluginUses>,
    /// Plugins of calls that made inner calls.
    outer: HashMap<OuterId, BTreeSet<String>>,
    /// Inner calls by the call that made them.
    inner: HashMap<OuterId, BTreeMap<String, CapabilityUse>>,
}

impl CapabilityUse {
    /// Returns the use by one call.
    #[must_use]
    pub fn once(at: UtcTime) -> Self {
        Self { calls: 1, last: at }
    }

    /// Returns both uses together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let calls = self.calls.saturating_add(other.calls);
        Self { calls, last: self.last.max(other.last) }
    }
}

impl CallCollector for UseCollector {
    fn add(&mut self, entry: CallEntry) {
        let one = CapabilityUse::once(entry.at);
        let session = entry.session;
        if let Some(outer) = entry.outer {
            let id = (session.clone(), outer);
            if self.inner.len() < OUTER_MAX || self.inner.contains_key(&id) {
                add_name(self.inner.entry(id).or_default(), entry.tool, one);
            }
        }
        let Some(plugin) = entry.plugin else { return };
        if entry.inner_calls > 0 && self.outer.len() < OUTER_MAX {
            self.outer.entry((session, entry.call)).or_default().insert(plugin.clone());
        }
        let Some(uses) = self.uses(&plugin) else { return };
        join_option(&mut uses.calls, Some(one));
        if entry.questions > 0 {
            join_option(&mut uses.questions, Some(one));
        }
        for host in entry.hosts {
            uses.is_cut |= !add_name(&mut uses.hosts, (host.host, host.port), one);
        }
        let mounts: BTreeSet<_> = entry.files.into_iter().map(|change| change.mount).collect();
        // A dry run changes nothing, and needs the grant all the same.
        for mount in mounts {
            uses.is_cut |= !add_name(&mut uses.mounts, mount, one);
        }
        for refusal in entry.refused {
            uses.is_cut |= !add_name(&mut uses.refused, refusal.capability, one);
        }
    }

    fn add_brief(&mut self, call: &CallBrief<'_>) -> bool {
        if KEYS.iter().any(|key| memmem::find(call.line, key).is_some()) {
            return false;
        }
        let (Some(plugin), Some(at)) = (call.plugin, call.at) else { return true };
        if let Some(uses) = self.uses(plugin) {
            join_option(&mut uses.calls, Some(CapabilityUse::once(at)));
        }
        true
    }
}

impl SegmentSummary for UseCollector {
    fn kind(&self) -> SummaryKind {
        SummaryKind::Uses
    }

    fn join(&mut self, other: &Self) {
        for (plugin, theirs) in &other.plugins {
            if let Some(uses) = self.uses(plugin) {
                uses.join(theirs);
            }
        }
        for (id, plugins) in &other.outer {
            if self.outer.len() < OUTER_MAX {
                self.outer.entry(id.clone()).or_default().extend(plugins.iter().cloned());
            }
        }
        for (id, tools) in &other.inner {
            if self.inner.len() < OUTER_MAX || self.inner.contains_key(id) {
                join_names(self.inner.entry(id.clone()).or_default(), tools);
            }
        }
    }

    fn names(&self) -> usize {
        let names = |uses: &PluginUses| {
            uses.hosts.len() + uses.mounts.len() + uses.tools.len() + uses.refused.len()
        };
        let plugins: usize = self.plugins.values().map(names).sum();
        plugins + self.plugins.len() + self.outer.len() + self.inner.len()
    }
}

impl UseCollector {
    fn uses(&mut self, plugin: &str) -> Option<&mut PluginUses> {
        if !self.plugins.contains_key(plugin) {
            if self.plugins.len() >= PLUGINS_MAX {
                return None;
            }
            self.plugins.insert(plugin.to_owned(), PluginUses::default());
        }
        self.plugins.get_mut(plugin)
    }

    /// Returns the uses by plugin. Inner calls count for the plugin of the call that made them, if
    /// the ids of calls leave no doubt about it.
    pub(crate) fn plugins(mut self) -> BTreeMap<String, PluginUses> {
        for (id, tools) in &self.inner {
            let Some(plugins) = self.outer.get(id) else { continue };
            if let (Some(plugin), 1) = (plugins.first(), plugins.len())
                && let Some(uses) = self.plugins.get_mut(plugin)
            {
                uses.is_cut |= !join_names(&mut uses.tools, tools);
            }
        }
        self.plugins
    }
}

impl PluginUses {
    fn join(&mut self, other: &Self) {
        join_option(&mut self.calls, other.calls);
        join_option(&mut self.questions, other.questions);
        let is_whole = join_names(&mut self.hosts, &other.hosts)
            & join_names(&mut self.mounts, &other.mounts)
            & join_names(&mut self.tools, &other.tools)
            & join_names(&mut self.refused, &other.refused);
        self.is_cut |= other.is_cut || !is_whole;
    }
}

fn join_option(known: &mut Option<CapabilityUse>, other: Option<CapabilityUse>) {
    *known = match (*known, other) {
        (Some(known), Some(other)) => Some(known.and(other)),
        (known, other) => known.or(other),
    };
}

/// Adds uses of a name. Returns false if there are too many names.
fn add_name<K: Ord>(names: &mut BTreeMap<K, CapabilityUse>, name: K, uses: CapabilityUse) -> bool {
    if let Some(known) = names.get_mut(&name) {
        *known = known.and(uses);
        return true;
    }
    let has_room = names.len() < NAMES_MAX;
    if has_room {
        names.insert(name, uses);
    }
    has_room
}

fn join_names<K: Ord + Clone>(
    names: &mut BTreeMap<K, CapabilityUse>,
    others: &BTreeMap<K, CapabilityUse>,
) -> bool {
    others
        .iter()
        .fold(true, |is_whole, (name, uses)| add_name(names, name.clone(), *uses) & is_whole)
}

#[cfg(test)]
mod tests {
    use cofferdam_tool::record::{HostContact, Refusal};

    use super::*;

    fn call(plugin: &str, at: i64) -> CallEntry {
        let (tool, call) = (format!("{plugin}_tool"), format!("call-{at}"));
        let at = UtcTime::from_micros(at);
        CallEntry { plugin: Some(plugin.to_owned()), tool, call, at, ..CallEntry::default() }
    }

    #[test]
    fn uses_have_their_number_and_the_newest_call() {
        let mut collector = UseCollector::default();
        for at in [5, 9, 7] {
            let mut entry = call("web", at);
            let host = "a.example".to_owned();
            entry.hosts.push(HostContact { host, port: 443, requests: 3 });
            entry.refused.push(Refusal::new("clock:precise"));
            collector.add(entry);
        }
        collector.add(call("web", 20));
        let mut joined = collector.clone();
        joined.join(&collector);
        let uses = joined.plugins().remove("web").unwrap();
        let last = |at| UtcTime::from_micros(at);
        assert_eq!(uses.calls, Some(CapabilityUse { calls: 8, last: last(20) }));
        let host = uses.hosts[&("a.example".to_owned(), 443)];
        assert_eq!(host, CapabilityUse { calls: 6, last: last(9) });
        assert_eq!(uses.refused["clock:precise"].calls, 6);
        assert_eq!((uses.questions, uses.is_cut), (None, false));
    }

    #[test]
    fn inner_calls_count_for_the_plugin_that_made_them_if_there_is_no_doubt() {
        let mut collector = UseCollector::default();
        let outer = |plugin, at, id: &str| CallEntry {
            inner_calls: 1,
            call: id.to_owned(),
            ..call(plugin, at)
        };
        collector.add(outer("planner", 1, "a"));
        // Two plugins whose callers gave the same id.
        collector.add(outer("planner", 2, "b"));
        collector.add(outer("other", 3, "b"));
        for id in ["a", "b", "c"] {
            collector.add(CallEntry { outer: Some(id.to_owned()), ..call("csv", 4) });
        }
        let plugins = collector.plugins();
        assert_eq!(plugins["planner"].tools["csv_tool"].calls, 1);
        assert!(plugins["other"].tools.is_empty());
    }

    #[test]
    fn names_are_limited() {
        let mut collector = UseCollector::default();
        for at in 0..1000 {
            let mut entry = call("web", at);
            entry.refused.push(Refusal::new(format!("http:GET https://{at}.example/")));
            collector.add(entry);
        }
        let uses = collector.plugins().remove("web").unwrap();
        assert_eq!((uses.refused.len(), uses.is_cut), (NAMES_MAX, true));
    }
}
