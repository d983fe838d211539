//! Formats quantities and refusals for the operator.

use cofferdam_tool::RefusedCall;

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

/// Returns a count with the singular or plural of a noun.
#[must_use]
pub fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") }
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
