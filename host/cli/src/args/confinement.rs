//! `--confinement`.

use clap::ValueEnum;
use cofferdam_engine::Confinement;

/// Confinement of the process that compiles plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConfinementLevel {
    /// Nothing but computing and answering
    Full,
    /// No other programs and no generated code
    Partial,
    /// Only limits on time and memory
    None,
}

impl ConfinementLevel {
    /// Returns the value of the flag.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Partial => "partial",
            Self::None => "none",
        }
    }
}

impl From<ConfinementLevel> for Confinement {
    fn from(level: ConfinementLevel) -> Self {
        match level {
            ConfinementLevel::Full => Self::Full,
            ConfinementLevel::Partial => Self::Partial,
            ConfinementLevel::None => Self::None,
        }
    }
}
