//! Approval of tool calls by the user (`MCP-13`).

use serde::{Deserialize, Serialize};

/// Approval mode for all tools, or lists of tool names. Tools that are in no list need no approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", untagged)]
pub enum ApprovalMode {
    /// Same mode for every tool.
    All(Always),
    /// Lists of names.
    Lists {
        /// Tools that need approval, even if the other list also names them.
        #[serde(default)]
        always_require_approval: Vec<String>,
        /// Tools that need no approval.
        #[serde(default)]
        never_require_approval: Vec<String>,
    },
}

/// Approval mode for every tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Always {
    /// Each call needs approval.
    #[serde(alias = "always")]
    AlwaysRequire,
    /// No call needs approval.
    #[serde(alias = "never")]
    NeverRequire,
}

impl Default for ApprovalMode {
    fn default() -> Self {
        Self::All(Always::NeverRequire)
    }
}

impl ApprovalMode {
    /// Returns true if a tool that is known under these names, local and remote, needs approval.
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
