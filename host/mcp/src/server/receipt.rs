//! What a result says about how it was made, and that nothing else went on.

use cofferdam_tool::CallRecord;
use serde_json::{Map, Value, json};

/// The key of the receipt in `_meta`.
pub(super) const KEY: &str = "cofferdam/receipt";
/// The key in `_meta` by which a client asks for a dry run (`true`), and under which the result says what would change.
pub(super) const DRY_RUN: &str = "cofferdam/dryRun";
/// Bytes of diffs that the result of a dry run holds.
const DIFF_BYTES_MAX: usize = 256 * 1024;
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
