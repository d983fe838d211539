//! Arguments that are forwarded although the server does not declare them (`MCP-5`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Stands for every tool.
const EVERY_TOOL: &str = "*";

/// The names of such arguments, for all tools and for single ones by their remote names. They are
/// fixed when the connection is configured; no call can change them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Extras {
    /// For every tool.
    pub all_tools: Vec<String>,
    /// For the tool of that name.
    pub per_tool: BTreeMap<String, Vec<String>>,
}

/// The forms that a person may write.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    All(Names),
    PerTool(BTreeMap<String, Names>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Several(Vec<String>),
}

impl Names {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(name) => vec![name],
            Self::Several(names) => names,
        }
    }
}

impl From<Written> for Extras {
    fn from(written: Written) -> Self {
        match written {
            Written::All(names) => Self { all_tools: names.into_vec(), per_tool: BTreeMap::new() },
            Written::PerTool(tools) => {
                let mut per_tool: BTreeMap<_, _> =
                    tools.into_iter().map(|(tool, names)| (tool, names.into_vec())).collect();
                let all_tools = per_tool.remove(EVERY_TOOL).unwrap_or_default();
                Self { all_tools, per_tool }
            }
        }
    }
}

impl Extras {
    /// Whether `argument` is an extra of `tool`.
    #[must_use]
    pub fn has(&self, tool: &str, argument: &str) -> bool {
        let own = self.per_tool.get(tool).into_iter().flatten();
        self.all_tools.iter().chain(own).any(|name| name == argument)
    }
}
