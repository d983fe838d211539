//! Languages of programs.

use std::fmt;
use std::str::FromStr;

/// Language of programs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// JavaScript, with TypeScript's types accepted and ignored.
    #[default]
    JavaScript,
    /// Python.
    Python,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 2] = [Self::JavaScript, Self::Python];

    /// Returns the name in configurations and file names.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::JavaScript => "javascript",
            Self::Python => "python",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
        })
    }
}

/// Error returned for the name of an unknown language.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `javascript` or `python`, found `{0}`")]
pub struct UnknownLanguage(String);

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(name: &str) -> Result<Self, UnknownLanguage> {
        let known = Self::ALL.into_iter().find(|language| language.name() == name);
        known.ok_or_else(|| UnknownLanguage(name.to_owned()))
    }
}
