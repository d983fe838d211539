//! Agents that pass a person on to each other (`WF-14`).

use std::collections::BTreeMap;
use std::sync::Arc;

use cofferdam_agent::Agent;
use cofferdam_tool::{Annotations, Declaration, Functions, StatedLabels, ToolSource};
use serde_json::json;

use super::super::agent::{AgentExecutor, Passes};
use super::super::builder::Workflow;
use super::{InvalidOrchestration, names};

/// Begins the names of the tools.
const TOOL: &str = "handoff_to_";
/// Arguments that the tools take: none.
const SCHEMA: &str = r#"{"type":"object","properties":{},"additionalProperties":false}"#;

/// Agents that pass a person on to each other: each has tools `handoff_to_<id>`. An answer without a handoff is output, and the
/// run pauses for what the person says next (`WF-14`); an empty text ends it.
#[must_use = "nothing is built yet"]
pub struct Handoff {
    name: String,
    agents: Vec<Agent>,
    /// To whom, from whom; everybody to everybody if there is nothing.
    routes: BTreeMap<String, Vec<String>>,
    /// What somebody is good at, for the others.
    descriptions: BTreeMap<String, String>,
    max_iterations: Option<u64>,
}

impl Handoff {
    /// These agents; a run begins with the first.
    pub fn new(agents: impl IntoIterator<Item = Agent>) -> Self {
        Self {
            name: "handoff".into(),
            agents: agents.into_iter().collect(),
            routes: BTreeMap::new(),
            descriptions: BTreeMap::new(),
            max_iterations: None,
        }
    }

    /// What the workflow is called.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// `from` may hand off to these. As soon as anybody is given a route, those without one hand off to nobody.
    pub fn route<I: Into<String>>(
        mut self,
        from: impl Into<String>,
        to: impl IntoIterator<Item = I>,
    ) -> Self {
        self.routes.entry(from.into()).or_default().extend(to.into_iter().map(Into::into));
        self
    }

    /// What the others are told of somebody.
    pub fn describe(mut self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.descriptions.insert(name.into(), description.into());
        self
    }

    /// Most supersteps between two answers of the person.
    pub fn max_iterations(mut self, max_iterations: u64) -> Self {
        self.max_iterations = Some(max_iterations);
        self
    }

    /// The workflow.
    ///
    /// # Errors
    /// No participants, two with one name, somebody named who does not take part, or a name that no tool can have.
    pub fn build(self) -> Result<Workflow, InvalidOrchestration> {
        let names = names(&self.agents)?;
        self.check_names(&names)?;
        let first = names.first().cloned().unwrap_or_default();
        let mut builder = Workflow::builder(self.name.clone()).start(first);
        if let Some(max_iterations) = self.max_iterations {
            builder = builder.max_iterations(max_iterations);
        }
        for agent in &self.agents {
            let targets = self.targets(agent.name(), &names);
            let executor = self.executor(agent, &targets)?;
            builder = builder.executor(executor);
            for target in targets {
                builder = builder.edge(agent.name(), target);
            }
        }
        Ok(builder.build()?)
    }

    fn check_names(&self, names: &[String]) -> Result<(), InvalidOrchestration> {
        let routed = self.routes.iter().flat_map(|(from, to)| to.iter().chain([from]));
        match routed.chain(self.descriptions.keys()).find(|name| !names.contains(name)) {
            Some(name) => Err(InvalidOrchestration::Unknown { name: name.clone(), known: names.to_vec() }),
            None => Ok(()),
        }
    }

    fn targets(&self, name: &str, names: &[String]) -> Vec<String> {
        let others = names.iter().filter(|other| *other != name);
        let may = |other: &&String| {
            self.routes.is_empty() || self.routes.get(name).is_some_and(|to| to.contains(other))
        };
        others.filter(may).cloned().collect()
    }

    fn executor(&self, agent: &Agent, targets: &[String]) -> Result<AgentExecutor, InvalidOrchestration> {
        let name = agent.name();
        let mut tools = Functions::new("handoff");
        let mut handoffs = BTreeMap::new();
        for target in targets {
            tools = tool(tools, target, self.descriptions.get(target))?;
            handoffs.insert(format!("{TOOL}{target}"), target.clone());
        }
        let source: Arc<dyn ToolSource> = Arc::new(tools);
        let agent = agent.with_source(source).map_err(|source| InvalidOrchestration::HandoffTaken {
            name: name.to_owned(),
            source: Box::new(source),
        })?;
        let executor = AgentExecutor::new(name, agent).passing(Passes::Conversation).forgetting();
        Ok(executor.naming_speakers().handing_off(handoffs))
    }
}

/// Adds the tool that hands off to `target`. Calling it ends the agent's turn.
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
    // It does nothing by itself: whoever asks about calls that change something need not ask about it.
    declaration.annotations = Annotations { read_only: Some(true), ..Annotations::default() };
    let told = json!(format!("Handed off to {target}."));
    let added = tools.with(declaration, move |_, context| {
        let told = told.clone();
        async move {
            if let Some(run) = &context.run {
                run.terminate();
            }
            Ok(told)
        }
    });
    let added = added.map_err(|source| InvalidOrchestration::HandoffName {
        name: target.to_owned(),
        source: Box::new(source),
    })?;
    // Nothing leaves by it: whoever is handed off to is told the label of the run.
    let labels = StatedLabels { accepts_untrusted: Some(true), ..StatedLabels::default() };
    Ok(added.labelled(&format!("{TOOL}{target}"), labels))
}
