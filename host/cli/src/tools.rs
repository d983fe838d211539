//! The tools that one command works with: loaded plugins, the file-access tools, those of skills, connected servers.

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_agent::skills::SkillTools;
use cofferdam_engine::{Engine, Plugin};
use cofferdam_files::FileAccessTools;
use cofferdam_mcp::client::RemoteServer;
use cofferdam_tool::{ToolSource as _, Toolset};

use crate::args::{Global, PluginArgs};
use crate::config::ConfigFile;
use crate::exit::ConsentError;
use crate::loading::Unavailable;
use crate::offer::Values;
use crate::servers::{self, Connected, Login, ServerSpec};
use crate::{ask, compose, loading, print, skills};

/// What the tools are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// They are called: values behind names are read, and the person is asked for grants that are missing.
    Calling,
    /// The same for a model, which may have none.
    Chatting,
    /// They are looked at. Secrets of plugins are left alone; those of servers are needed to see their tools.
    Looking,
}

/// Everything that a command can call.
pub(crate) struct Tools {
    pub(crate) plugins: Vec<Arc<Plugin>>,
    /// Plugins that are left out.
    pub(crate) unavailable: Vec<Unavailable>,
    pub(crate) files: Option<Arc<FileAccessTools>>,
    pub(crate) skills: Option<Arc<SkillTools>>,
    pub(crate) connected: Connected,
    pub(crate) toolset: Toolset,
    /// What the plugins run on.
    _engine: Engine,
}

/// Longest argument text that a person is shown, in characters.
const SHOWN_ARGUMENTS_CHARS_MAX: usize = 2000;

impl Tools {
    /// Loads and connects what the flags and the configuration name. Servers that cannot be reached are noted.
    pub(crate) async fn load(global: &Global, args: &PluginArgs, purpose: Purpose) -> anyhow::Result<Self> {
        Self::load_apart(global, args, purpose, &[]).await
    }

    /// The same. No tool may write to `protected`, or to what holds it.
    pub(crate) async fn load_apart(
        global: &Global,
        args: &PluginArgs,
        purpose: Purpose,
        protected: &[PathBuf],
    ) -> anyhow::Result<Self> {
        let config = compose::config(args)?;
        let config = config.as_ref();
        let mut specs = match purpose {
            Purpose::Calling => compose::plugin_specs(args, config, Values::Read)?,
            Purpose::Chatting => compose::any_plugin_specs(args, config, Values::Read)?,
            Purpose::Looking => compose::plugin_specs(args, config, Values::Leave)?,
        };
        let protected = &[protected, &skills::directories(args, config)].concat();
        specs.iter_mut().for_each(|spec| spec.protect(protected));
        compose::check_reach(&specs)?;
        let values = if purpose == Purpose::Looking { Values::Leave } else { Values::Read };
        let files = compose::file_tools(args, config, &specs, values, protected, None)?;
        let servers = server_specs(args, config, Login::if_seen())?;
        let engine = compose::engine(global)?;
        let protected = &[protected.as_slice(), &compose::deciding(&specs)].concat();
        let mut loaded = match purpose {
            Purpose::Calling | Purpose::Chatting => loading::load_to_call(&engine, specs).await?,
            Purpose::Looking => loading::load(&engine, specs).await?,
        };
        if files.is_none() && servers.is_empty() && !skills::are_named(args, config) {
            loaded.require_any()?;
        }
        loaded.unavailable.iter().for_each(Unavailable::note);
        loaded.batch.save();
        let skills = skills::tools(&engine, args, config, values, protected).await?;
        let plugins: Vec<_> = loaded.plugins.into_iter().map(|(_, plugin)| plugin).collect();
        let connected = servers::connect_all(servers).await;
        connected.note_unreachable();
        connected.settle_changes().await;
        let toolset = compose::toolset(
            &plugins,
            &loaded.unavailable,
            files.clone(),
            skills.clone(),
            connected.servers.clone(),
        )?;
        let unavailable = loaded.unavailable;
        Ok(Self { plugins, unavailable, files, skills, connected, toolset, _engine: engine })
    }

    /// The server that a tool belongs to, if it is one of a server.
    pub(crate) fn server_of(&self, tool: &str) -> Option<&Arc<RemoteServer>> {
        let source = self.toolset.source(tool)?.name();
        self.connected.servers.iter().find(|server| server.name() == source)
    }

    /// The plugin that is left out and has the tool, if one does.
    pub(crate) fn unavailable_plugin_of(&self, tool: &str) -> Option<&Unavailable> {
        let source = self.toolset.source(tool)?;
        self.unavailable.iter().find(|plugin| plugin.name.as_str() == source.name())
    }

    /// Lists the sources that are not there and may have a tool that is not known, in lines for the operator.
    pub(crate) fn possible_owners(&self) -> Vec<String> {
        let plugins: Vec<_> = self.unavailable.iter().map(|plugin| format!("`{}`", plugin.name)).collect();
        let servers = self.connected.unreachable.iter();
        let servers: Vec<_> = servers.map(|server| format!("`{}`", server.name)).collect();
        let changed: Vec<_> = self.connected.changed().iter().map(|name| format!("`{name}`")).collect();
        let all = [
            (plugins, "left out"),
            (servers, "which cannot be reached"),
            (changed, "of which tools are left out until you accept its change"),
        ];
        let known = all.iter().filter(|(names, _)| !names.is_empty());
        known.map(|(names, state)| format!("  it may be a tool of {}, {state}", names.join(", "))).collect()
    }

    /// Returns whether a tool is one of the file-access tools.
    pub(crate) fn is_file_tool(&self, tool: &str) -> bool {
        let source = self.toolset.source(tool).map(|source| source.name());
        self.files.as_ref().is_some_and(|files| Some(files.name()) == source)
    }

    /// Gets the operator's approval for a call of a tool that needs it: one that deletes files, one of a server that is
    /// configured so, a script of a skill.
    ///
    /// # Errors
    /// [`ConsentError`] when it is not given, or cannot be asked for.
    pub(crate) async fn approve(&self, tool: &str, arguments: Option<&[u8]>) -> Result<(), ConsentError> {
        if !self.toolset.needs_approval_for(tool, arguments) {
            return Ok(());
        }
        let of_server = self.server_of(tool).map(|server| format!(" of the server `{}`", server.name()));
        let of_server = of_server.unwrap_or_default();
        if !ask::is_possible() {
            let why = ask::why_impossible();
            return Err(ConsentError(format!(
                "each call of `{tool}`{of_server} has to be approved, and {why}; pass --yes to approve it"
            )));
        }
        let arguments = String::from_utf8_lossy(arguments.unwrap_or(b"{}"));
        let arguments = print::arguments(&arguments);
        let shown: String = arguments.chars().take(SHOWN_ARGUMENTS_CHARS_MAX).collect();
        let cut = if shown.len() < arguments.len() { "\n…" } else { "" };
        print::note(&print::marked(
            &format!("`{tool}`{of_server} is to be called with"),
            &format!("{shown}{cut}"),
        ));
        if ask::yes_later("Call it?").await {
            Ok(())
        } else {
            Err(ConsentError(format!("the call of `{tool}` was not approved")))
        }
    }
}

/// The servers of the configuration that the flags name.
pub(crate) fn server_specs(
    args: &PluginArgs,
    config: Option<&ConfigFile>,
    login: Login,
) -> anyhow::Result<Vec<ServerSpec>> {
    let Some(config) = config else { return Ok(Vec::new()) };
    let mut specs = servers::of_config(config, Values::Read, login)?;
    if let Some(timeout) = args.timeout {
        for spec in &mut specs {
            spec.settings.call_wait = timeout;
        }
    }
    Ok(specs)
}
