//! The agents of a workflow's file: their models, what they are told, and the tools that they have.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use cofferdam_agent::{Agent, Approvals, Layer, LoopSettings, ScriptedClient, ScriptedReply};
use cofferdam_labels::LabelPolicy;
use cofferdam_tool::Toolset;
use cofferdam_workflow::definition::{AgentDefinition, Names};

use super::file::WorkflowFile;
use super::show::ShowCalls;
use crate::args::WorkflowRunArgs;
use crate::commands::chat::text_or_file;
use crate::config::ConfigFile;
use crate::exit::UsageError;
use crate::models;

/// What agents are made with.
pub(super) struct Makings<'a> {
    pub(super) file: &'a WorkflowFile,
    pub(super) args: &'a WorkflowRunArgs,
    pub(super) config: Option<&'a ConfigFile>,
    pub(super) toolset: &'a Toolset,
    /// Which calls a person is asked about.
    pub(super) approvals: Approvals,
    pub(super) policy: Option<LabelPolicy>,
}

impl Makings<'_> {
    /// An agent that can be run.
    pub(super) fn agent(&self, id: &str) -> Result<Agent> {
        let Some(table) = self.file.definition.agents.get(id) else {
            return Err(self.file.error_anywhere(format!("there is no agent `{id}`")).into());
        };
        let model = self.model(id, table)?;
        let mut settings = LoopSettings::default();
        if let Some(rounds) = table.max_tool_rounds {
            settings.max_iterations = rounds.get();
        }
        let mut builder = Agent::builder(models::client(&model)?)
            .name(id)
            .tools(self.tools(table)?)
            .options(model.options.clone())
            .settings(settings)
            .approvals(self.approvals.clone())
            .layer(Layer::function(ShowCalls { agent: id.to_owned() }));
        if let Some(policy) = &self.policy {
            builder = builder.guard(policy.clone());
        }
        if let Some(instructions) = &table.instructions {
            builder = builder.instructions(self.text(&instructions.value)?);
        }
        builder.build().map_err(|error| self.file.error_anywhere(format!("the agent `{id}`: {error}")).into())
    }

    /// The model that the agent names, or the one of the command line, or the one of the configuration.
    fn model(&self, id: &str, table: &AgentDefinition) -> Result<models::ModelSpec> {
        let named = table.model.as_ref().map(|model| match model.value.strip_prefix("script:") {
            Some(script) => format!("script:{}", self.file.resolve(script).display()),
            None => model.value.clone(),
        });
        let typed = named.as_deref().or(self.args.model.as_deref());
        let chosen = models::choose(typed, None, self.config);
        chosen.map_err(|error| {
            let at = table.model.as_ref().map(|model| model.referenced);
            match at {
                Some(at) if error.is::<UsageError>() => self.file.error(at, format!("{error:#}")).into(),
                None => error.context(format!("the agent `{id}` names no model")),
                _ => error,
            }
        })
    }

    /// The tools that the agent names: none unless it names some.
    fn tools(&self, table: &AgentDefinition) -> Result<Toolset> {
        let Some(named) = &table.tools else { return Ok(Toolset::new()) };
        if named.value == Names::Word("all".to_owned()) {
            return Ok(self.toolset.clone());
        }
        let mut wanted = BTreeSet::new();
        for name in named.value.ids() {
            if let Err(refused) = self.toolset.definition(name) {
                let message = crate::commands::call::explained(&refused);
                return Err(self.file.error(named.referenced, message).into());
            }
            wanted.insert(name.as_str());
        }
        let mut toolset = self.toolset.clone();
        for definition in self.toolset.definitions() {
            if !wanted.contains(definition.name.as_str()) {
                toolset.remove(definition.name.as_str());
            }
        }
        Ok(toolset)
    }

    fn text(&self, text: &str) -> Result<String> {
        match text.strip_prefix('@') {
            Some(path) => text_or_file(&format!("@{}", self.file.resolve(path).display())),
            None => Ok(text.to_owned()),
        }
    }
}

/// An agent that is there and cannot be run: what a graph is drawn with.
pub(super) fn stand_in(id: &str) -> Result<Agent> {
    let model = Arc::new(ScriptedClient::new(Vec::<ScriptedReply>::new()));
    Ok(Agent::builder(model).name(id).build()?)
}
