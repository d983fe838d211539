//! Replaces `agents` in builds without workflows, labels or models: there are no agents to offer.

use std::path::PathBuf;

use cofferdam_tool::Toolset;

use super::agent_sources::AgentSources;
use crate::Result;

/// No files.
#[derive(Debug, Clone, Default)]
pub struct ServedAgents {}

impl ServedAgents {
    #[expect(clippy::unused_self, reason = "as in builds with agents")]
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "as in builds with agents")]
    pub(super) fn add_to(&self, sources: &AgentSources<'_>) -> Result<Toolset> {
        Ok(sources.offered.clone())
    }
}
