//! Agents and workflows in files as tools for MCP clients (`MCP-38`).

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_agent::{AgentTool, AgentToolOptions, Approvals, InvalidAgentTool};
use cofferdam_tool::Toolset;
use cofferdam_workflow::definition::RequestSettings;

use super::agent_sources::AgentSources;
use crate::agent_file::AgentFile;
use crate::config::ConfigFile;
use crate::workflow_file::{AgentParts, WorkflowFile};
use crate::{ContextSettings, Error, LabelledTools, Result};

/// Files whose agents and workflows are offered as tools.
#[derive(Debug, Clone, Default)]
pub struct ServedAgents {
    /// Agent files.
    pub agents: Vec<PathBuf>,
    /// Workflow files.
    pub workflows: Vec<PathBuf>,
    /// Model of agents that name none: `PROVIDER:MODEL`, or the name of a configured model.
    pub model: Option<String>,
    /// Options of requests, over those of agents and their models.
    pub settings: RequestSettings,
}

impl ServedAgents {
    /// Returns the paths of all files.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.agents.iter().chain(&self.workflows).cloned().collect()
    }

    /// Returns the offered tools of `sources` with a tool for each agent and each workflow.
    ///
    /// # Errors
    /// Returns an error if a file is invalid, or names a model, a tool or a skill that does not
    /// exist.
    pub(super) fn add_to(&self, sources: &AgentSources<'_>) -> Result<Toolset> {
        let AgentSources { offered, toolset, is_complete, skills, config, call_log, .. } = *sources;
        let mut offered = offered.clone();
        if self.agents.is_empty() && self.workflows.is_empty() {
            return Ok(offered);
        }
        let approvals = Approvals::default();
        let approvals = match config {
            Some(file) => file.approvals(approvals)?,
            None => approvals,
        };
        let parts = AgentParts {
            model: self.model.as_deref(),
            settings: self.settings.clone(),
            config,
            toolset,
            skills,
            approvals,
            budget: None,
            call_log: call_log.cloned(),
            labels: LabelledTools { toolset, is_complete, call_log }.policy(false, config)?,
            context: ContextSettings::served(config, sources.files),
            layers: ConfigFile::call_layers(config)?,
            layer: None,
            operator: sources.operator.clone(),
        };
        for path in &self.agents {
            let file = AgentFile::read_ambient(path)?;
            let description = file.description().map(str::to_owned);
            let options = AgentToolOptions { description, ..AgentToolOptions::default() };
            add(&mut offered, AgentTool::new(parts.of_file(&file)?, options))?;
        }
        for path in &self.workflows {
            let file = WorkflowFile::read_ambient(path)?;
            let description = file.description().map(str::to_owned);
            let options = AgentToolOptions { description, ..AgentToolOptions::default() };
            add(&mut offered, file.workflow(&parts, None)?.into_tool(options))?;
        }
        Ok(offered)
    }
}

fn add(toolset: &mut Toolset, tool: Result<AgentTool, InvalidAgentTool>) -> Result<()> {
    let tool = tool.map_err(|error| Error::invalid(error.to_string()))?;
    toolset.add(Arc::new(tool)).map_err(|error| Error::invalid(error.to_string()))
}
