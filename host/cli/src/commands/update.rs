//! `cofferdam update`: shows how plugins have changed at their source.

use std::path::Path;

use cofferdam::artifacts::{self, Origin};
use cofferdam::config::ConfigFile;
use cofferdam::pins::{PinComparison, Pins};
use cofferdam::registry::PluginFetcher;
use cofferdam::{consent, install};
use cofferdam_engine::Engine;
use cofferdam_tool::PluginName;
use serde_json::{Value, json};

use super::add::{Candidate, confirm, fetcher, named_config, signer};
use super::fetch::fetched_plugins;
use super::{approve, replay};
use crate::args::{Global, UpdateArgs};
use crate::exit::{self, Exit};
use crate::{host, print};

pub(crate) async fn run(global: &Global, args: &UpdateArgs) -> anyhow::Result<Exit> {
    let config = named_config("update", args.config.as_deref())?;
    let file = ConfigFile::read_ambient(config)?;
    // A check accepts nothing, so there is nothing to refuse.
    let allows_unsigned = args.allow_unsigned || args.check;
    let mut fetcher = fetcher(Some(&file), allows_unsigned, args.from.as_deref())?;
    if args.check {
        return check(&file, &fetcher, &args.plugins, args.json).await;
    }
    fetcher.refresh_advisories().await?;
    let engine = host::engine(global)?;
    let mut exit = Exit::Ok;
    for (name, plugin) in fetched_plugins(&file, &args.plugins)? {
        let pins = Pins::of_config_ambient(config)?;
        let fetched = match fetcher.fetch(plugin.component.get_ref()).await {
            Ok(fetched) => fetched,
            // It must not hide the updates of other plugins.
            Err(error) => {
                exit = not_checked(name, error);
                continue;
            }
        };
        if pins.origin(name) == Some(&fetched.origin) {
            print::note(&format!("`{name}` is unchanged"));
            continue;
        }
        let must_ask = fetcher.must_ask(fetched.origin.signer.as_ref());
        let candidate =
            Candidate::of_fetched(&engine, fetched, PluginName::new(name.as_str())?).await?;
        show(global, &engine, &file, &pins, &candidate, args.full).await?;
        confirm(&format!("Update `{name}`?"), args.yes, must_ask)?;
        if let Some(origin) = candidate.origin {
            install::update(config, &candidate.plugin, origin)?;
        }
        print::note(&format!("`{name}` is updated; written to {}", pins.path().display()));
    }
    Ok(exit)
}

/// Notes why a plugin cannot be compared with its source. Returns the exit code.
fn not_checked(name: &str, error: cofferdam::Error) -> Exit {
    print::note(&format!("error: `{name}` cannot be compared with its source: {error:#}"));
    exit::of(&error.into())
}

/// Lists the plugins of a configuration that have changed at their source. Accepts nothing.
pub(super) async fn outdated(config: Option<&Path>, is_json: bool) -> anyhow::Result<Exit> {
    let file = ConfigFile::read_ambient(named_config("list --outdated", config)?)?;
    // Nothing is accepted, so there is nothing to refuse.
    check(&file, &fetcher(Some(&file), true, None)?, &[], is_json).await
}

async fn check(
    file: &ConfigFile,
    fetcher: &PluginFetcher,
    named: &[String],
    is_json: bool,
) -> anyhow::Result<Exit> {
    let pins = Pins::of_config_ambient(&file.path)?;
    let (mut changes, mut failures, mut exit) = (Vec::new(), Vec::new(), Exit::Ok);
    for (name, plugin) in fetched_plugins(file, named)? {
        let after = match fetcher.resolve(plugin.component.get_ref()).await {
            Ok(after) => after,
            Err(error) => {
                failures.push(json!({"plugin": name, "error": format!("{error:#}")}));
                exit = not_checked(name, error);
                continue;
            }
        };
        let before = pins.origin(name).cloned();
        if before.as_ref() != Some(&after) {
            changes.push(PluginChange { plugin: name, before, after });
        }
    }
    if is_json {
        let changes = changes.iter().map(PluginChange::json);
        print::result(&changes.chain(failures).collect::<Value>().to_string())?;
    } else {
        changes.iter().try_for_each(|change| print::result(&change.line()))?;
    }
    if changes.is_empty() {
        return Ok(exit);
    }
    print::note("plugins have changed at their source; `cofferdam update` shows how");
    Ok(Exit::Plugin)
}

/// Plugin that has changed at its source.
struct PluginChange<'a> {
    plugin: &'a str,
    before: Option<Origin>,
    after: Origin,
}

impl PluginChange<'_> {
    fn line(&self) -> String {
        let digest = |origin: &Origin| origin.manifest.unwrap_or(origin.layer).to_string();
        let after = digest(&self.after);
        let Some(before) = &self.before else {
            return format!("{}  not locked -> {after}", self.plugin);
        };
        if before.signer != self.after.signer {
            let (old, new) = (signer(before), signer(&self.after));
            return format!(
                "{}  {} -> {after}, signed by {old} -> {new}",
                self.plugin,
                digest(before)
            );
        }
        format!("{}  {} -> {after}", self.plugin, digest(before))
    }

    fn json(&self) -> Value {
        json!({"plugin": self.plugin, "before": self.before, "after": self.after})
    }
}

/// Shows how version and signer have changed.
fn show_origins(name: &str, before: Option<&Origin>, after: Option<&Origin>) {
    let (Some(before), Some(after)) = (before, after) else { return };
    if before.version != after.version {
        let shown = |origin: &Origin| origin.version.clone().unwrap_or_else(|| "none".to_owned());
        print::note(&format!("`{name}`: version {} -> {}", shown(before), shown(after)));
    }
    if before.signer != after.signer {
        let (before, after) = (signer(before), signer(after));
        print::note(&format!("warning: the signer of `{name}` has changed: {before} -> {after}"));
    }
}

/// Shows how a plugin differs from its accepted state, and what it does differently with recorded
/// calls.
async fn show(
    global: &Global,
    engine: &Engine,
    file: &ConfigFile,
    pins: &Pins,
    candidate: &Candidate,
    is_full: bool,
) -> anyhow::Result<()> {
    let info = candidate.plugin.info();
    let name = info.identity.name.as_str();
    show_origins(name, pins.origin(name), candidate.origin.as_ref());
    let difference = match pins.compare(&candidate.plugin) {
        PinComparison::New => return print::report(&candidate.report()),
        PinComparison::Same => {
            let manifest = |origin: Option<&Origin>| origin.and_then(|origin| origin.manifest);
            let is_same = manifest(pins.origin(name)) == manifest(candidate.origin.as_ref());
            let found = if is_same { "the same" } else { "another" };
            print::note(&format!("`{name}` has {found} manifest and the same component"));
            return Ok(());
        }
        PinComparison::Changed(difference) => difference,
    };
    let mut difference = *difference;
    if let Some(origin) = pins.origin(name) {
        let before = artifacts::imports_ambient(engine, &info.identity.name, origin).await?;
        difference = match before {
            Some(before) => difference.with_imports(&before, &info.imports),
            None => difference,
        };
    }
    print::note(&format!("`{name}` has changed:"));
    approve::show(&difference, is_full)?;
    for permission in difference.gained() {
        if let Some(command) = consent::how_to_grant(name, permission, Some(&file.path)) {
            print::note(&format!("  {command}"));
        }
    }
    match replay::of_changed_plugin(global, file, name, &candidate.path).await {
        Ok(Some(summary)) => print::result(&summary),
        Ok(None) => Ok(()),
        // The difference above is what is to be accepted.
        Err(error) => {
            print::note(&format!("note: recorded calls were not replayed: {error:#}"));
            Ok(())
        }
    }
}
