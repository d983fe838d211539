//! Checks the tools that cases name, before a model is paid for runs that cannot show anything.

use std::collections::HashSet;

use cofferdam_agent::Agent;
use cofferdam_tool::{ToolName, Toolset};

use crate::case::EvalCase;
use crate::run::EvalError;
use crate::text::shortened;

/// Checks that the tools in `calls` and `forbidden` exist. An expected call needs a tool of the
/// evaluated agent: the case would fail only after its runs. A tool that may not be called can also
/// be one of `others`, such as those that the agent does not select: models call tools that they do
/// not have, and the same cases evaluate several agents. A case that forbids a misspelled tool
/// would always pass.
///
/// # Errors
/// [`EvalError::UnknownTool`] for the first name that no tool has.
pub fn check_tools(cases: &[EvalCase], agent: &Agent, others: &Toolset) -> Result<(), EvalError> {
    let definitions = agent.definitions();
    let own: Vec<_> = definitions.iter().map(|tool| tool.name.as_str()).collect();
    let others = others.unrestricted().definitions().map(|tool| tool.name.as_str());
    let names = Names { others: others.collect(), own };
    for case in cases {
        let calls = case.calls.iter().map(|call| ("calls", &call.tool, call.min() > 0));
        let forbidden = case.forbidden.iter().map(|tool| ("forbidden", tool, false));
        if let Some((field, tool, _)) =
            calls.chain(forbidden).find(|(_, tool, is_needed)| !names.allow(tool, *is_needed))
        {
            let (case, tool, advice) = (case.name.clone(), tool.clone(), names.advice(tool));
            return Err(EvalError::UnknownTool { case, field, tool, advice });
        }
    }
    Ok(())
}

/// Names that cases may use.
struct Names<'a> {
    /// Tools of the agent, in their order.
    own: Vec<&'a str>,
    /// Tools that the agent may lack.
    others: HashSet<&'a str>,
}

impl Names<'_> {
    /// Returns whether a case may name the tool. Tools that have to be called are the agent's.
    fn allow(&self, tool: &str, is_needed: bool) -> bool {
        self.own.contains(&tool) || (!is_needed && self.others.contains(tool))
    }

    /// Returns the tool that a refused name was probably meant to be, or else the names of all
    /// tools.
    fn advice(&self, refused: &str) -> String {
        if self.others.contains(refused) {
            return "the host has it, so add it to the `tools` of the agent".to_owned();
        }
        if let Some(nearest) = ToolName::nearest(refused, self.own.iter().copied()) {
            return format!("did you mean `{nearest}`?");
        }
        match self.own.is_empty() {
            true => "no tools are selected; select some, such as with --plugin".to_owned(),
            false => format!("the tools are {}", shortened(&self.own.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests;
