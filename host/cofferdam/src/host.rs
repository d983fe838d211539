//! A set of tools that can be called.

use std::sync::atomic::{AtomicU64, Ordering};

use cofferdam_tool::{CallContext, Toolset};
use serde_json::Value;

use crate::HostBuilder;
use crate::call::{self, CallError, CallOutput};

/// Tools of plugins and of other sources, and the sandbox that they run in. [`Host::builder`] makes one.
pub struct Host {
    toolset: Toolset,
    calls: AtomicU64,
}

impl Host {
    /// Returns a builder without tools.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    pub(crate) fn new(toolset: Toolset) -> Self {
        Self { toolset, calls: AtomicU64::new(0) }
    }

    /// Calls a tool with arguments, a JSON object. They are decoded by the tool's schema, which also accepts what models commonly
    /// get wrong, such as a number in a string.
    ///
    /// # Errors
    /// When the call is refused, fails, ends in an error or is cancelled.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallOutput, CallError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        self.call_in(tool, arguments, &CallContext::new(format!("call-{number}"))).await
    }

    /// Calls a tool in a context: with an id of yours, a session, cancellation, reports of progress, questions to a person, or as
    /// a dry run.
    ///
    /// # Errors
    /// As for [`Host::call`].
    pub async fn call_in(
        &self,
        tool: &str,
        arguments: Value,
        context: &CallContext,
    ) -> Result<CallOutput, CallError> {
        let arguments = arguments.to_string();
        call::result(self.toolset.call(tool, Some(arguments.as_bytes()), context).await?)
    }

    /// Returns the tools. Clones of the set share everything.
    #[must_use]
    pub fn toolset(&self) -> &Toolset {
        &self.toolset
    }

    /// Returns a builder of an agent that has the tools.
    #[cfg(feature = "agent")]
    pub fn agent(&self, client: impl cofferdam_agent::ChatClient + 'static) -> cofferdam_agent::AgentBuilder {
        cofferdam_agent::Agent::builder(client).tools(self.toolset.clone())
    }

    /// Returns an MCP server that offers the tools. Its `serve_stdio` and `serve_http` run it.
    ///
    /// # Errors
    /// When the options are invalid.
    #[cfg(feature = "mcp")]
    pub fn mcp_server(
        &self,
        options: cofferdam_mcp::ServerOptions,
    ) -> Result<cofferdam_mcp::Server, crate::BuildError> {
        let offer = cofferdam_mcp::Offer { toolset: self.toolset.clone(), ..Default::default() };
        cofferdam_mcp::Server::new(offer, options).map_err(crate::BuildError::Server)
    }
}
