//! Handoff orchestration: agents that pass the conversation with the user to each other (`WF-14`).

use std::collections::BTreeMap;
use std::sync::Arc;

use cofferdam_agent::AgentRun;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::label::StatedLabels;
use cofferdam_tool::{Annotations, Functions, ToolSource};
use serde_json::json;

use super::super::agent::{AgentExecutor, ForwardMode};
use super::super::builder::WorkflowBuilder;
use super::{InvalidOrchestration, Orchestration, OrchestrationResult, Pattern, participant};

/// Prefix of the names of the tools.
const TOOL: &str = "handoff_to_";
/// Schema of the tools, which have no parameters.
const SCHEMA: &str = r#"{"type":"object","properties":{},"additionalProperties":false}"#;

/// Handoff orchestration: each agent has tools `handoff_to_<id>`. An answer without a handoff is
/// output, and the run pauses for the next message of the user (`WF-14`). An empty message ends the
/// conversation.
pub type Handoff = Orchestration<Routes>;

/// Pattern of [`Handoff`].
#[derive(Default)]
pub struct Routes {
    /// Targets of each agent. If the map is empty, every agent can hand off to every other one.
    routes: BTreeMap<String, Vec<String>>,
    /// Description of each agent, for the others.
    descriptions: BTreeMap<String, String>,
}

impl Handoff {
    /// Creates the orchestration of these agents; a run begins with the first one.
    pub fn new(agents: impl IntoIterator<Item: Into<Arc<dyn AgentRun>>>) -> Self {
        Self::of(agents, Routes::default())
    }

    /// Lets `from` hand off to these agents. As soon as one agent has a route, agents without a
    /// route cannot hand off.
    pub fn route<I: Into<String>>(
        mut self,
        from: impl Into<String>,
        to: impl IntoIterator<Item = I>,
    ) -> Self {
        self.pattern.routes.entry(from.into()).or_default().extend(to.into_iter().map(Into::into));
        self
    }

    /// Describes a participant to the others.
    pub fn describe(mut self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.pattern.descriptions.insert(name.into(), description.into());
        self
    }
}

impl Pattern for Routes {
    const NAME: &'static str = "handoff";
    const NAMES_SPEAKERS: bool = true;

    fn graph(
        &self,
        builder: WorkflowBuilder,
        names: &[String],
    ) -> OrchestrationResult<WorkflowBuilder> {
        let routed = self.routes.iter().flat_map(|(from, to)| to.iter().chain([from]));
        if let Some(name) =
            routed.chain(self.descriptions.keys()).find(|name| !names.contains(name))
        {
            return Err(InvalidOrchestration::Unknown {
                name: name.clone(),
                known: names.to_vec(),
            });
        }
        let mut builder = builder.start(names.first().cloned().unwrap_or_default());
        for name in names {
            builder = self
                .targets(name, names)
                .fold(builder, |builder, target| builder.edge(name, target));
        }
        Ok(builder)
    }

    fn executor(
        &self,
        agent: Arc<dyn AgentRun>,
        names: &[String],
    ) -> OrchestrationResult<AgentExecutor> {
        let name = agent.name().to_owned();
        let mut tools = Functions::new("handoff");
        let mut handoffs = BTreeMap::new();
        for target in self.targets(&name, names) {
            tools = tool(tools, target, self.descriptions.get(target))?;
            handoffs.insert(format!("{TOOL}{target}"), target.clone());
        }
        let agent = match handoffs.is_empty() {
            true => agent,
            false => with_handoffs(&*agent, Arc::new(tools))?,
        };
        Ok(participant(agent, ForwardMode::Conversation, Self::NAMES_SPEAKERS)
            .with_handoffs(handoffs))
    }
}

impl Routes {
    fn targets<'n>(
        &'n self,
        name: &'n str,
        names: &'n [String],
    ) -> impl Iterator<Item = &'n String> {
        let to = self.routes.get(name);
        let may = move |other: &str| {
            self.routes.is_empty() || to.is_some_and(|to| to.iter().any(|to| to == other))
        };
        names.iter().filter(move |other| *other != name && may(other))
    }
}

/// Returns the agent with tools that hand off.
fn with_handoffs(
    agent: &dyn AgentRun,
    tools: Arc<dyn ToolSource>,
) -> OrchestrationResult<Arc<dyn AgentRun>> {
    let name = || agent.name().to_owned();
    match agent.with_tools(tools) {
        Some(Ok(agent)) => Ok(agent),
        Some(Err(source)) => {
            let source = Box::new(source);
            Err(InvalidOrchestration::HandoffTaken { name: name(), source })
        }
        None => Err(InvalidOrchestration::HandoffTools { name: name() }),
    }
}

/// Adds the tool that hands off to `target`. A call of it ends the agent's turn.
fn tool(
    tools: Functions,
    target: &str,
    description: Option<&String>,
) -> Result<Functions, InvalidOrchestration> {
    let about = description.map_or_else(
        || format!("Hand the conversation off to `{target}`."),
        |description| format!("Hand the conversation off to `{target}`: {description}"),
    );
    let mut declaration = Declaration::new(format!("{TOOL}{target}"), about, SCHEMA);
    // The tool changes nothing itself, so approval rules for calls that change something can skip
    // it.
    declaration.annotations = Annotations { read_only: Some(true), ..Annotations::default() };
    let answer = json!(format!("Handed off to {target}."));
    let added = tools.with(declaration, move |_, context| {
        let answer = answer.clone();
        async move {
            if let Some(run) = &context.run {
                run.terminate();
            }
            Ok(answer)
        }
    });
    let added = added.map_err(|source| InvalidOrchestration::HandoffName {
        name: target.to_owned(),
        source: Box::new(source),
    })?;
    // The call discloses nothing, because the next agent gets the label of the run.
    let labels = StatedLabels { accepts_untrusted: Some(true), ..StatedLabels::default() };
    Ok(added.with_labels(&format!("{TOOL}{target}"), labels))
}
