//! Which tools of a server need a person's approval (`MCP-13`).

use serde::{Deserialize, Serialize};

/// One mode for all tools, or lists of names. What is in no list needs none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", untagged)]
pub enum ApprovalMode {
    /// For every tool.
    All(Always),
    /// By name.
    Lists {
        /// These need it, whatever the other list says.
        #[serde(default)]
        always_require_approval: Vec<String>,
        /// These do not.
        #[serde(default)]
        never_require_approval: Vec<String>,
    },
}

/// A mode for every tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Always {
    /// Each call needs approval.
    #[serde(alias = "always")]
    AlwaysRequire,
    /// None does.
    #[serde(alias = "never")]
    NeverRequire,
}

impl Default for ApprovalMode {
    fn default() -> Self {
        Self::All(Always::NeverRequire)
    }
}

impl ApprovalMode {
    /// Whether a tool needs approval that is known under these names, local and remote.
    #[must_use]
    pub fn requires(&self, names: &[&str]) -> bool {
        match self {
            Self::All(mode) => *mode == Always::AlwaysRequire,
            Self::Lists { always_require_approval, .. } => {
                always_require_approval.iter().any(|listed| names.contains(&listed.as_str()))
            }
        }
    }
}
