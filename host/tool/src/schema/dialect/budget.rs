//! Limits on the size of a converted schema.

use super::writer::Stop;

/// Maximum number of schemas in the output; as many as a declaration may have with every reference
/// followed (`ARG-42`).
const NODES_MAX: usize = 10_000;
/// Maximum bytes of names and values in the output: four times the longest declaration. Without it,
/// a long list of members could be copied ten thousand times.
const BYTES_MAX: usize = 262_144;
/// Maximum nesting of schemas, which bounds the stack here and in every reader of the output.
const LEVELS_MAX: usize = 64;

/// Counters of a conversion.
#[derive(Debug, Default)]
pub(super) struct Budget {
    nodes: usize,
    bytes: usize,
    levels: usize,
}

impl Budget {
    /// Starts one schema. If it returns `Ok`, the caller must call [`Budget::leave`].
    pub(super) fn enter(&mut self) -> Result<(), Stop> {
        self.nodes += 1;
        self.levels += 1;
        if self.nodes > NODES_MAX || self.levels > LEVELS_MAX {
            Err(Stop::TooLarge)
        } else {
            Ok(())
        }
    }

    pub(super) fn leave(&mut self) {
        self.levels = self.levels.saturating_sub(1);
    }

    /// Charges the bytes of a name or a value.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), Stop> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > BYTES_MAX { Err(Stop::TooLarge) } else { Ok(()) }
    }
}
