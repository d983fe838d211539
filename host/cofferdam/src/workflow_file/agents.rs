//! Agents of a workflow file: their models, instructions and tools.

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
use crate::recorded_model::recorded;
use crate::records::CallLog;

/// Maximum bytes of a file with instructions.
const TEXT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Parts that all agents of a workflow share.
pub struct AgentParts<'a> {
    /// Model of agents that name none: `PROVIDER:MODEL`, or the name of a configured model.
    pub model: Option<&'a str>,
    /// Configuration with the models that agents name.
    pub config: Option<&'a ConfigFile>,
    /// Tools that agents may name.
    pub toolset: &'a Toolset,
    /// Calls that need the user's approval.
    pub approvals: Approvals,
    /// Log in which the replies of models are recorded.
    pub call_log: Option<Arc<CallLog>>,
    /// Label policy of the conversations.
    pub labels: Option<LabelPolicy>,
    /// Function that returns the layer around the calls of the agent with that id.
    pub layer: &'a (dyn Fn(&str) -> Layer + Sync),
}

impl AgentParts<'_> {
    /// Builds the agent with an id.
    pub(super) fn agent(&self, file: &WorkflowFile, id: &str) -> Result<Agent> {
        let Some(table) = file.definition.agents.get(id) else {
            return Err(file.error_anywhere(format!("there is no agent `{id}`")).into());
        };
        let model = self.model(file, id, table)?;
        let mut settings = LoopSettings::default();
        if let Some(rounds) = table.max_tool_rounds {
            settings.max_iterations = rounds.get();
        }
        let client = model_specs::client(&model, None)?;
        let client = recorded(client, model.provider.word(), self.call_log.as_ref());
        let mut builder = Agent::builder(client)
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

    /// Returns the model that the agent names, or else that of the command line, or else the
    /// default of the configuration.
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

    /// Returns the tools that the agent names; none by default.
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

/// Returns `text`, or the content of the file if it is `@PATH`.
fn text(file: &WorkflowFile, text: &str) -> Result<String> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let path = file.resolve(path);
    cofferdam_files::read_named_text_ambient(&path, TEXT_BYTES_MAX)
        .map_err(|error| Error::invalid(format!("{}: {error}", path.display())))
}

/// Returns an agent that cannot be run, for checking or drawing a graph.
pub(super) fn placeholder_agent(id: &str) -> Result<Agent> {
    let model = Arc::new(ScriptedClient::new(Vec::<ScriptedReply>::new()));
    Agent::builder(model).name(id).build().map_err(|error| Error::invalid(error.to_string()))
}
