//! Names of functions in lists (`CHOICE-3`).

use std::fmt;

/// A name of the form `plugin.function` or `function`. Displays as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionName {
    written: String,
    dot: Option<usize>,
}

impl FunctionName {
    /// Creates a name: split at the first dot, with space around both parts ignored. A name without
    /// a dot has no plugin part.
    pub fn new(written: impl Into<String>) -> Self {
        let written = written.into();
        let dot = written.find('.');
        Self { written, dot }
    }

    /// Returns the part before the first dot.
    #[must_use]
    pub fn plugin(&self) -> Option<&str> {
        self.dot.and_then(|dot| self.written.get(..dot)).map(str::trim)
    }

    /// Returns the part after the first dot, or the whole name if there is no dot.
    #[must_use]
    pub fn function(&self) -> &str {
        let start = self.dot.map_or(0, |dot| dot + 1);
        self.written.get(start..).unwrap_or_default().trim()
    }
}

impl From<&str> for FunctionName {
    fn from(written: &str) -> Self {
        Self::new(written)
    }
}

impl From<String> for FunctionName {
    fn from(written: String) -> Self {
        Self::new(written)
    }
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}
