//! Limits the length of a result.

use cofferdam_sdk::ToolFailure;
use serde::Serialize;

/// Maximum bytes of a result as JSON.
const RESULT_BYTES_MAX: usize = 256 << 10;

/// Bytes that a result may still take.
pub(crate) struct Room {
    left: usize,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self { left: RESULT_BYTES_MAX }
    }

    /// Takes the bytes of a part of the result. Returns false if it does not fit.
    pub(crate) fn take(&mut self, part: &impl Serialize) -> bool {
        let text = serde_json::to_string(part).unwrap_or_default();
        // One more for the comma that follows.
        let left = self.left.checked_sub(text.len() + 1);
        self.left = left.unwrap_or_default();
        left.is_some()
    }
}

/// Returns a note for the model that a result ends early because of its length.
pub(crate) fn note(left_out: &str, advice: &str) -> String {
    format!("the {left_out} are left out: a result has at most {RESULT_BYTES_MAX} bytes; {advice}")
}

/// Returns the failure for a result that cannot have even its first row or group.
pub(crate) fn too_long(part: &str, advice: &str) -> ToolFailure {
    ToolFailure::new(format!(
        "{part} of the result is too long, expected a result of at most {RESULT_BYTES_MAX} bytes"
    ))
    .suggestion(advice)
    .permanent()
}

#[cfg(test)]
mod tests {
    use super::{RESULT_BYTES_MAX, Room};

    #[test]
    fn takes_until_it_is_full() {
        let mut room = Room::new();
        let part = "a".repeat(RESULT_BYTES_MAX / 2);
        assert!(room.take(&part));
        assert!(!room.take(&part));
        assert!(!room.take(&"a"));
    }
}
