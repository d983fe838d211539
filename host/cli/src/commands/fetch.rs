//! `cofferdam fetch`: downloads plugins of a configuration.

use cofferdam::config::{ComponentLocation, ConfigFile, PluginConfig};
use cofferdam::pins::Pins;
use cofferdam::{install, transfer};
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
    let mut count = 0_usize;
    for (name, plugin) in fetched_plugins(&file, &args.plugins)? {
        let location = plugin.component.get_ref();
        let pins = Pins::of_config_ambient(config)?;
        if let Some(origin) = pins.origin_at(name, location) {
            let was_fetched = fetcher.fetch_locked(location, origin).await?;
            let state = if was_fetched { "is fetched" } else { "is on this machine" };
            print::note(&format!("`{name}` {state}: {}", origin.layer));
            count += 1;
            continue;
        }
        if args.locked {
            let lock = pins.path().display();
            return Err(ConsentError(format!(
                "`{name}` is not in {lock}; run `cofferdam fetch` without --locked and look at it"
            ))
            .into());
        }
        let fetched = fetcher.fetch(location).await?;
        let must_ask = fetcher.must_ask(fetched.origin.signer.as_ref());
        let candidate =
            Candidate::of_fetched(&engine, fetched, PluginName::new(name.as_str())?).await?;
        print::report(&candidate.report())?;
        confirm(&format!("Accept `{name}` like this?"), args.yes, must_ask)?;
        if let Some(origin) = candidate.origin {
            install::update(config, &candidate.plugin, origin)?;
        }
        print::note(&format!("`{name}` is fetched and written to {}", pins.path().display()));
        count += 1;
    }
    if count == 0 {
        note_names(&[], "");
    }
    Ok(Exit::Ok)
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
