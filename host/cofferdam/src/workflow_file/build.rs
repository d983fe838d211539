//! Builds a workflow from a workflow file.

use std::sync::Arc;

use crate::Result;
use cofferdam_agent::AgentRun;
use cofferdam_workflow::definition::{
    EdgeDefinition, Location, NameList, OrchestrationDefinition, OrchestrationKind, SwitchCase,
    TextCondition,
};
use cofferdam_workflow::{
    AgentExecutor, AgentSelector, Concurrent, Condition, GroupChat, Handoff, InvalidOrchestration,
    InvalidWorkflow, Magentic, MagenticLimits, Sequential, Switch, TargetSelection, Workflow,
    WorkflowBuilder, selector_fn,
};

use super::WorkflowFile;
use super::person::UserExecutor;

/// Maximum number of supersteps, if the command line sets it.
pub(super) type MaxIterations = Option<u64>;

/// Builds the workflow of a file. `agent` returns the agent with an id.
pub(super) fn workflow(
    file: &WorkflowFile,
    max_iterations: MaxIterations,
    agent: impl Fn(&str) -> Result<Arc<dyn AgentRun>>,
) -> Result<Workflow> {
    if file.definition.agents.0.is_empty() && file.definition.people.0.is_empty() {
        return Err(file
            .file
            .error_anywhere("the workflow has no agents; write `agents:` with at least one")
            .into());
    }
    if let Some(twice) =
        file.definition.agents.0.iter().find(|(id, _)| file.definition.people.get(id).is_some())
    {
        return Err(file
            .file
            .error_anywhere(format!("`{}` is both an agent and a person", twice.0))
            .into());
    }
    let max_iterations =
        max_iterations.or(file.definition.max_iterations.as_ref().map(|max| max.value));
    match &file.definition.orchestration {
        Some(orchestration) => {
            let at = orchestration.referenced;
            check_has_one_form(file, at)?;
            let table = &orchestration.value.0;
            let built =
                OrchestrationBuilder { file, table, at, agent: &agent, max_iterations }.build()?;
            built.map_err(|error| file.file.error(at, error.to_string()).into())
        }
        None => graph(file, max_iterations, agent),
    }
}

/// Returns an error if the file has an orchestration and a graph of its own: an orchestration
/// defines its edges itself.
fn check_has_one_form(file: &WorkflowFile, at: Location) -> Result<()> {
    let definition = &file.definition;
    let has_graph = definition.start.is_some()
        || !definition.edges.is_empty()
        || !definition.people.0.is_empty()
        || definition.output_from.is_some()
        || definition.intermediate_output_from.is_some();
    if has_graph {
        let message = "`orchestration` has edges and outputs of its own; leave out `start`, `edges`, `people`, `output-from` and \
                       `intermediate-output-from`";
        return Err(file.file.error(at, message).into());
    }
    Ok(())
}

/// Builds an orchestration.
struct OrchestrationBuilder<'f, A> {
    file: &'f WorkflowFile,
    table: &'f OrchestrationDefinition,
    at: Location,
    agent: &'f A,
    max_iterations: MaxIterations,
}

impl<A: Fn(&str) -> Result<Arc<dyn AgentRun>>> OrchestrationBuilder<'_, A> {
    fn build(&self) -> Result<Result<Workflow, InvalidOrchestration>> {
        self.check_options()?;
        let OrchestrationDefinition { kind, chain_only_responses, intermediate, .. } = self.table;
        let (name, ids) = (self.file.name(), self.participants()?);
        let agents = ids.iter().map(|id| self.one(id)).collect::<Result<Vec<_>>>()?;
        let described = ids.iter().filter_map(|id| {
            let agent = self.file.agent(id)?;
            Some((id.clone(), agent.definition.description.clone()?))
        });
        Ok(match kind {
            OrchestrationKind::Sequential => {
                let sequential =
                    Sequential::new(agents).name(name).intermediate_outputs(*intermediate);
                let sequential = sequential.chain_only_responses(*chain_only_responses);
                self.within(sequential, Sequential::max_iterations).build()
            }
            OrchestrationKind::Concurrent => {
                let concurrent =
                    Concurrent::new(agents).name(name).intermediate_outputs(*intermediate);
                self.within(concurrent, Concurrent::max_iterations).build()
            }
            OrchestrationKind::Handoff => {
                let mut handoff = Handoff::new(agents).name(name);
                for (id, description) in described {
                    handoff = handoff.describe(id, description);
                }
                for (from, to) in &self.table.routes.0 {
                    handoff = handoff.route(from, to);
                }
                self.within(handoff, Handoff::max_iterations).build()
            }
            OrchestrationKind::GroupChat => {
                let mut chat = match &self.table.selector {
                    Some(selector) => {
                        GroupChat::new(agents, AgentSelector::new(self.one(selector)?))
                    }
                    None => GroupChat::new(agents, selector_fn(round_robin(ids.len()))),
                };
                if let Some(rounds) = self.table.max_rounds {
                    chat = chat.max_rounds(rounds);
                }
                chat.name(name).intermediate_outputs(*intermediate).build()
            }
            OrchestrationKind::Magentic => {
                let planner = self.table.planner.as_ref();
                let planner = planner.ok_or_else(|| {
                    self.wrong("`magentic` needs a `planner`: the id of an agent")
                })?;
                let default = MagenticLimits::default();
                let limits = MagenticLimits {
                    rounds_max: self.table.max_rounds.unwrap_or(default.rounds_max),
                    stalls_max: self.table.max_stalls.unwrap_or(default.stalls_max),
                    resets_max: self.table.max_resets.unwrap_or(default.resets_max),
                };
                let mut magentic =
                    Magentic::new(agents, self.one(planner)?).name(name).limits(limits);
                for (id, description) in described {
                    magentic = magentic.describe(id, description);
                }
                magentic.intermediate_outputs(*intermediate).build()
            }
        })
    }

    /// Rejects options that belong to another kind of orchestration.
    fn check_options(&self) -> Result<()> {
        let OrchestrationDefinition { kind, max_rounds, max_stalls, max_resets, .. } = self.table;
        let (is_chat, is_magentic) =
            (*kind == OrchestrationKind::GroupChat, *kind == OrchestrationKind::Magentic);
        let options = [
            (
                "chain-only-responses",
                self.table.chain_only_responses,
                *kind == OrchestrationKind::Sequential,
            ),
            ("intermediate", self.table.intermediate, *kind != OrchestrationKind::Handoff),
            ("max-rounds", max_rounds.is_some(), is_chat || is_magentic),
            ("max-stalls", max_stalls.is_some(), is_magentic),
            ("max-resets", max_resets.is_some(), is_magentic),
            ("selector", self.table.selector.is_some(), is_chat),
            ("planner", self.table.planner.is_some(), is_magentic),
            ("routes", !self.table.routes.0.is_empty(), *kind == OrchestrationKind::Handoff),
        ];
        match options.into_iter().find(|(_, is_given, is_known)| *is_given && !is_known) {
            Some((name, ..)) => {
                Err(self.wrong(&format!("`{name}` is for another kind of orchestration")))
            }
            None => Ok(()),
        }
    }

    /// Returns the participants: the listed agents, or else every agent that is neither selector
    /// nor planner.
    fn participants(&self) -> Result<Vec<String>> {
        let ids = match &self.table.participants {
            Some(ids) => ids.clone(),
            None => {
                let others = [&self.table.selector, &self.table.planner];
                let has_task = |id: &String| others.iter().any(|other| other.as_ref() == Some(id));
                let all = self.file.definition.agents.0.iter().map(|(id, _)| id.clone());
                all.filter(|id| !has_task(id)).collect()
            }
        };
        Ok(ids)
    }

    fn one(&self, id: &str) -> Result<Arc<dyn AgentRun>> {
        if self.file.definition.agents.get(id).is_none() {
            return Err(
                self.wrong(&format!("there is no agent `{id}`; agents: {}", known(self.file)))
            );
        }
        (self.agent)(id)
    }

    fn within<B>(&self, builder: B, limit: impl Fn(B, u64) -> B) -> B {
        match self.max_iterations {
            Some(max_iterations) => limit(builder, max_iterations),
            None => builder,
        }
    }

    fn wrong(&self, message: &str) -> crate::Error {
        self.file.file.error(self.at, message).into()
    }
}

/// Selects participants in turn: the number of answers in the chat determines the next one.
fn round_robin(count: usize) -> impl Fn(&[cofferdam_agent::Message], &[String]) -> Option<String> {
    move |chat, participants| {
        let answers =
            chat.iter().filter(|message| message.extra.contains_key("author_name")).count();
        participants.get(answers.checked_rem(count)?).cloned()
    }
}

fn known(file: &WorkflowFile) -> String {
    let agents = file.definition.agents.0.iter().map(|(id, _)| id.as_str());
    let ids: Vec<_> =
        agents.chain(file.definition.people.0.iter().map(|(id, _)| id.as_str())).collect();
    ids.join(", ")
}

/// Builds a graph of edges.
fn graph(
    file: &WorkflowFile,
    max_iterations: MaxIterations,
    agent: impl Fn(&str) -> Result<Arc<dyn AgentRun>>,
) -> Result<Workflow> {
    let definition = &file.definition;
    let mut builder = Workflow::builder(file.name());
    for (id, _) in &definition.agents.0 {
        builder = builder.executor(AgentExecutor::new(id, agent(id)?));
    }
    for (id, table) in &definition.people.0 {
        builder = builder.executor(UserExecutor::new(id, table));
    }
    let only = definition
        .agents
        .0
        .first()
        .filter(|_| definition.agents.0.len() + definition.people.0.len() == 1);
    let start = match (&definition.start, only) {
        (Some(start), _) => {
            check_known(file, start.referenced, &start.value)?;
            start.value.clone()
        }
        (None, Some((only, _))) => only.clone(),
        (None, None) => {
            return Err(file
                .file
                .error_anywhere("the workflow has no `start`, and no `orchestration`")
                .into());
        }
    };
    builder = builder.start(start);
    for edge in &definition.edges {
        builder = add(file, edge.referenced, &edge.value, builder)?;
    }
    builder = match &definition.output_from {
        Some(NameList::Word(word)) => builder.output_from(word.as_str()),
        Some(NameList::List(list)) => builder.output_from(list.clone()),
        None => builder,
    };
    builder = match &definition.intermediate_output_from {
        // Keywords of the file use dashes, those of the builder underscores.
        Some(NameList::Word(word)) => {
            builder.intermediate_output_from(word.replace('-', "_").as_str())
        }
        Some(NameList::List(list)) => builder.intermediate_output_from(list.clone()),
        None => builder,
    };
    if let Some(max_iterations) = max_iterations {
        builder = builder.max_iterations(max_iterations);
    }
    Ok(builder.build().map_err(|error| file.file.error_anywhere(explained(&error)))?)
}

/// Returns the error's message, with a hint in terms of the file where that helps.
fn explained(error: &InvalidWorkflow) -> String {
    match error {
        InvalidWorkflow::FewCases => {
            format!("{error} Write a case with `when` and `to`, and one with `otherwise`.")
        }
        other => other.to_string(),
    }
}

fn check_known(file: &WorkflowFile, at: Location, id: &str) -> Result<()> {
    if file.definition.agents.get(id).is_some() || file.definition.people.get(id).is_some() {
        return Ok(());
    }
    Err(file
        .file
        .error(at, format!("there is no agent or person `{id}`; there are: {}", known(file)))
        .into())
}

fn add(
    file: &WorkflowFile,
    at: Location,
    edge: &EdgeDefinition,
    builder: WorkflowBuilder,
) -> Result<WorkflowBuilder> {
    let wrong = |message: &str| -> crate::Error { file.file.error(at, message).into() };
    let condition = |when: &TextCondition| when.condition().map_err(|message| wrong(&message));
    let cases = edge.switch.iter().chain(&edge.select).flatten();
    let ends =
        edge.from.iter().chain(&edge.to).flat_map(NameList::ids).chain(edge.chain.iter().flatten());
    for id in ends.chain(cases.flat_map(|case| case.to.iter().chain(&case.otherwise))) {
        check_known(file, at, id)?;
    }
    let EdgeDefinition { chain, from, to, when, switch, select } = edge;
    Ok(match (chain, from, to, when, switch, select) {
        (Some(chain), None, None, None, None, None) => builder.chain(chain),
        (None, Some(NameList::Word(from)), Some(NameList::Word(to)), when, None, None) => {
            match when {
                Some(when) => builder.edge_if(from, to, condition(when)?),
                None => builder.edge(from, to),
            }
        }
        (None, Some(NameList::Word(from)), Some(NameList::List(to)), None, None, None) => {
            builder.fan_out(from, to)
        }
        (None, Some(NameList::List(from)), Some(NameList::Word(to)), None, None, None) => {
            builder.fan_in(from, to)
        }
        (None, Some(NameList::Word(from)), None, None, Some(cases), None) => {
            builder.switch(from, switch_of(cases).map_err(|message| wrong(&message))?)
        }
        (None, Some(NameList::Word(from)), None, None, None, Some(cases)) => {
            let (targets, selection) = selection_of(cases).map_err(|message| wrong(&message))?;
            builder.select(from, targets, selection)
        }
        _ => {
            return Err(wrong(
                "an edge is one of: `chain: [a, b]`; `from: a` and `to: b`, with `when` if need be; `from: a` and `to: [b, c]`; \
                 `from: [a, b]` and `to: c`; `from: a` and `switch: [...]`; `from: a` and \
                 `select: [...]`",
            ));
        }
    })
}

fn switch_of(cases: &[SwitchCase]) -> std::result::Result<Switch, String> {
    let mut switch = Switch::new();
    for (index, case) in cases.iter().enumerate() {
        switch = match case {
            SwitchCase { when: Some(when), to: Some(to), otherwise: None } => {
                switch.case(when.condition()?, to)
            }
            SwitchCase { when: None, to: None, otherwise: Some(otherwise) }
                if index + 1 == cases.len() =>
            {
                switch.default_to(otherwise)
            }
            _ => {
                return Err("a case of a switch has `when` and `to`; the last one has `otherwise`"
                    .to_owned());
            }
        };
    }
    Ok(switch)
}

/// Selects every target whose condition holds, in order. A target without a condition receives
/// every message.
fn selection_of(
    cases: &[SwitchCase],
) -> std::result::Result<(Vec<String>, TargetSelection), String> {
    let mut chosen = Vec::new();
    for case in cases {
        let SwitchCase { when, to: Some(to), otherwise: None } = case else {
            return Err(
                "a case of `select` has `to`, and `when` unless it gets every message".to_owned()
            );
        };
        let when = when.as_ref().map(TextCondition::condition).transpose()?;
        chosen.push((to.clone(), when));
    }
    let targets = chosen.iter().map(|(to, _)| to.clone()).collect();
    let names: Vec<_> =
        chosen.iter().map(|(_, when)| when.as_ref().map_or("always", Condition::name)).collect();
    let selection = TargetSelection::new(names.join("; "), move |value, _| {
        let holds = |when: &Option<Condition>| when.as_ref().is_none_or(|when| when.holds(value));
        chosen.iter().filter(|(_, when)| holds(when)).map(|(to, _)| to.clone()).collect()
    });
    Ok((targets, selection))
}
