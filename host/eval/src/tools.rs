//! Checks the tools that cases name, before a model is paid for runs that cannot show anything.

use cofferdam_agent::LOAD_TOOL;
use cofferdam_tool::search::SEARCH_TOOL;
use cofferdam_tool::{ToolName, Toolset};

use crate::case::EvalCase;
use crate::run::EvalError;
use crate::text::shortened;

/// Tools that an agent may have beside those of its toolset: tool search, memory files, todo lists
/// and plan modes.
const BESIDE: [&str; 15] = [
    SEARCH_TOOL,
    LOAD_TOOL,
    "file_memory_ls",
    "file_memory_read",
    "file_memory_grep",
    "file_memory_write",
    "file_memory_replace",
    "file_memory_delete",
    "todos_add",
    "todos_complete",
    "todos_remove",
    "todos_get_remaining",
    "todos_get_all",
    "mode_set",
    "mode_get",
];

/// Checks that the tools in `calls` and `forbidden` exist: they are in `tools`, the toolset of the
/// evaluated agent, or are tools that an agent may add to it. A case that forbids a misspelled tool
/// would always pass, and one that expects it would fail only after its runs.
///
/// # Errors
/// [`EvalError::UnknownTool`] for the first name that no tool has.
pub fn check_tools(cases: &[EvalCase], tools: &Toolset) -> Result<(), EvalError> {
    let is_known = |tool: &str| tools.position(tool).is_some() || BESIDE.contains(&tool);
    for case in cases {
        let calls = case.calls.iter().map(|call| ("calls", &call.tool));
        let forbidden = case.forbidden.iter().map(|tool| ("forbidden", tool));
        if let Some((field, tool)) = calls.chain(forbidden).find(|(_, tool)| !is_known(tool)) {
            let (case, tool, advice) = (case.name.clone(), tool.clone(), advice(tool, tools));
            return Err(EvalError::UnknownTool { case, field, tool, advice });
        }
    }
    Ok(())
}

/// Returns the tool that an unknown name was probably meant to be, or else the names of all tools.
fn advice(unknown: &str, tools: &Toolset) -> String {
    let names = || tools.definitions().map(|definition| definition.name.as_str());
    if let Some(nearest) = ToolName::nearest(unknown, names().chain(BESIDE)) {
        return format!("did you mean `{nearest}`?");
    }
    match names().len() {
        0 => "no tools are selected; select some, such as with --plugin".to_owned(),
        _ => format!("the tools are {}", shortened(&names().collect::<Vec<_>>().join(", "))),
    }
}

#[cfg(test)]
mod tests;
