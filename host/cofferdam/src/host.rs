//! A set of tools that can be called.

use std::fmt;
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
#[cfg(feature = "mcp")]
use tokio_util::sync::CancellationToken;

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
    /// Settings of `[agent.loop]`.
    #[cfg(feature = "agent")]
    loop_settings: cofferdam_agent::LoopSettings,
    /// Policy of `[labels]`, if the host is for conversations.
    #[cfg(feature = "labels")]
    label_policy: Option<cofferdam_labels::LabelPolicy>,
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

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unavailable: Vec<_> = self.unavailable.iter().map(|plugin| &plugin.name).collect();
        f.debug_struct("Host")
            .field("plugins", &self.plugins)
            .field("unavailable", &unavailable)
            .field("toolset", &self.toolset)
            .finish_non_exhaustive()
    }
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
            #[cfg(feature = "agent")]
            loop_settings: config.map(ConfigFile::loop_settings).transpose()?.unwrap_or_default(),
            #[cfg(feature = "labels")]
            label_policy: None,
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
        #[cfg(feature = "agent")]
        if purpose == Purpose::Converse {
            operator.warn_all(host.approvals.misspelled(&host.toolset));
        }
        host.restrict_tools(selection, config)?;
        if let (Some(plan), Some(engine)) = (code, &host.engine) {
            let offer = plan.offer;
            let mode = plan.load(engine, &host.toolset, operator).await?;
            host.toolset = code_mode::offered(offer, &host.toolset, mode)?;
        }
        #[cfg(feature = "labels")]
        if purpose == Purpose::Converse {
            host.label_policy = host.policy_of(config)?;
        }
        Ok(host)
    }

    /// Returns the label policy of the configuration, if it has one.
    #[cfg(feature = "labels")]
    fn policy_of(
        &self,
        config: Option<&ConfigFile>,
    ) -> Result<Option<cofferdam_labels::LabelPolicy>> {
        let mut tools = crate::LabelledTools::of(self);
        tools.is_complete &= self.unavailable.is_empty();
        tools.policy(false, config)
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
    /// The call is one of the program, which decides itself what it calls: rules of
    /// `[[agent.approvals]]`, denials included, are for calls that a model makes.
    ///
    /// # Errors
    /// Returns an error if the call is refused, fails, ends in an error or is canceled.
    ///
    /// # Panics
    /// Panics for a tool of a plugin outside a Tokio runtime.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallOutput, CallError> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        self.call_in(tool, arguments, &CallContext::new(format!("call-{number}"))).await
    }

    /// Calls a tool in a context, which can set an id, a session, cancellation, progress reports, a
    /// handler of questions to the user, or a dry run.
    ///
    /// # Errors
    /// Like [`Host::call`].
    ///
    /// # Panics
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

    /// Returns the rules of `[[agent.approvals]]`, to add rules of the program to them.
    #[cfg(feature = "agent")]
    #[must_use]
    pub fn approvals(&self) -> &cofferdam_agent::Approvals {
        &self.approvals
    }

    /// Returns a builder of an agent that has the tools, the rules of `[[agent.approvals]]`, the
    /// settings of `[agent.loop]` and, in a host of [`Purpose::Converse`], the policy of
    /// `[labels]`. Other keys of the configuration are for the agents of the command and of
    /// workflows.
    ///
    /// [`approvals`](cofferdam_agent::AgentBuilder::approvals),
    /// [`settings`](cofferdam_agent::AgentBuilder::settings) and
    /// [`guard`](cofferdam_agent::AgentBuilder::guard) of the builder replace what the
    /// configuration says, denials included. To add rules instead, start with
    /// [`Host::approvals`].
    #[cfg(feature = "agent")]
    pub fn agent(
        &self,
        client: impl cofferdam_agent::ChatClient + 'static,
    ) -> cofferdam_agent::AgentBuilder {
        let builder = cofferdam_agent::Agent::builder(client)
            .tools(self.toolset.clone())
            .approvals(self.approvals.clone())
            .settings(self.loop_settings.clone());
        #[cfg(feature = "labels")]
        if let Some(policy) = self.label_policy.clone() {
            return builder.guard(policy);
        }
        builder
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

    /// Serves the tools to one MCP client on standard input and output, until the input ends or the
    /// future is dropped.
    ///
    /// # Errors
    /// Returns an error if the output is closed.
    #[cfg(feature = "mcp")]
    pub async fn serve_stdio(&self) -> Result<()> {
        use crate::error::Context as _;
        let server = self.mcp_server(Default::default())?;
        let stop = CancellationToken::new();
        let _stops_when_dropped = stop.clone().drop_guard();
        server.serve_stdio(stop).await.context("the client cannot be served")
    }

    /// Serves the tools to MCP clients over HTTP, until the future is dropped. Connections then end
    /// with the response that they are writing. [`serve::HttpAccess`](crate::serve::HttpAccess)
    /// creates the options. To stop the server and wait until calls have ended, pass a token to
    /// `serve_http` of [`Host::mcp_server`].
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
        let stop = CancellationToken::new();
        // Connections are served by tasks of their own, which would go on.
        let _stops_when_dropped = stop.clone().drop_guard();
        let served = server.serve_http(listener, options, stop).await;
        served.map_err(|error| crate::Error::invalid(error.to_string()))
    }
}

#[cfg(test)]
#[cfg(all(feature = "labels", feature = "mcp"))]
mod tests {
    use cofferdam_agent::{ApprovalEffect, MessageContent, ScriptedClient};
    use cofferdam_mcp::{Access, HttpOptions};
    use cofferdam_tool::Functions;
    use cofferdam_tool::declaration::Declaration;
    use cofferdam_tool::label::{Integrity, StatedLabels};
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Returns a host with the tools `fetch`, of untrusted results, and `send`.
    async fn host(config: &str) -> Result<Host> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cofferdam.toml");
        std::fs::write(&file, config).unwrap();
        let declared =
            |name| Declaration::new(name, "Does it.", r#"{"type":"object","properties":{}}"#);
        let untrusted = StatedLabels {
            source_integrity: Some(Integrity::Untrusted),
            ..StatedLabels::default()
        };
        let functions = Functions::new("web")
            .with_labels("fetch", untrusted)
            .with(declared("fetch"), async |_, _| Ok(json!("page")))
            .unwrap()
            .with(declared("send"), async |_, _| Ok(json!("sent")))
            .unwrap();
        Host::builder().config_file(file).source(Arc::new(functions)).build().await
    }

    /// Returns the results of the calls of an agent that fetches and then sends.
    async fn results(host: &Host) -> Vec<String> {
        let script = "{\"calls\":[{\"tool\":\"fetch\"}]}\n{\"calls\":[{\"tool\":\"send\"}]}\n\
                      {\"text\":\"done\"}";
        let model = ScriptedClient::read("script", script.as_bytes()).unwrap();
        let response = host.agent(model).build().unwrap().run("go").await.unwrap();
        let contents = response.messages.iter().flat_map(|message| &message.contents);
        let results = contents.filter_map(|content| match content {
            MessageContent::FunctionResult(result) => Some(result.result.clone()),
            _ => None,
        });
        results.collect()
    }

    #[tokio::test]
    async fn an_agent_of_a_host_has_the_label_policy_of_the_configuration() {
        let free = results(&host("").await.unwrap()).await;
        assert_eq!(free, ["page", "sent"]);
        let policy = "[labels]\npolicy = true\nauto-hide-untrusted = false\n";
        let guarded = results(&host(policy).await.unwrap()).await;
        assert_eq!(guarded.first().map(String::as_str), Some("page"));
        assert!(!guarded.contains(&"sent".to_owned()), "{guarded:?}");
        let misspelled = "[labels]\npolicy = true\nallow-untrusted-tools = [\"sned\"]\n";
        let error = host(misspelled).await.unwrap_err().to_string();
        assert!(error.contains("there is no tool `sned`"), "{error}");
    }

    #[tokio::test]
    async fn an_agent_of_a_host_has_the_loop_and_the_rules_of_the_configuration() {
        let config = "[agent.loop]\nmax-iterations = 1\n[[agent.approvals]]\n\
                      effect = \"deny\"\ntool = \"send\"\n";
        let host = host(config).await.unwrap();
        assert_eq!(results(&host).await, ["page"]);
        let call = cofferdam_agent::FunctionCall {
            name: "send".to_owned(),
            arguments: "{}".to_owned(),
            ..cofferdam_agent::FunctionCall::default()
        };
        let definition = host.toolset().definition("send").unwrap();
        let judged = host.approvals().judge(&call, definition, host.toolset());
        assert_eq!(judged, ApprovalEffect::Deny);
    }

    #[tokio::test]
    async fn a_dropped_server_serves_connected_clients_no_longer() {
        let host = host("").await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = format!("GET /nothing HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let access = Access { is_open: true, ..Access::default() };
        let open = HttpOptions { access, ..HttpOptions::default() };
        let answered = async {
            client.write_all(request.as_bytes()).await.unwrap();
            let mut answer = [0; 4096];
            let bytes = client.read(&mut answer).await.unwrap();
            assert!(answer[..bytes].starts_with(b"HTTP/1.1 404"));
        };
        tokio::select! {
            served = host.serve_http(listener, open) => panic!("{served:?}"),
            () = answered => {}
        }
        let mut rest = Vec::new();
        let ended = client.read_to_end(&mut rest);
        let ended = tokio::time::timeout(std::time::Duration::from_secs(5), ended).await;
        assert_eq!(ended.unwrap().unwrap(), 0);
    }
}
