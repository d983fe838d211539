//! Part of a call record that leaves the worker: what a receipt shows.

use std::time::Duration;

use cofferdam_tool::label::Label;
use cofferdam_tool::record::{FileChange, HostContact, Phases, PluginIdentity, Refusal};
use cofferdam_tool::{CallRecord, PluginName};
use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RecordEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    plugin: Option<PluginEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Label>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dropped: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    refused: Vec<Refusal>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileChange>,
    files_left_out: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<HostContact>,
    http_sent_bytes: u64,
    http_received_bytes: u64,
    attempts: u32,
    wait_us: u64,
    instantiate_us: u64,
    run_us: u64,
    cpu_us: u64,
    memory_peak_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PluginEntry {
    name: PluginName,
    digest: String,
}

impl RecordEntry {
    pub(super) fn new(record: &CallRecord) -> Self {
        let plugin = record.plugin.as_ref().map(|plugin| PluginEntry {
            name: plugin.name.clone(),
            digest: plugin.digest.to_string(),
        });
        Self {
            plugin,
            label: record.label.clone(),
            dropped: record.dropped.clone(),
            refused: record.refused.clone(),
            files: record.files.clone(),
            files_left_out: record.files_left_out,
            hosts: record.hosts.clone(),
            http_sent_bytes: record.http_sent_bytes,
            http_received_bytes: record.http_received_bytes,
            attempts: record.attempts,
            wait_us: micros(record.phases.wait),
            instantiate_us: micros(record.phases.instantiate),
            run_us: micros(record.phases.run),
            cpu_us: micros(record.cpu),
            memory_peak_bytes: record.memory_peak_bytes,
        }
    }

    pub(super) fn apply_to(self, record: &mut CallRecord) {
        record.plugin = self
            .plugin
            .map(|plugin| PluginIdentity { name: plugin.name, digest: plugin.digest.into() });
        record.label = self.label;
        record.dropped = self.dropped;
        record.refused = self.refused;
        record.set_files(self.files);
        record.files_left_out = record.files_left_out.saturating_add(self.files_left_out);
        self.hosts.into_iter().for_each(|host| record.add_host(host));
        record.http_sent_bytes = self.http_sent_bytes;
        record.http_received_bytes = self.http_received_bytes;
        record.attempts = self.attempts.max(1);
        record.phases = Phases {
            wait: Duration::from_micros(self.wait_us),
            instantiate: Duration::from_micros(self.instantiate_us),
            run: Duration::from_micros(self.run_us),
            ..Phases::default()
        };
        record.cpu = Duration::from_micros(self.cpu_us);
        record.memory_peak_bytes = self.memory_peak_bytes;
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
