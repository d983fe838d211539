//! Receipts and dry-run reports: facts about a call in the `_meta` of its result.

use cofferdam_tool::CallRecord;
use serde_json::{Map, Value, json};

/// Key of the receipt in `_meta`.
pub(super) const KEY: &str = "cofferdam/receipt";
/// Key in `_meta` by which a client requests a dry run (`true`), and under which the result reports
/// what would change.
pub(super) const DRY_RUN: &str = "cofferdam/dryRun";
/// Maximum total size of the diffs in the result of a dry run, in bytes.
const DIFF_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of files, and of hosts, that a receipt names.
const NAMES_MAX: usize = 20;
/// Number of hexadecimal digits of a digest in a short receipt: enough to find the whole digest
/// among those that the operator has.
const SHORT_DIGEST_DIGITS: usize = 12;

/// Facts about a call that its result carries in `_meta`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Receipts {
    /// No receipt.
    None,
    /// Call id, shortened digests of the plugin and of its grants, and duration: at most 160 bytes.
    #[default]
    Short,
    /// Also complete digests, CPU time, memory, the files that the call changed and the hosts that
    /// it contacted.
    Full,
}

impl Receipts {
    /// Returns the receipt of a call. It contains the names that the operator gave to stores, never
    /// a path of the host.
    pub(super) fn of(self, record: &CallRecord, policy_digest: Option<&str>) -> Option<Value> {
        match self {
            Self::None => None,
            Self::Short => Some(short(record, policy_digest)),
            Self::Full => Some(full(record, policy_digest)),
        }
    }
}

fn short(record: &CallRecord, policy_digest: Option<&str>) -> Value {
    let mut receipt = Map::with_capacity(4);
    receipt.insert("callId".to_owned(), record.call_id.as_str().into());
    if let Some(plugin) = &record.plugin {
        receipt.insert("plugin".to_owned(), shortened(&plugin.digest).into());
    }
    if let Some(digest) = policy_digest {
        receipt.insert("policy".to_owned(), shortened(digest).into());
    }
    receipt.insert("wallUs".to_owned(), micros(record.phases.total()));
    Value::Object(receipt)
}

/// Returns the algorithm and the first digits of a digest.
fn shortened(digest: &str) -> &str {
    let digits = digest.find(':').map_or(0, |colon| colon + 1);
    digest.get(..digits + SHORT_DIGEST_DIGITS).unwrap_or(digest)
}

fn full(record: &CallRecord, policy_digest: Option<&str>) -> Value {
    let mut receipt = Map::new();
    receipt.insert("callId".to_owned(), record.call_id.as_str().into());
    if let Some(plugin) = &record.plugin {
        receipt.insert("plugin".to_owned(), plugin.name.as_str().into());
        receipt.insert("pluginDigest".to_owned(), plugin.digest.as_ref().into());
    }
    if let Some(digest) = policy_digest {
        receipt.insert("policyDigest".to_owned(), digest.into());
    }
    receipt.insert("wallUs".to_owned(), micros(record.phases.total()));
    receipt.insert("cpuUs".to_owned(), micros(record.cpu));
    receipt.insert("memoryPeakBytes".to_owned(), record.memory_peak_bytes.into());
    let files: Vec<_> = record
        .files
        .iter()
        .take(NAMES_MAX)
        .map(|change| json!({"file": format!("{}/{}", change.mount, change.path), "what": change.what}))
        .collect();
    if !files.is_empty() {
        receipt.insert("filesChanged".to_owned(), files.into());
    }
    let left_out = record.files.len().saturating_sub(NAMES_MAX);
    let left_out =
        u64::try_from(left_out).unwrap_or(u64::MAX).saturating_add(record.files_left_out);
    if left_out > 0 {
        receipt.insert("filesChangedLeftOut".to_owned(), left_out.into());
    }
    let hosts: Vec<_> = record
        .hosts
        .iter()
        .take(NAMES_MAX)
        .map(|contact| format!("{}:{}", contact.host, contact.port))
        .collect();
    if !hosts.is_empty() {
        receipt.insert("hosts".to_owned(), hosts.into());
    }
    Value::Object(receipt)
}

/// Returns the changes that a dry run would have made.
pub(super) fn dry_run(record: &CallRecord) -> Value {
    let mut bytes_left = DIFF_BYTES_MAX;
    let mut diffs_left_out = 0_u64;
    let changes: Vec<_> = record
        .files
        .iter()
        .map(|change| {
            let diff = change.diff.as_deref().filter(|diff| {
                let fits = diff.len() <= bytes_left;
                bytes_left = if fits { bytes_left.saturating_sub(diff.len()) } else { bytes_left };
                diffs_left_out = diffs_left_out.saturating_add(u64::from(!fits));
                fits
            });
            let file = format!("{}/{}", change.mount, change.path);
            json!({"file": file, "what": change.what, "bytes": change.bytes, "diff": diff})
        })
        .collect();
    json!({"changes": changes, "changesLeftOut": record.files_left_out, "diffsLeftOut": diffs_left_out})
}

fn micros(duration: std::time::Duration) -> Value {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cofferdam_tool::PluginName;
    use cofferdam_tool::record::PluginIdentity;

    use super::*;

    fn record() -> CallRecord {
        let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
        let name = PluginName::new("text").unwrap();
        let mut record = CallRecord::default();
        record.call_id = format!("mcp-{}", u64::MAX);
        record.plugin = Some(PluginIdentity { name, digest: digest.as_str().into() });
        record.phases.run = Duration::from_secs(24 * 60 * 60);
        record
    }

    #[test]
    fn a_short_receipt_has_at_most_160_bytes() {
        let digest = format!("sha256:{}", "fedcba9876543210".repeat(4));
        let receipt = Receipts::Short.of(&record(), Some(&digest)).unwrap();
        assert_eq!(
            receipt,
            json!({
                "callId": "mcp-18446744073709551615",
                "plugin": "sha256:0123456789ab",
                "policy": "sha256:fedcba987654",
                "wallUs": 86_400_000_000_u64,
            })
        );
        let bytes = json!({ KEY: receipt }).to_string().len();
        assert!(bytes <= 160, "{bytes}");
    }

    #[test]
    fn a_full_receipt_has_whole_digests() {
        let receipt = Receipts::Full.of(&record(), None).unwrap();
        assert_eq!(receipt["pluginDigest"].as_str().unwrap().len(), "sha256:".len() + 64);
        assert_eq!(receipt["plugin"], "text");
        assert_eq!(Receipts::None.of(&record(), None), None);
    }
}
