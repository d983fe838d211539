//! Parts of a running service that agents and workflows in files are built from.

use std::sync::Arc;

#[cfg(feature = "skills")]
use cofferdam_skills::SkillTools;
use cofferdam_tool::Toolset;

use crate::Operator;
use crate::config::ConfigFile;
use crate::policy_files::ServedFiles;
use crate::records::CallLog;

/// Sources of tools for agents and workflows that are offered as tools.
#[derive(Clone, Copy)]
pub(super) struct AgentSources<'a> {
    /// Tools that clients get, to which those of agents are added.
    pub(super) offered: &'a Toolset,
    /// Tools that agents can name.
    pub(super) toolset: &'a Toolset,
    /// True if all plugins are loaded and all servers connected.
    pub(super) is_complete: bool,
    #[cfg(feature = "skills")]
    pub(super) skills: Option<&'a Arc<SkillTools>>,
    pub(super) config: Option<&'a ConfigFile>,
    pub(super) call_log: Option<&'a Arc<CallLog>>,
    pub(super) files: &'a ServedFiles,
    pub(super) operator: &'a Operator,
}
