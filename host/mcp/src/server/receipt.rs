//! What a result says about how it was made, and that nothing else went on.

use cofferdam_tool::CallRecord;
use serde_json::{Map, Value, json};

/// The key of the receipt in `_meta`.
pub(super) const KEY: &str = "cofferdam/receipt";
/// Most files and hosts that a receipt names.
const NAMES_MAX: usize = 20;
/// Members of the receipt of a call that has changed nothing and asked nobody.
const MEMBERS_USUAL: usize = 7;

/// The receipt of one call. It names what the call touched by the names that people gave to it, never by a place on the host;
/// the full record stays with the host.
pub(super) fn receipt(record: CallRecord, policy_digest: Option<&str>) -> Value {
    let mut receipt = Map::with_capacity(MEMBERS_USUAL);
    receipt.insert("callId".to_owned(), record.call_id.into());
    if let Some(plugin) = record.plugin {
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
    let left_out = u64::try_from(left_out).unwrap_or(u64::MAX).saturating_add(record.files_left_out);
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

fn micros(duration: std::time::Duration) -> Value {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).into()
}
