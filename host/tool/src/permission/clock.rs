//! Precision of a plugin's clocks.

use serde::{Deserialize, Serialize};

/// Precision of a guest's clocks, ordered from lowest to highest.
///
/// Timing attacks on other code of the machine need a precise clock, and few tools do.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ClockPrecision {
    /// The clocks are frozen at the start of the call.
    Frozen,
    /// The clocks advance in steps of one millisecond.
    #[default]
    Coarse,
    /// The host's own clocks.
    Precise,
}

impl ClockPrecision {
    /// All precisions, from lowest to highest.
    pub const ALL: [Self; 3] = [Self::Frozen, Self::Coarse, Self::Precise];

    /// Returns the name used in configurations.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Frozen => "frozen",
            Self::Coarse => "coarse",
            Self::Precise => "precise",
        }
    }
}
