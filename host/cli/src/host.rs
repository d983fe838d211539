//! Turns flags into a host. Every value of the command line is resolved here, once.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam::config::ConfigFile;
use cofferdam::engine::{Engine, Grants, Plugin, PluginOptions};
use cofferdam::loading;
use cofferdam::{
    Availability, CacheDirectory, EngineOptions, Host, Observer, Operator, Prompter, Purpose,
    Selection, SelectionFlags, Work,
};
use cofferdam_tool::cut::shown_arguments;
use cofferdam_tool::{Limits, PluginName};

use crate::args::{Global, PluginArgs};
use crate::exit::ConsentError;
use crate::{ask, print, progress};

/// Maximum bytes of the arguments that are shown to the operator.
const SHOWN_ARGUMENTS_BYTES_MAX: usize = 2000;

/// The operator at the terminal.
struct Terminal {
    /// True if the operator has started the command that logs in.
    logs_in: bool,
}

#[async_trait]
impl Prompter for Terminal {
    fn availability(&self) -> Availability {
        if ask::is_refused() {
            Availability::Refused
        } else if ask::is_possible() {
            Availability::Available
        } else {
            Availability::Absent
        }
    }

    fn can_log_in(&self) -> bool {
        self.logs_in || !ask::is_refused() && std::io::IsTerminal::is_terminal(&std::io::stderr())
    }

    fn choice(&self, question: &str) -> String {
        ask::choice(question)
    }

    fn text(&self, question: &str) -> String {
        ask::text(question)
    }

    async fn choice_later(&self, question: &str) -> String {
        ask::choice_later(question).await
    }
}

impl Observer for Terminal {
    fn note(&self, message: &str) {
        print::note(message);
    }

    fn progress(&self, work: Option<&Work>) {
        match work {
            Some(Work { label, done, total }) => {
                let share = (*total > 1).then(|| f64::from(*done) / f64::from(*total));
                progress::show(label, share);
            }
            None => progress::clear(),
        }
    }
}

/// Returns the operator at the terminal.
pub(crate) fn operator() -> Operator {
    terminal(false)
}

/// Returns the operator at the terminal, for the command that logs in to a server.
pub(crate) fn login_operator() -> Operator {
    terminal(true)
}

fn terminal(logs_in: bool) -> Operator {
    let terminal = Arc::new(Terminal { logs_in });
    Operator::new(Arc::clone(&terminal) as Arc<dyn Prompter>, terminal)
}

/// Returns the engine options that the flags set.
pub(crate) fn engine_options(global: &Global) -> EngineOptions {
    let cache = match &global.cache_dir {
        _ if global.no_cache => CacheDirectory::None,
        Some(directory) => CacheDirectory::At(directory.clone()),
        None => CacheDirectory::User,
    };
    EngineOptions {
        cache,
        confinement_min: global.confinement.map(Into::into),
        idle_hook: Some(crate::memory::release),
        ..EngineOptions::default()
    }
}

/// Starts the engine with the options that the flags set.
pub(crate) fn engine(global: &Global) -> anyhow::Result<Engine> {
    Ok(engine_options(global).start()?)
}

/// Loads a plugin without grants, to read what it declares and asks for.
pub(crate) async fn load_without_grants(
    engine: &Engine,
    name: PluginName,
    component: PathBuf,
) -> anyhow::Result<Plugin> {
    let (grants, limits) = (Grants::default(), Limits::default());
    let options = PluginOptions::new(name, grants, limits);
    Ok(loading::load_file(engine, component, options, &operator()).await?)
}

/// Reads the configuration that the flags name, if they name one.
pub(crate) fn config(args: &PluginArgs) -> anyhow::Result<Option<ConfigFile>> {
    Ok(args.config.as_deref().map(ConfigFile::read_ambient).transpose()?)
}

/// Resolves the flags for plugins, stores and skills.
pub(crate) fn selection(args: &PluginArgs) -> anyhow::Result<Selection> {
    let flags = SelectionFlags {
        plugins: args.plugins.clone(),
        mounts: args.mounts.clone(),
        allow_http: args.permissions.allow_http.clone(),
        allow_env: args.permissions.allow_env.clone(),
        secrets: args.permissions.secret.clone(),
        allow: args.permissions.allow.clone(),
        limits: args.permissions.limit.clone(),
        config: args.config.clone(),
        files: args.files.clone(),
        skills: args.skills.clone(),
        toolsets: args.toolsets.clone(),
        tools: args.tools.clone(),
        timeout: args.timeout,
        memory_mib: args.memory,
        code: args.code,
        code_language: args.code_language,
        records: args.records,
        recording: args.recording,
    };
    Ok(flags.resolve()?)
}

/// Builds the host from the flags and the configuration.
pub(crate) async fn load(
    global: &Global,
    args: &PluginArgs,
    purpose: Purpose,
) -> anyhow::Result<Host> {
    build(global, selection(args)?, purpose, &[]).await
}

/// Builds the host of a selection. No tool may write to `protected`, or to a directory that
/// contains it.
pub(crate) async fn build(
    global: &Global,
    selection: Selection,
    purpose: Purpose,
    protected: &[PathBuf],
) -> anyhow::Result<Host> {
    let builder = Host::builder().selection(selection).engine(engine_options(global));
    let builder = builder.operator(operator()).purpose(purpose).protect(protected.iter().cloned());
    Ok(builder.build().await?)
}

/// Gets the operator's approval for a call that needs it: one that deletes files, one of a server
/// whose configuration requires approval, or a script of a skill.
///
/// # Errors
/// [`ConsentError`] if the operator denies the call or cannot be asked.
pub(crate) async fn approve(
    host: &Host,
    tool: &str,
    arguments: Option<&[u8]>,
) -> Result<(), ConsentError> {
    if !host.toolset().needs_approval_for(tool, arguments) {
        return Ok(());
    }
    let of_server = host.server_of(tool).map(|server| {
        let name = cofferdam::tool::ToolSource::name(&**server);
        format!(" of the server `{name}`")
    });
    let of_server = of_server.unwrap_or_default();
    if !ask::is_possible() {
        let why = ask::why_impossible();
        return Err(ConsentError(format!(
            "each call of `{tool}`{of_server} has to be approved, and {why}; pass --yes to \
             approve it"
        )));
    }
    let arguments = arguments.unwrap_or(b"{}");
    let shown = match host.toolset().definition(tool) {
        Ok(definition) => shown_arguments(definition, arguments, SHOWN_ARGUMENTS_BYTES_MAX),
        Err(_) => String::from_utf8_lossy(arguments).into_owned(),
    };
    print::note(&print::with_prefix(
        &format!("`{tool}`{of_server} would be called with"),
        &print::arguments(&shown),
    ));
    if ask::confirm_async("Call it?").await {
        Ok(())
    } else {
        Err(ConsentError(format!("the call to `{tool}` was not approved")))
    }
}
