//! Functions that one request advertises.

use std::sync::Arc;

use cofferdam_tool::ToolDefinition;

use super::cycle::Cycle;
use crate::choice::{
    self, AUTO_INVOKED_NESTING_MAX, ChoiceConfiguration, ChoiceContext, FunctionRegistry,
    RegisteredFunction,
};
use crate::live::RunTools;
use crate::{RunError, ToolMode};

/// Functions that one request advertises, and the handling of calls in its reply.
pub(super) struct FunctionPlan {
    pub(super) advertised: Arc<[Arc<ToolDefinition>]>,
    /// Number of functions at the end of `advertised` that the model has loaded.
    pub(super) loaded: usize,
    pub(super) tool_choice: Option<ToolMode>,
    /// True if any call may need approval by the user.
    pub(super) may_ask: bool,
    /// True if calls are executed; otherwise they are returned to the caller (`CHOICE-15`).
    pub(super) runs_calls: bool,
    /// Result of the choice behavior, if there is one: no other function may then be called
    /// (`CHOICE-14`).
    chosen: Option<ChoiceConfiguration>,
}

impl FunctionPlan {
    /// Returns whether the model may call a tool of this name, if it exists.
    pub(super) fn allows(&self, tool: &str) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.is_advertised(tool))
    }

    /// Creates the plan for a batch that the user has decided about: all of its calls may run.
    pub(super) fn of_resumed() -> Self {
        Self {
            advertised: Arc::from([]),
            loaded: 0,
            tool_choice: None,
            may_ask: false,
            runs_calls: true,
            chosen: None,
        }
    }
}

impl Cycle<'_> {
    /// Creates the plan for the next request.
    pub(super) fn plan(&mut self, tools: &RunTools) -> Result<FunctionPlan, RunError> {
        let chosen = self.chosen(tools)?;
        if let Some(chosen) = &chosen {
            let base = self.unchosen_options;
            chosen.options.apply_to(base, &mut self.settings, &mut self.given.options);
        }
        let mut loaded = 0;
        let (advertised, mut tool_choice): (Arc<[_]>, _) = match &chosen {
            None => {
                let mut advertised = Arc::clone(tools.definitions());
                if let Some(search) = &self.search {
                    (advertised, loaded) = search.advertised(&advertised, &mut self.latest_tools);
                }
                (advertised, self.tool_choice.clone())
            }
            Some(chosen) => {
                let functions = chosen.functions.iter().flatten();
                let advertised: Arc<[_]> =
                    functions.map(|function| Arc::clone(function.definition())).collect();
                // A model without functions cannot be required to call one (`CHOICE-6`).
                let is_void =
                    advertised.is_empty() && chosen.choice == choice::ChoiceKind::Required;
                (advertised, (!is_void).then(|| chosen.choice.into()))
            }
        };
        if self.is_withdrawn {
            tool_choice = Some(ToolMode::None);
        }
        let is_too_deep = choice::depth() >= AUTO_INVOKED_NESTING_MAX;
        let runs_calls = !is_too_deep && chosen.as_ref().is_none_or(|chosen| chosen.auto_invoke);
        let runs_calls = runs_calls && self.runs_calls(tools);
        Ok(FunctionPlan {
            advertised,
            loaded,
            tool_choice,
            may_ask: self.may_ask(tools),
            runs_calls,
            chosen,
        })
    }

    fn chosen(&self, tools: &RunTools) -> Result<Option<ChoiceConfiguration>, RunError> {
        let Some(behavior) = self.given.choice.as_ref().or(self.parts.choice.as_ref()) else {
            return Ok(None);
        };
        let mut registry = FunctionRegistry::of(tools.toolset());
        for definition in tools.declared().iter() {
            registry.add(RegisteredFunction::new(None, Arc::clone(definition)));
        }
        let context = ChoiceContext {
            registry: Some(&registry),
            history: &self.messages,
            request_index: self.requests,
            depth: choice::depth(),
        };
        let chosen = behavior.configure(&context).map_err(|error| RunError::Other(error.into()))?;
        Ok(Some(chosen))
    }

    fn may_ask(&self, tools: &RunTools) -> bool {
        if self.guard.can_block() {
            return true;
        }
        let toolsets = [tools.toolset(), &self.settings.additional_tools];
        let approvals = &self.parts.approvals;
        toolsets
            .into_iter()
            .any(|set| set.definitions().any(|tool| approvals.may_be_needed(tool, set)))
    }

    /// Returns whether calls are executed at all (`LOOP-3`).
    fn runs_calls(&self, tools: &RunTools) -> bool {
        let settings = &self.settings;
        let has_tools = !tools.definitions().is_empty()
            || settings.additional_tools.definitions().len() > 0
            || !settings.caller_tools.is_empty();
        settings.enabled && has_tools
    }
}
