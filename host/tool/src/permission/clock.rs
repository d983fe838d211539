//! How exactly a plugin may tell the time.

use serde::{Deserialize, Serialize};

/// How precise the clocks of a guest are. The order is from least to most.
///
/// A fine clock is what timing attacks on other code of the machine are made with, and few tools
/// need one.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum ClockPrecision {
    /// The clocks stand still at the start of the call.
    Frozen,
    /// The clocks advance in steps of a millisecond.
    #[default]
    Coarse,
    /// The host's own clocks.
    Precise,
}

impl ClockPrecision {
    /// Every precision, from least to most.
    pub const ALL: [Self; 3] = [Self::Frozen, Self::Coarse, Self::Precise];

    /// The word for it in a configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Frozen => "frozen",
            Self::Coarse => "coarse",
            Self::Precise => "precise",
        }
    }
}
