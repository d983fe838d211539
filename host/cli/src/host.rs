//! Turns flags into a host. Every value of the command line is resolved here, once.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam::code_mode::CodeSelection;
use cofferdam::config::{ConfigFile, ValueSource};
use cofferdam::engine::{Engine, Grants, Plugin, PluginOptions};
use cofferdam::loading;
use cofferdam::{
    Access, Availability, CacheDirectory, EngineOptions, FilesStore, Host, Observer,
    OfferedPermission, Operator, PluginFile, Prompter, Purpose, Selection, StoreLocation,
    StoreMount, Work,
};
use cofferdam_tool::{Limits, Permission, PluginName};

use crate::args::{Global, PermissionArgs, PluginArgs};
use crate::exit::{ConsentError, UsageError};
use crate::{ask, print, progress};

/// Maximum length of arguments that are shown to the operator, in characters.
const SHOWN_ARGUMENTS_CHARS_MAX: usize = 2000;

const MOUNT_FORM: &str = "write --mount NAME=STORE, NAME=STORE:ro for reading only, or NAME=STORE:create for creating only; STORE is a directory, \
                          an address like s3://bucket/prefix, or `memory`";
const FILES_FORM: &str = "write --files STORE or --files NAME=STORE, where STORE is a directory, an address like s3://bucket/prefix, \
                          or `memory`; with `:ro` at the end for reading only";

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
    Ok(loading::load_one(engine, component, options, &operator()).await?)
}

/// Reads the configuration that the flags name, if they name one.
pub(crate) fn config(args: &PluginArgs) -> anyhow::Result<Option<ConfigFile>> {
    Ok(args.config.as_deref().map(ConfigFile::read_ambient).transpose()?)
}

/// Resolves the flags for plugins, stores and skills.
pub(crate) fn selection(args: &PluginArgs) -> anyhow::Result<Selection> {
    let mounts =
        args.mounts.iter().map(|typed| mount(typed)).collect::<anyhow::Result<Vec<_>>>()?;
    if args.plugins.is_empty() && !mounts.is_empty() {
        return Err(usage(
            "--mount is for plugins named with --plugin; a configuration has its own grants",
        ));
    }
    let permissions = permissions(&args.permissions)?;
    if args.plugins.is_empty() && !permissions.is_empty() {
        return Err(usage(
            "--allow-http, --allow-env, --secret, --allow and --limit are for plugins named with \
             --plugin; a configuration has its own grants",
        ));
    }
    Ok(Selection {
        config: args.config.clone(),
        plugins: args.plugins.iter().map(|typed| plugin(typed)).collect(),
        mounts,
        permissions,
        files: args.files.as_deref().map(files).transpose()?,
        skills: args.skills.clone(),
        toolsets: args.toolsets.clone(),
        tools: args.tools.clone(),
        timeout: args.timeout,
        memory_bytes_max: args.memory.map(|mebibytes| mebibytes << 20),
        records: args.records,
        recording: args.recording,
        code: CodeSelection {
            offer: args.code,
            language: args.code_language,
            ..CodeSelection::default()
        },
        ..Selection::default()
    })
}

/// Builds the host from the flags and the configuration.
pub(crate) async fn load(
    global: &Global,
    args: &PluginArgs,
    purpose: Purpose,
) -> anyhow::Result<Host> {
    load_apart(global, args, purpose, &[]).await
}

/// Builds the host like [`load`]. No tool may write to `protected`, or to a directory that contains
/// it.
pub(crate) async fn load_apart(
    global: &Global,
    args: &PluginArgs,
    purpose: Purpose,
    protected: &[PathBuf],
) -> anyhow::Result<Host> {
    build(global, selection(args)?, purpose, protected).await
}

/// Builds the host of a selection like [`load_apart`].
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

/// Parses `[NAME=]PATH`. Without a name, the plugin gets the name of the file.
pub(crate) fn plugin(typed: &str) -> PluginFile {
    match typed.split_once('=') {
        Some((name, path)) if !name.contains(['/', '.']) => {
            PluginFile { name: Some(name.to_owned()), component: PathBuf::from(path) }
        }
        _ => PluginFile { name: None, component: PathBuf::from(typed) },
    }
}

/// Resolves the flags that grant permissions.
fn permissions(args: &PermissionArgs) -> anyhow::Result<Vec<OfferedPermission>> {
    let parse = |permission: String| {
        permission.parse::<Permission>().map_err(|error| usage(error.to_string()))
    };
    let with = |permission: String, value: Option<ValueSource>| {
        Ok(OfferedPermission { permission: parse(permission)?, value })
    };
    let http = args.allow_http.iter().map(|rule| with(format!("http:{rule}"), None));
    let env = args.allow_env.iter().map(|typed| match typed.split_once('=') {
        Some((name, value)) => {
            with(format!("env:{name}"), Some(ValueSource::Literal(value.to_owned())))
        }
        None => with(format!("env:{typed}"), None),
    });
    let secrets = args.secret.iter().map(|typed| match typed.split_once('=') {
        Some((name, variable)) => {
            with(format!("secret:{name}"), Some(ValueSource::Env(variable.to_owned())))
        }
        None => with(format!("secret:{typed}"), None),
    });
    let others = args.allow.iter().map(|typed| {
        let permission = parse(typed.clone())?;
        let flag = match &permission {
            Permission::Files(..) => "--mount NAME=STORE",
            Permission::Config(_) => "--config FILE with [plugins.NAME.grants.config]",
            _ => return Ok(OfferedPermission { permission, value: None }),
        };
        Err(usage(format!("`{typed}` needs more than a name; use {flag}")))
    });
    let limits = args.limit.iter().map(|typed| with(format!("limit:{typed}"), None));
    http.chain(env).chain(secrets).chain(others).chain(limits).collect()
}

/// Parses `NAME=DIR[:ro|:rw|:create]`.
fn mount(typed: &str) -> anyhow::Result<StoreMount> {
    let Some((name, directory)) = typed.split_once('=') else {
        return Err(usage(format!("`{typed}` is not a mount: {MOUNT_FORM}")));
    };
    let (directory, access) = match directory.rsplit_once(':') {
        Some((directory, "ro")) => (directory, Access::ReadOnly),
        Some((directory, "create")) => (directory, Access::CreateOnly),
        Some((directory, "rw")) => (directory, Access::ReadWrite),
        _ => (directory, Access::ReadWrite),
    };
    if directory.is_empty() {
        return Err(usage(format!("`{typed}` names no directory: {MOUNT_FORM}")));
    }
    Ok(StoreMount { name: name.to_owned(), location: StoreLocation::parse(directory), access })
}

/// Parses `[NAME=]STORE[:ro|:rw]`.
fn files(typed: &str) -> anyhow::Result<FilesStore> {
    let (name, location) = match typed.split_once('=') {
        Some((name, location)) if !name.contains(['/', '.', ':']) => {
            (Some(name.to_owned()), location)
        }
        _ => (None, typed),
    };
    let (location, access) = match location.rsplit_once(':') {
        Some((location, "ro")) => (location, Access::ReadOnly),
        Some((location, "rw")) => (location, Access::ReadWrite),
        _ => (location, Access::ReadWrite),
    };
    if location.is_empty() {
        return Err(usage(format!("`{typed}` names no store: {FILES_FORM}")));
    }
    Ok(FilesStore { name, location: StoreLocation::parse(location), access })
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
    let arguments = String::from_utf8_lossy(arguments.unwrap_or(b"{}"));
    let arguments = print::arguments(&arguments);
    let shown: String = arguments.chars().take(SHOWN_ARGUMENTS_CHARS_MAX).collect();
    let cut = if shown.len() < arguments.len() { "\n…" } else { "" };
    print::note(&print::with_prefix(
        &format!("`{tool}`{of_server} is to be called with"),
        &format!("{shown}{cut}"),
    ));
    if ask::confirm_async("Call it?").await {
        Ok(())
    } else {
        Err(ConsentError(format!("the call of `{tool}` was not approved")))
    }
}

fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}
