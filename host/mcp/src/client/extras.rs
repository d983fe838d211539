//! Arguments that are forwarded although the server does not declare them (`MCP-5`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Key that applies to every tool.
const EVERY_TOOL: &str = "*";

/// Names of extra arguments, for all tools and for single tools by their remote names. They are
/// fixed when the connection is configured; no call can change them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ExtrasForm")]
pub struct Extras {
    /// Extra arguments of every tool.
    pub all_tools: Vec<String>,
    /// Extra arguments of single tools, by tool name.
    pub per_tool: BTreeMap<String, Vec<String>>,
}

/// Accepted forms in a configuration.
#[derive(Deserialize)]
#[serde(untagged)]
enum ExtrasForm {
    All(ArgumentNames),
    PerTool(BTreeMap<String, ArgumentNames>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ArgumentNames {
    One(String),
    Several(Vec<String>),
}

impl ArgumentNames {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(name) => vec![name],
            Self::Several(names) => names,
        }
    }
}

impl From<ExtrasForm> for Extras {
    fn from(written: ExtrasForm) -> Self {
        match written {
            ExtrasForm::All(names) => {
                Self { all_tools: names.into_vec(), per_tool: BTreeMap::new() }
            }
            ExtrasForm::PerTool(tools) => {
                let mut per_tool: BTreeMap<_, _> =
                    tools.into_iter().map(|(tool, names)| (tool, names.into_vec())).collect();
                let all_tools = per_tool.remove(EVERY_TOOL).unwrap_or_default();
                Self { all_tools, per_tool }
            }
        }
    }
}

impl Extras {
    /// Returns true if `argument` is an extra argument of `tool`.
    #[must_use]
    pub fn has(&self, tool: &str, argument: &str) -> bool {
        let own = self.per_tool.get(tool).into_iter().flatten();
        self.all_tools.iter().chain(own).any(|name| name == argument)
    }
}
