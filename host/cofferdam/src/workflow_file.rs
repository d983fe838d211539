//! Workflows of agents, defined in YAML files.

mod agents;
mod build;
mod conditions;
mod person;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cofferdam_files::{DirectoryOptions, DirectoryStore, OpenDirectoryError, Quota, QuotaCounts};
use cofferdam_workflow::definition::WorkflowDefinition;
use cofferdam_workflow::{Checkpoints, Workflow};

pub use self::agents::AgentParts;
pub use self::person::is_yes;
use crate::Result;
use crate::agent_file::{AgentFile, DefinedAgent};
use crate::config::ConfigError;
use crate::definition_file::DefinitionFile;

/// A parsed workflow file.
pub struct WorkflowFile {
    pub(crate) file: DefinitionFile,
    pub(crate) definition: WorkflowDefinition,
    /// Files of agents, by the id of the agent.
    agent_files: BTreeMap<String, AgentFile>,
}

/// Quota of a directory of checkpoints: enough for several thousand typical runs, or for one of the
/// largest size.
const CHECKPOINT_QUOTA: Quota = Quota {
    bytes_max: 16 << 30,
    entries_max: 1_000_000,
    file_bytes_max: 256 << 20,
    depth_max: 4,
    counts: QuotaCounts::Total,
};

/// Opens a directory of checkpoints.
///
/// # Errors
/// If it does not exist or cannot be opened.
pub fn open_checkpoints_ambient(directory: &Path) -> Result<Checkpoints, OpenDirectoryError> {
    let options = DirectoryOptions {
        quota: CHECKPOINT_QUOTA,
        is_private: true,
        ..DirectoryOptions::default()
    };
    let store = DirectoryStore::open_ambient(directory, options)?;
    Ok(Checkpoints::new(Arc::new(store)))
}

impl WorkflowFile {
    /// Reads a file and checks its form.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or its form is invalid.
    pub fn read_ambient(path: &Path) -> Result<Self, ConfigError> {
        let (file, definition) = DefinitionFile::read_ambient(path, WorkflowDefinition::parse)?;
        let mut agent_files = BTreeMap::new();
        for (id, table) in &definition.agents.0 {
            let Some(named) = &table.file else { continue };
            if !table.is_only_a_file() {
                let message = "the file defines the agent, so no other key can be set";
                return Err(file.error(named.referenced, message));
            }
            let agent = AgentFile::read_ambient(&file.resolve(&named.value))?;
            agent_files.insert(id.clone(), agent);
        }
        Ok(Self { file, definition, agent_files })
    }

    /// Returns the description of the workflow.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.definition.description.as_deref()
    }

    /// Returns the definition of an agent.
    pub(crate) fn agent(&self, id: &str) -> Option<DefinedAgent<'_>> {
        match self.agent_files.get(id) {
            Some(file) => Some(file.defined()),
            None => {
                let definition = self.definition.agents.get(id)?;
                Some(DefinedAgent { file: &self.file, definition })
            }
        }
    }

    /// Returns the agents that the file defines, with their ids.
    fn agents(&self) -> impl Iterator<Item = (&str, DefinedAgent<'_>)> {
        let ids = self.definition.agents.0.iter().map(|(id, _)| id.as_str());
        ids.filter_map(|id| Some((id, self.agent(id)?)))
    }

    /// Builds the workflow. `max_iterations` overrides the maximum number of supersteps in the
    /// file.
    ///
    /// # Errors
    /// Returns an error if the file is inconsistent, or names a model or a tool that does not
    /// exist.
    pub fn workflow(
        &self,
        parts: &AgentParts<'_>,
        max_iterations: Option<u64>,
    ) -> Result<Workflow> {
        build::workflow(self, max_iterations, |id| parts.agent(self, id))
    }

    /// Builds the workflow with agents that cannot be run, to check or draw it.
    ///
    /// # Errors
    /// Returns an error if the file is inconsistent.
    pub fn outline(&self) -> Result<Workflow> {
        build::workflow(self, None, |id| agents::placeholder_agent(self, id))
    }

    /// Returns the name of the workflow; by default the name of the file.
    pub fn name(&self) -> String {
        let stem = || self.file.stem();
        self.definition.name.clone().or_else(stem).unwrap_or_else(|| "workflow".to_owned())
    }
}
