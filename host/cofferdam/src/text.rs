//! Formats quantities, digests and refusals for the operator.

use std::borrow::Cow;

use cofferdam_tool::{ErrorType, Limits, RefusedCall};
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

/// Returns a number of bytes with a unit.
#[must_use]
pub fn bytes(count: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    for (unit, size) in UNITS {
        if count >= size {
            let tenths = count.saturating_mul(10) / size;
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
    }
    format!("{count} B")
}

/// Returns the SHA-256 digest of some bytes: `sha256:` and hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(bytes)))
}

/// Returns the beginning of a text, with an ellipsis if it has more than `chars_max` characters.
#[must_use]
pub fn beginning(text: &str, chars_max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(chars_max) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// Returns a count with the singular or plural of a noun.
#[must_use]
pub fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
}

/// Returns the limit that a call has exceeded and the flag that raises it, or `None` if the error
/// is not about a limit with a value.
#[must_use]
pub fn limit(exceeded: ErrorType, limits: &Limits) -> Option<String> {
    let times = |millis: u64| format!("{}.{} s", millis / 1000, millis % 1000 / 100);
    Some(match exceeded {
        ErrorType::Timeout => {
            let limit = limits.wall_ms_max;
            let seconds = limit.saturating_mul(2).div_ceil(1000);
            format!("the limit is {}; raise it with --timeout {seconds}s", times(limit))
        }
        ErrorType::MemoryLimit => {
            let limit = limits.memory_bytes_max;
            let mebibytes = limit.saturating_mul(2).div_ceil(1 << 20);
            format!("the limit is {}; raise it with --memory {mebibytes}", bytes(limit))
        }
        ErrorType::CpuLimit if limits.fuel_max.is_none() => {
            let limit = limits.cpu_ms_max;
            let more = limit.saturating_mul(2);
            format!(
                "the limit is {} of CPU time; raise it with --limit cpu-ms-max={more}",
                times(limit)
            )
        }
        ErrorType::OutputLimit => {
            // A result is copied from the guest before its length is known.
            let copied = (limits.hostcall_bytes_max, "hostcall-bytes-max");
            let (limit, key) = copied.min((limits.output_bytes_max, "output-bytes-max"));
            let more = limit.saturating_mul(2);
            format!("the limit is {}; raise it with --limit {key}={more}", bytes(limit))
        }
        ErrorType::HandleLimit => {
            let limit = limits.handles_max;
            let more = limit.saturating_mul(2);
            format!("the limit is {limit}; raise it with --limit handles-max={more}")
        }
        _ => return None,
    })
}

/// Returns the message of a refused call, with a suggested tool name.
#[must_use]
pub fn refusal(refused: &RefusedCall) -> String {
    match refused {
        RefusedCall::UnknownTool { nearest: Some(nearest), .. } => {
            format!("{refused}\n  did you mean `{nearest}`?")
        }
        RefusedCall::UnknownTool { .. } => {
            format!("{refused}\n  `cofferdam list` shows the tools that there are")
        }
        _ => refused.to_string(),
    }
}
