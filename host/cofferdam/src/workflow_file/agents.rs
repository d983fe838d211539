//! Agents of a workflow file: their models, instructions and tools.

use std::sync::Arc;

use cofferdam_agent::{
    Agent, AgentBuilder, AgentRun, Approvals, ChatClient, ChoiceBehavior, Layer, LoopSettings,
    ScriptedClient, ScriptedReply, TokenBudget,
};
use cofferdam_labels::LabelPolicy;
use cofferdam_skills::SkillTools;
use cofferdam_tool::Toolset;
use cofferdam_workflow::definition::RequestSettings;

use super::WorkflowFile;
use crate::agent_file::{AgentFile, DefinedAgent};
use crate::config::{ConfigFile, Provider};
use crate::model_specs::{self, ModelSpec};
use crate::recorded_model::{recorded, run_recorder};
use crate::records::CallLog;
use crate::{ContextSettings, Error, Host, Operator, Result};

/// Parts that all agents of a workflow share.
pub struct AgentParts<'a> {
    /// Model of agents that name none: `PROVIDER:MODEL`, or the name of a configured model.
    pub model: Option<&'a str>,
    /// Options of requests, over those of agents and their models.
    pub settings: RequestSettings,
    /// Configuration with the models that agents name.
    pub config: Option<&'a ConfigFile>,
    /// Tools that agents may name.
    pub toolset: &'a Toolset,
    /// Skills that agents may name.
    pub skills: Option<&'a Arc<SkillTools>>,
    /// Calls that need the user's approval.
    pub approvals: Approvals,
    /// Budget that all agents share.
    pub budget: Option<TokenBudget>,
    /// Log in which the replies of models are recorded.
    pub call_log: Option<Arc<CallLog>>,
    /// Label policy of the conversations.
    pub labels: Option<LabelPolicy>,
    /// Settings of memory files, todo lists and plan modes.
    pub context: ContextSettings<'a>,
    /// Middleware around the calls of all agents, inside `layer`.
    pub layers: Vec<Layer>,
    /// Function that returns the layer around the calls of the agent with that id.
    pub layer: Option<&'a (dyn Fn(&str) -> Layer + Sync)>,
    /// Receiver of warnings about agents.
    pub operator: Operator,
}

impl AgentParts<'_> {
    /// Builds the agent of a workflow with an id.
    pub(super) fn agent(&self, file: &WorkflowFile, id: &str) -> Result<Arc<dyn AgentRun>> {
        match file.agent(id) {
            Some(agent) => agent.bounded(self.build(agent, id)?),
            None => Err(file.file.error_anywhere(format!("there is no agent `{id}`")).into()),
        }
    }

    /// Builds the agent of an agent file, in its loop if it has one.
    ///
    /// # Errors
    /// Returns an error if the file names a model, a tool or a skill that does not exist, or if a
    /// setting is invalid.
    pub fn of_file(&self, file: &AgentFile) -> Result<Arc<dyn AgentRun>> {
        file.defined().bounded(self.without_loop(file)?)
    }

    /// Builds the agent of an agent file without its loop.
    ///
    /// # Errors
    /// Like [`of_file`](Self::of_file).
    pub fn without_loop(&self, file: &AgentFile) -> Result<Agent> {
        self.build(file.defined(), &file.name())
    }

    /// Builds an agent that has all tools.
    ///
    /// # Errors
    /// Returns an error if there is no such model, or if a setting of the configuration is invalid.
    pub fn with_all_tools(&self, instructions: Option<&str>) -> Result<Agent> {
        let mut model = model_specs::choose(self.model, None, self.config)?;
        self.settings.apply_to(&mut model.options);
        let mut builder = self.builder(&model, "agent")?.options(model.options);
        builder = builder.tools(self.toolset.clone());
        if let Some(instructions) = instructions {
            builder = builder.instructions(instructions);
        }
        builder = self.context.open(None)?.add_to(builder);
        builder.build().map_err(|error| Error::invalid(error.to_string()))
    }

    /// Returns the builder of an agent, with everything that does not depend on its definition.
    fn builder(&self, model: &ModelSpec, id: &str) -> Result<AgentBuilder> {
        let client = model_specs::client(model, None)?;
        let client = recorded(client, model.provider.word(), self.call_log.as_ref());
        let client: Arc<dyn ChatClient> = Arc::new(client);
        // The same model writes the summaries.
        let compaction = model.compaction(None, Arc::clone(&client));
        let mut builder = Agent::builder(client)
            .name(id)
            .settings(loop_settings(self.config)?)
            .approvals(self.approvals.clone())
            .compaction(compaction)
            .observer(run_recorder(model.provider.word(), self.call_log.as_ref()));
        if let Some(config) = self.config {
            builder = builder.tool_search(config.tool_search());
        }
        if let Some(budget) = &self.budget {
            builder = builder.budget(budget.clone());
        }
        if let Some(layer) = self.layer {
            builder = builder.layer(layer(id));
        }
        for layer in &self.layers {
            builder = builder.layer(layer.clone());
        }
        if let Some(policy) = &self.labels {
            builder = builder.guard(policy.clone());
        }
        Ok(builder)
    }

    /// Builds a defined agent.
    fn build(&self, agent: DefinedAgent<'_>, id: &str) -> Result<Agent> {
        let resolved = self.available().resolve(agent, id)?;
        let mut options = resolved.model.options.clone();
        self.settings.apply_to(&mut options);
        let mut builder = self
            .builder(&resolved.model, id)?
            .tools(resolved.tools)
            .options(options)
            .settings(resolved.settings)
            .approvals(resolved.approvals);
        if let Some(instructions) = agent.instructions()? {
            builder = builder.instructions(instructions);
        }
        if let Some(choice) = resolved.choice {
            builder = builder.choice(choice);
        }
        if let Some(format) = agent.response_format(id)? {
            builder = builder.response_format(format);
        }
        let built = self.context.open(Some(agent))?.add_to(builder).build();
        built
            .map_err(|error| agent.file.error_anywhere(format!("the agent `{id}`: {error}")).into())
    }

    fn available(&self) -> Available<'_> {
        Available {
            model: self.model,
            config: self.config,
            toolset: self.toolset,
            skills: self.skills,
            approvals: &self.approvals,
            operator: &self.operator,
        }
    }
}

/// Models, tools and skills that agents may name, and the approvals that apply to all of them.
#[derive(Clone, Copy)]
struct Available<'a> {
    model: Option<&'a str>,
    config: Option<&'a ConfigFile>,
    toolset: &'a Toolset,
    skills: Option<&'a Arc<SkillTools>>,
    approvals: &'a Approvals,
    operator: &'a Operator,
}

/// Model, tools and settings of a defined agent.
struct ResolvedAgent {
    model: ModelSpec,
    tools: Toolset,
    settings: LoopSettings,
    approvals: Approvals,
    choice: Option<ChoiceBehavior>,
}

impl Available<'_> {
    /// Finds everything that an agent names, and checks its settings.
    fn resolve(&self, agent: DefinedAgent<'_>, id: &str) -> Result<ResolvedAgent> {
        let mut model = agent
            .model(self.model, None, self.config)
            .map_err(|error| error.context(format!("the agent `{id}`")))?;
        agent.set_options(&mut model)?;
        // The host has checked the rules of the configuration.
        self.operator.warn_all(agent.approvals(Approvals::default())?.misspelled(self.toolset));
        Ok(ResolvedAgent {
            tools: agent.tools(self.toolset, self.skills)?,
            settings: agent.settings(loop_settings(self.config)?)?,
            approvals: agent.approvals(self.approvals.clone())?,
            choice: agent.choice(&model)?,
            model,
        })
    }
}

fn loop_settings(config: Option<&ConfigFile>) -> Result<LoopSettings> {
    Ok(config.map(ConfigFile::loop_settings).transpose()?.unwrap_or_default())
}

impl WorkflowFile {
    /// Checks the models, tools, skills, scripts and settings that the agents name. `model` is that
    /// of agents that name none, as for a run. No key of a model is needed.
    ///
    /// # Errors
    /// Returns an error if an agent names something that does not exist, or if a setting is
    /// invalid.
    pub fn check_agents(
        &self,
        host: &Host,
        model: Option<&str>,
        config: Option<&ConfigFile>,
        operator: &Operator,
    ) -> Result<()> {
        let approvals = Approvals::default();
        let (toolset, skills) = (host.toolset(), host.skills());
        let available =
            Available { model, config, toolset, skills, approvals: &approvals, operator };
        for (id, agent) in self.agents() {
            let model = available.resolve(agent, id)?.model;
            if model.provider == Provider::Script {
                model_specs::client(&model, None)?;
            }
        }
        Ok(())
    }
}

/// Returns an agent that cannot be run, for checking or drawing a graph. The form of its answers
/// and its prompt file are checked.
pub(super) fn placeholder_agent(file: &WorkflowFile, id: &str) -> Result<Arc<dyn AgentRun>> {
    let defined = file.agent(id);
    defined.map(|agent| agent.response_format(id)).transpose()?;
    defined.map(|agent| agent.instructions()).transpose()?;
    let model = Arc::new(ScriptedClient::new(Vec::<ScriptedReply>::new()));
    let agent = Agent::builder(model).name(id).build();
    let agent = agent.map_err(|error| Error::invalid(error.to_string()))?;
    match defined {
        Some(defined) => defined.bounded(agent),
        None => Ok(Arc::new(agent)),
    }
}
