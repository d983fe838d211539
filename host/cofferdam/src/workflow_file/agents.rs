//! The agents of a workflow's file: their models, what they are told, and the tools that they have.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::Result;
use cofferdam_agent::{Agent, Approvals, Layer, LoopSettings, ScriptedClient, ScriptedReply};
use cofferdam_labels::LabelPolicy;
use cofferdam_tool::Toolset;
use cofferdam_workflow::definition::{AgentDefinition, NameList};

use super::WorkflowFile;
use crate::Error;
use crate::config::ConfigFile;
use crate::model_specs;

/// Maximum bytes of a file with instructions.
const TEXT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Parts that all agents of a workflow share.
pub struct AgentParts<'a> {
    /// Model of agents that name none: `PROVIDER:MODEL`, or one of the configuration.
    pub model: Option<&'a str>,
    /// Configuration with the models that agents name.
    pub config: Option<&'a ConfigFile>,
    /// Tools that agents may name.
    pub toolset: &'a Toolset,
    /// Calls that the user is asked about.
    pub approvals: Approvals,
    /// Labels of the conversations.
    pub labels: Option<LabelPolicy>,
    /// Returns the layer around the calls of the agent with that id.
    pub layer: &'a (dyn Fn(&str) -> Layer + Sync),
}

impl AgentParts<'_> {
    /// Returns an agent that can be run.
    pub(super) fn agent(&self, file: &WorkflowFile, id: &str) -> Result<Agent> {
        let Some(table) = file.definition.agents.get(id) else {
            return Err(file.error_anywhere(format!("there is no agent `{id}`")).into());
        };
        let model = self.model(file, id, table)?;
        let mut settings = LoopSettings::default();
        if let Some(rounds) = table.max_tool_rounds {
            settings.max_iterations = rounds.get();
        }
        let mut builder = Agent::builder(model_specs::client(&model)?)
            .name(id)
            .tools(self.tools(file, table)?)
            .options(model.options.clone())
            .settings(settings)
            .approvals(self.approvals.clone())
            .layer((self.layer)(id));
        if let Some(policy) = &self.labels {
            builder = builder.guard(policy.clone());
        }
        if let Some(instructions) = &table.instructions {
            builder = builder.instructions(text(file, &instructions.value)?);
        }
        builder
            .build()
            .map_err(|error| file.error_anywhere(format!("the agent `{id}`: {error}")).into())
    }

    /// The model that the agent names, or the one of the command line, or the one of the
    /// configuration.
    fn model(
        &self,
        file: &WorkflowFile,
        id: &str,
        table: &AgentDefinition,
    ) -> Result<model_specs::ModelSpec> {
        let named = table.model.as_ref().map(|model| match model.value.strip_prefix("script:") {
            Some(script) => format!("script:{}", file.resolve(script).display()),
            None => model.value.clone(),
        });
        let typed = named.as_deref().or(self.model);
        let chosen = model_specs::choose(typed, None, self.config);
        chosen.map_err(|error| {
            let at = table.model.as_ref().map(|model| model.referenced);
            match at {
                Some(at) if matches!(error, Error::Invalid(_)) => {
                    file.error(at, format!("{error:#}")).into()
                }
                None => error.context(format!("the agent `{id}` names no model")),
                _ => error,
            }
        })
    }

    /// The tools that the agent names: none unless it names some.
    fn tools(&self, file: &WorkflowFile, table: &AgentDefinition) -> Result<Toolset> {
        let Some(named) = &table.tools else { return Ok(Toolset::new()) };
        if named.value == NameList::Word("all".to_owned()) {
            return Ok(self.toolset.clone());
        }
        let mut wanted = BTreeSet::new();
        for name in named.value.ids() {
            if let Err(refused) = self.toolset.definition(name) {
                let message = crate::text::refusal(&refused);
                return Err(file.error(named.referenced, message).into());
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
}

/// Returns instructions, or the contents of the file that `@PATH` names.
fn text(file: &WorkflowFile, text: &str) -> Result<String> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let path = file.resolve(path);
    cofferdam_files::read_named_text_ambient(&path, TEXT_BYTES_MAX)
        .map_err(|error| Error::invalid(format!("{}: {error}", path.display())))
}

/// An agent that is there and cannot be run: what a graph is drawn with.
pub(super) fn stand_in(id: &str) -> Result<Agent> {
    let model = Arc::new(ScriptedClient::new(Vec::<ScriptedReply>::new()));
    Agent::builder(model).name(id).build().map_err(|error| Error::invalid(error.to_string()))
}
