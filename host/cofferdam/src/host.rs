//! A set of tools that can be called.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cofferdam_engine::{Engine, Plugin};
use cofferdam_files::FileAccessTools;
#[cfg(feature = "mcp")]
use cofferdam_mcp::client::RemoteServer;
#[cfg(feature = "skills")]
use cofferdam_skills::SkillTools;
use cofferdam_tool::invoke::ApprovalNeed;
use cofferdam_tool::{CallContext, ToolSource, Toolset};
use serde_json::Value;

use crate::call::{self, CallError, CallOutput};
use crate::code_mode::CodePlan;
use crate::compose::{HostPlan, ToolsetParts};
use crate::config::ConfigFile;
use crate::granting::Values;
use crate::loading::Unavailable;
use crate::records::{self, CallLog};
#[cfg(feature = "mcp")]
use crate::servers::ConnectOutcome;
use crate::toolsets::KnownTools;
use crate::{
    HostBuilder, Operator, Result, Selection, code_mode, compose, loading, servers, skill_tools,
};

/// Purpose of a host, which decides what it reads and asks for while it is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Tools are called: secrets and variables are read, the operator is asked for missing grants,
    /// and a selection without tools is an error.
    Call,
    /// Like [`Purpose::Call`], but there may be no tools.
    Converse,
    /// Tools are listed. Secrets and variables of plugins are not read; those of servers are,
    /// because the server itself has to be asked for its tools.
    List,
}

/// Tools of plugins and other sources, with the sandbox that runs them. Created by
/// [`Host::builder`].
pub struct Host {
    plugins: Vec<Arc<Plugin>>,
    unavailable: Vec<Unavailable>,
    files: Option<Arc<FileAccessTools>>,
    #[cfg(feature = "skills")]
    skills: Option<Arc<SkillTools>>,
    #[cfg(feature = "mcp")]
    servers: ConnectOutcome,
    toolset: Toolset,
    /// Rules of `[[agent.approvals]]`.
    #[cfg(feature = "agent")]
    approvals: cofferdam_agent::Approvals,
    engine: Option<Engine>,
    call_log: Option<Arc<CallLog>>,
    calls: AtomicU64,
}

/// Inputs of [`Host::build`].
pub(crate) struct HostParts<'a> {
    pub(crate) selection: &'a Selection,
    pub(crate) purpose: Purpose,
    /// Paths that no tool may write to.
    pub(crate) protected: &'a [PathBuf],
    pub(crate) operator: &'a Operator,
}

impl Host {
    /// Returns a builder without tools.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    /// Loads and connects what the selection and its configuration name. Servers that cannot be
    /// reached are noted.
    pub(crate) async fn build(
        parts: HostParts<'_>,
        start_engine: impl FnOnce() -> Result<Engine>,
    ) -> Result<Self> {
        let HostParts { selection, purpose, protected, operator } = parts;
        let values = if purpose == Purpose::List { Values::Leave } else { Values::Read };
        let mut plan = HostPlan::new(selection, values, protected, None)?;
        if purpose != Purpose::Converse {
            plan = plan.require_tools(selection)?;
        }
        #[cfg(feature = "skills")]
        let protected = plan.protected_from_skills();
        let code = CodePlan::new(selection, plan.config.as_ref())?;
        let HostPlan { config, specs, files, records, .. } = plan;
        let records = records.filter(|_| purpose != Purpose::List);
        let call_log = records.map(|planned| planned.open(&specs, operator)).transpose()?.flatten();
        let config = config.as_ref();
        #[cfg(feature = "registry")]
        crate::advisories::note(config, operator);
        #[cfg(feature = "mcp")]
        let servers = servers::selected(selection, config, operator)?;
        let has_servers = config.is_some_and(servers::are_named);
        let has_skills = skill_tools::are_named(selection, config);
        let mut host = Self {
            plugins: Vec::new(),
            unavailable: Vec::new(),
            files,
            #[cfg(feature = "skills")]
            skills: None,
            #[cfg(feature = "mcp")]
            servers: ConnectOutcome::default(),
            toolset: Toolset::new(),
            #[cfg(feature = "agent")]
            approvals: config
                .map(|file| file.approvals(cofferdam_agent::Approvals::default()))
                .transpose()?
                .unwrap_or_default(),
            engine: None,
            call_log,
            calls: AtomicU64::new(0),
        };
        let mut sources = Vec::new();
        if !specs.is_empty() || has_skills || code.is_some() {
            let engine = start_engine()?;
            let mut loaded = match purpose {
                Purpose::Call | Purpose::Converse => {
                    loading::load_to_call(&engine, specs, operator).await?
                }
                Purpose::List => loading::load(&engine, specs, operator).await?,
            };
            let has_others = host.files.is_some() || has_servers || has_skills || code.is_some();
            if !has_others && selection.sources.is_empty() {
                loaded.require_any(operator)?;
            }
            loaded.unavailable.iter().for_each(|plugin| plugin.note(operator));
            loaded.batch.save();
            let plugins = loaded.plugins.iter().map(|(spec, plugin)| (spec, plugin));
            compose::check_mounts_are_asked_for(selection, plugins)?;
            #[cfg(feature = "skills")]
            {
                host.skills =
                    skill_tools::tools(&engine, selection, config, values, &protected, operator)
                        .await?;
            }
            sources = loaded.plugins.iter().map(|(spec, plugin)| spec.source(plugin)).collect();
            host.plugins = loaded.plugins.into_iter().map(|(_, plugin)| plugin).collect();
            host.unavailable = loaded.unavailable;
            host.engine = Some(engine);
        }
        #[cfg(feature = "mcp")]
        {
            host.servers = servers::connect_all(servers).await;
            host.servers.note_unreachable(operator);
            host.servers.settle_changes(operator).await;
        }
        let parts = ToolsetParts {
            plugins: sources,
            others: compose::other_sources(
                host.files.as_ref(),
                host.skill_source(),
                &selection.sources,
            ),
            unavailable: host.unavailable.iter().map(Unavailable::tools).collect(),
            servers: host.server_sources(),
        };
        host.toolset = compose::toolset(parts, operator)?;
        host.observe_calls(selection);
        host.restrict_tools(selection, config)?;
        if let (Some(plan), Some(engine)) = (code, &host.engine) {
            let offer = plan.offer;
            let mode = plan.load(engine, &host.toolset, operator).await?;
            host.toolset = code_mode::offered(offer, &host.toolset, mode)?;
        }
        Ok(host)
    }

    /// Leaves out the tools that the selection does not offer.
    fn restrict_tools(&mut self, selection: &Selection, config: Option<&ConfigFile>) -> Result<()> {
        #[cfg(feature = "mcp")]
        let has_servers = self.servers.unreachable.is_empty() && self.servers.changed().is_empty();
        #[cfg(not(feature = "mcp"))]
        let has_servers = true;
        let known = KnownTools {
            config,
            toolset: &self.toolset,
            is_complete: self.unavailable.is_empty() && has_servers,
        };
        self.toolset = known.restrict(selection)?;
        Ok(())
    }

    /// Sends the calls of all tools to the program's own sink, or to the call log.
    fn observe_calls(&mut self, selection: &Selection) {
        if let Some(log) = &self.call_log {
            log.note_plugins(self.plugins.iter());
        }
        if let Some(sink) = records::sink(self.call_log.as_ref(), selection) {
            self.toolset.set_sink(sink);
        }
    }

    fn skill_source(&self) -> Option<Arc<dyn ToolSource>> {
        #[cfg(feature = "skills")]
        return self.skills.clone().map(|skills| skills as Arc<dyn ToolSource>);
        #[cfg(not(feature = "skills"))]
        None
    }

    fn server_sources(&self) -> Vec<Arc<dyn ToolSource>> {
        #[cfg(feature = "mcp")]
        return self
            .servers
            .servers
            .iter()
            .map(|server| Arc::clone(server) as Arc<dyn ToolSource>)
            .collect();
        #[cfg(not(feature = "mcp"))]
        Vec::new()
    }

    /// Calls a tool with arguments, a JSON object. The arguments are decoded by the tool's schema,
    /// which also accepts common mistakes of models, such as a number in a string.
    ///
    /// # Errors
    /// Returns an error if the call is refused, fails, ends in an error or is canceled.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallOutput, CallError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        self.call_in(tool, arguments, &CallContext::new(format!("call-{number}"))).await
    }

    /// Calls a tool in a context, which can set an id, a session, cancellation, progress reports, a
    /// handler of questions to the user, or a dry run.
    ///
    /// # Errors
    /// Like [`Host::call`].
    pub async fn call_in(
        &self,
        tool: &str,
        arguments: Value,
        context: &CallContext,
    ) -> Result<CallOutput, CallError> {
        let arguments = arguments.to_string();
        call::result(self.toolset.call(tool, Some(arguments.as_bytes()), context).await?)
    }

    /// Returns whether a call that a model makes has to be approved: by the rules of
    /// `[[agent.approvals]]`, or else by the source of the tool. An unknown tool needs no approval,
    /// because it does not run.
    pub(crate) fn approval(&self, tool: &str, arguments: Option<&[u8]>) -> ApprovalNeed {
        #[cfg(feature = "agent")]
        if let Ok(definition) = self.toolset.definition(tool) {
            let call = cofferdam_agent::FunctionCall {
                name: tool.to_owned(),
                arguments: String::from_utf8_lossy(arguments.unwrap_or(b"{}")).into_owned(),
                ..cofferdam_agent::FunctionCall::default()
            };
            return match self.approvals.judge(&call, definition, &self.toolset) {
                cofferdam_agent::ApprovalEffect::Allow => ApprovalNeed::NotNeeded,
                cofferdam_agent::ApprovalEffect::Ask => ApprovalNeed::Needed,
                cofferdam_agent::ApprovalEffect::Deny => ApprovalNeed::Denied,
            };
        }
        match self.toolset.needs_approval_for(tool, arguments) {
            true => ApprovalNeed::Needed,
            false => ApprovalNeed::NotNeeded,
        }
    }

    /// Returns the tools. Clones of the set share state.
    #[must_use]
    pub fn toolset(&self) -> &Toolset {
        &self.toolset
    }

    /// Returns the engine that runs plugins and scripts; `None` if there are none.
    #[must_use]
    pub fn engine(&self) -> Option<&Engine> {
        self.engine.as_ref()
    }

    /// Returns the log that the calls are recorded in, if they are.
    #[must_use]
    pub fn call_log(&self) -> Option<&Arc<CallLog>> {
        self.call_log.as_ref()
    }

    /// Returns the loaded plugins.
    #[must_use]
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// Returns the plugins that cannot be used, with the reasons. Calls of their known tools return
    /// an error.
    #[must_use]
    pub fn unavailable(&self) -> &[Unavailable] {
        &self.unavailable
    }

    /// Returns the file-access tools.
    #[must_use]
    pub fn file_tools(&self) -> Option<&Arc<FileAccessTools>> {
        self.files.as_ref()
    }

    /// Returns the tools of skills.
    #[cfg(feature = "skills")]
    #[must_use]
    pub fn skills(&self) -> Option<&Arc<SkillTools>> {
        self.skills.as_ref()
    }

    /// Returns the connected servers, and those that cannot be reached.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn servers(&self) -> &ConnectOutcome {
        &self.servers
    }

    /// Returns the server that a tool belongs to, if any.
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn server_of(&self, tool: &str) -> Option<&Arc<RemoteServer>> {
        let source = self.toolset.source(tool)?.name();
        self.servers.servers.iter().find(|server| server.name() == source)
    }

    /// Returns the unavailable plugin that a tool belongs to, if any.
    #[must_use]
    pub fn unavailable_plugin_of(&self, tool: &str) -> Option<&Unavailable> {
        let source = self.toolset.source(tool)?;
        self.unavailable.iter().find(|plugin| plugin.name.as_str() == source.name())
    }

    /// Returns whether a tool is one of the file-access tools.
    #[must_use]
    pub fn is_file_tool(&self, tool: &str) -> bool {
        let source = self.toolset.source(tool).map(|source| source.name());
        self.files.as_ref().is_some_and(|files| Some(files.name()) == source)
    }

    /// Lists the unavailable sources that may have an unknown tool, as lines for the operator.
    #[must_use]
    pub fn possible_owners(&self) -> Vec<String> {
        let plugins: Vec<_> =
            self.unavailable.iter().map(|plugin| format!("`{}`", plugin.name)).collect();
        #[allow(unused_mut, reason = "servers are added where MCP is a feature")]
        let mut all = vec![(plugins, "left out")];
        #[cfg(feature = "mcp")]
        {
            let servers = self.servers.unreachable.iter();
            let servers: Vec<_> = servers.map(|server| format!("`{}`", server.name)).collect();
            all.push((servers, "which cannot be reached"));
            let changed = self.servers.changed().iter().map(|name| format!("`{name}`")).collect();
            all.push((changed, "of which tools are left out until you accept its change"));
        }
        let known = all.iter().filter(|(names, _)| !names.is_empty());
        known
            .map(|(names, state)| format!("  it may be a tool of {}, {state}", names.join(", ")))
            .collect()
    }

    /// Returns a builder of an agent that has the tools, and the rules of `[[agent.approvals]]`.
    #[cfg(feature = "agent")]
    pub fn agent(
        &self,
        client: impl cofferdam_agent::ChatClient + 'static,
    ) -> cofferdam_agent::AgentBuilder {
        cofferdam_agent::Agent::builder(client)
            .tools(self.toolset.clone())
            .approvals(self.approvals.clone())
    }

    /// Returns an MCP server that offers the tools, with the rules of `[[agent.approvals]]`. Its
    /// `serve_stdio` and `serve_http` run it.
    ///
    /// # Errors
    /// Returns an error if the options are invalid.
    #[cfg(feature = "mcp")]
    pub fn mcp_server(
        &self,
        options: cofferdam_mcp::ServerOptions,
    ) -> Result<cofferdam_mcp::Server> {
        use crate::error::Context as _;
        #[cfg(feature = "agent")]
        let rules = crate::serve::call_rules::of_approvals(&self.approvals);
        #[cfg(not(feature = "agent"))]
        let rules = None;
        let toolset = self.toolset.clone();
        let offer = cofferdam_mcp::Offer { toolset, rules, ..Default::default() };
        cofferdam_mcp::Server::new(offer, options).context("the server does not start")
    }

    /// Serves the tools to one MCP client on standard input and output, until the input ends.
    ///
    /// # Errors
    /// Returns an error if the output is closed.
    #[cfg(feature = "mcp")]
    pub async fn serve_stdio(&self) -> Result<()> {
        use crate::error::Context as _;
        let server = self.mcp_server(Default::default())?;
        server.serve_stdio(Default::default()).await.context("the client cannot be served")
    }

    /// Serves the tools to MCP clients over HTTP. [`serve::HttpAccess`](crate::serve::HttpAccess)
    /// creates the options.
    ///
    /// # Errors
    /// Returns an error if the options do not fit the address.
    #[cfg(feature = "mcp")]
    pub async fn serve_http(
        &self,
        listener: tokio::net::TcpListener,
        options: cofferdam_mcp::HttpOptions,
    ) -> Result<()> {
        let server = self.mcp_server(Default::default())?;
        let served = server.serve_http(listener, options, Default::default()).await;
        served.map_err(|error| crate::Error::invalid(error.to_string()))
    }
}
