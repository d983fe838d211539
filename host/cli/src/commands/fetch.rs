//! `cofferdam fetch`: downloads plugins of a configuration, and its interpreter of code mode.

use std::fmt;
use std::path::Path;

use cofferdam::artifacts::Origin;
use cofferdam::config::{ComponentLocation, ConfigFile, PluginConfig};
use cofferdam::pins::Pins;
use cofferdam::{install, transfer};
use cofferdam_engine::Plugin;
use cofferdam_tool::PluginName;

use super::add::{Candidate, confirm, fetcher, named_config};
use crate::args::{FetchArgs, Global, TransferArgs};
use crate::exit::{ConsentError, Exit, UsageError};
use crate::{host, print};

pub(crate) async fn run(global: &Global, args: &FetchArgs) -> anyhow::Result<Exit> {
    let config = named_config("fetch", args.config.as_deref())?;
    let file = ConfigFile::read_ambient(config)?;
    let fetcher = fetcher(Some(&file), args.allow_unsigned, None)?;
    let engine = host::engine(global)?;
    let targets = targets(&file, &args.plugins)?;
    for (target, location) in &targets {
        let pins = Pins::of_config_ambient(config)?;
        if let Some(origin) = target.origin(&pins, location) {
            let was_fetched = fetcher.fetch_locked(location, origin).await?;
            let state = if was_fetched { "is fetched" } else { "is on this machine" };
            print::note(&format!("{target} {state}: {}", origin.layer));
            continue;
        }
        if args.locked {
            let lock = pins.path().display();
            return Err(ConsentError(format!(
                "{target} is not in {lock}; run `cofferdam fetch` without --locked and look at it"
            ))
            .into());
        }
        let fetched = fetcher.fetch(location).await?;
        let must_ask = fetcher.must_ask(fetched.origin.signer.as_ref());
        let candidate =
            Candidate::of_fetched(&engine, fetched, PluginName::new(target.name())?).await?;
        print::report(&candidate.report())?;
        confirm(&format!("Accept {target} like this?"), args.yes, must_ask)?;
        if let Some(origin) = candidate.origin {
            target.accept(config, &candidate.plugin, origin)?;
        }
        print::note(&format!("{target} is fetched and written to {}", pins.path().display()));
    }
    if targets.is_empty() {
        note_names(&[], "");
    }
    Ok(Exit::Ok)
}

/// Component of a configuration that is fetched.
enum FetchTarget<'a> {
    Plugin(&'a str),
    Interpreter,
}

impl FetchTarget<'_> {
    /// Returns the name under which the component is loaded to look at it.
    fn name(&self) -> &str {
        match self {
            Self::Plugin(name) => name,
            Self::Interpreter => "code",
        }
    }

    fn origin<'p>(&self, pins: &'p Pins, location: &ComponentLocation) -> Option<&'p Origin> {
        match self {
            Self::Plugin(name) => pins.origin_at(name, location),
            Self::Interpreter => pins.interpreter_at(location),
        }
    }

    fn accept(&self, config: &Path, plugin: &Plugin, origin: Origin) -> cofferdam::Result<()> {
        match self {
            Self::Plugin(_) => install::update(config, plugin, origin),
            Self::Interpreter => install::accept_interpreter(config, plugin, origin),
        }
    }
}

impl fmt::Display for FetchTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plugin(name) => write!(f, "`{name}`"),
            Self::Interpreter => f.write_str("the interpreter of [code]"),
        }
    }
}

/// Returns the plugins of a configuration that are not files, or those that are named. Without
/// names, the interpreter of code mode is one of them.
fn targets<'a>(
    file: &'a ConfigFile,
    named: &[String],
) -> anyhow::Result<Vec<(FetchTarget<'a>, &'a ComponentLocation)>> {
    let plugins = fetched_plugins(file, named)?.into_iter();
    let mut targets: Vec<_> = plugins
        .map(|(name, plugin)| (FetchTarget::Plugin(name), plugin.component.get_ref()))
        .collect();
    let interpreter = file.interpreter()?.filter(|location| location.file().is_none());
    if let (Some(location), true) = (interpreter, named.is_empty()) {
        targets.push((FetchTarget::Interpreter, location));
    }
    Ok(targets)
}

pub(crate) fn export(args: &TransferArgs) -> anyhow::Result<Exit> {
    let file = ConfigFile::read_ambient(named_config("export", args.config.as_deref())?)?;
    let names = transfer::export_ambient(&file, &args.directory)?;
    note_names(&names, &format!("copied into {}", args.directory.display()));
    Ok(Exit::Ok)
}

pub(crate) async fn import(args: &TransferArgs) -> anyhow::Result<Exit> {
    let file = ConfigFile::read_ambient(named_config("import", args.config.as_deref())?)?;
    let names = transfer::import_ambient(&file, &args.directory, &host::operator()).await?;
    note_names(&names, "on this machine");
    Ok(Exit::Ok)
}

fn note_names(names: &[String], state: &str) {
    match names {
        [] => print::note("no plugin of the configuration is fetched from elsewhere"),
        [one] => print::note(&format!("`{one}` is {state}")),
        several => print::note(&format!("{} plugins are {state}", several.len())),
    }
}

/// Returns the plugins of a configuration that are not files, or those that are named.
pub(super) fn fetched_plugins<'a>(
    file: &'a ConfigFile,
    named: &[String],
) -> Result<Vec<(&'a String, &'a PluginConfig)>, UsageError> {
    let is_file =
        |plugin: &PluginConfig| matches!(plugin.component.get_ref(), ComponentLocation::File(_));
    for name in named {
        let path = file.path.display();
        match file.config.plugins.get(name) {
            None => return Err(UsageError(format!("{path} has no plugin `{name}`"))),
            Some(plugin) if is_file(plugin) => {
                return Err(UsageError(format!("the plugin `{name}` of {path} is a file")));
            }
            Some(_) => {}
        }
    }
    let is_named = |name: &String| named.is_empty() || named.contains(name);
    let plugins = file.config.plugins.iter();
    Ok(plugins.filter(|(name, plugin)| is_named(name) && !is_file(plugin)).collect())
}
