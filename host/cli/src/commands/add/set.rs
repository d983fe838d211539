//! `cofferdam add` of a set of plugins.

use std::path::Path;

use cofferdam::config::{ComponentLocation, ConfigFile};
use cofferdam::consent;
use cofferdam::install::{self, NewPlugin};
use cofferdam::pins::Pins;
use cofferdam::registry::{FetchedSet, PluginFetcher, SetMember};
use cofferdam_engine::Engine;
use cofferdam_tool::PluginName;
use serde_json::{Value, json};

use super::{Candidate, confirm};
use crate::args::AddArgs;
use crate::exit::{Exit, UsageError};
use crate::print;

/// Configuration that a set is added to.
#[derive(Clone, Copy)]
pub(super) struct SetTarget<'a> {
    pub(super) args: &'a AddArgs,
    pub(super) config: &'a Path,
    /// The configuration, if it exists.
    pub(super) file: Option<&'a ConfigFile>,
}

/// Shows the plugins of a set and adds them together.
pub(super) async fn add(
    engine: &Engine,
    fetcher: &PluginFetcher,
    set: &FetchedSet,
    target: SetTarget<'_>,
) -> anyhow::Result<Exit> {
    let SetTarget { args, config, .. } = target;
    if args.name.is_some() {
        let message = "--name is for one plugin; those of a set have the names that it gives them";
        return Err(UsageError(message.to_owned()).into());
    }
    let mut candidates = Vec::new();
    for (name, member) in &set.plugins {
        if target.contains(name, member)? {
            print::note(&format!("`{name}` is in {} already", config.display()));
            continue;
        }
        let location: ComponentLocation = member.source.parse()?;
        let fetched = fetcher.fetch_member(set, member).await?;
        let candidate = Candidate::of_fetched(engine, fetched, name.clone()).await?;
        candidates.push((location, candidate, member));
    }
    if candidates.is_empty() {
        return Ok(Exit::Ok);
    }
    if !args.json {
        show(args, set, &candidates)?;
    }
    let count = print::counted(candidates.len(), "plugin");
    let shown = config.display();
    let must_ask = fetcher.must_ask(set.signer.as_ref());
    confirm(&format!("Add {count} to {shown}, without permissions?"), args.yes, must_ask)?;
    let added = candidates.iter().map(|(location, candidate, _)| {
        let (plugin, origin) = (&candidate.plugin, candidate.origin.clone());
        NewPlugin { location, plugin, origin }
    });
    install::add(config, added.collect())?;
    if args.json {
        print::result(&json(args, set, &candidates).to_string())?;
    }
    print::note(&format!("{count} added to {shown}"));
    for (_, candidate, member) in &candidates {
        note_grants(&candidate.plugin.identity().name, member, config);
    }
    Ok(Exit::Ok)
}

fn json(
    args: &AddArgs,
    set: &FetchedSet,
    candidates: &[(ComponentLocation, Candidate, &SetMember)],
) -> Value {
    let plugins: Vec<_> = candidates.iter().map(|(_, it, _)| it.json()).collect();
    json!({
        "set": args.location.to_string(),
        "manifest": set.manifest,
        "signer": set.signer,
        "plugins": plugins,
    })
}

fn show(
    args: &AddArgs,
    set: &FetchedSet,
    candidates: &[(ComponentLocation, Candidate, &SetMember)],
) -> anyhow::Result<()> {
    let signer = set.signer.as_ref();
    let signer = signer.map_or_else(|| "none that a rule requires".to_owned(), ToString::to_string);
    let (location, manifest) = (&args.location, set.manifest);
    print::report(&format!("set        {location}\nmanifest   {manifest}\nsigner     {signer}"))?;
    candidates.iter().try_for_each(|(_, it, _)| print::report(&format!("\n{}", it.report())))
}

/// Says how to grant what the author of the set granted.
fn note_grants(name: &PluginName, member: &SetMember, config: &Path) {
    let how = |permission: &String| consent::how_to_grant(name.as_str(), permission, Some(config));
    let commands: Vec<_> = member.grants.iter().filter_map(how).collect();
    if !commands.is_empty() {
        print::note(&format!("the author of the set has granted this to `{name}`:"));
        commands.iter().for_each(|command| print::note(&format!("  {command}")));
    }
}

impl SetTarget<'_> {
    /// Returns whether the configuration has this plugin of a set.
    fn contains(&self, name: &PluginName, member: &SetMember) -> anyhow::Result<bool> {
        let plugin = self.file.and_then(|file| file.config.plugins.get(name.as_str()));
        let Some(plugin) = plugin else { return Ok(false) };
        let pins = Pins::of_config_ambient(self.config)?;
        let origin = pins.origin_at(name.as_str(), plugin.component.get_ref());
        let is_same = |source: &str, layer| source == member.source && layer == member.layer;
        if origin.is_some_and(|origin| is_same(&origin.source, origin.layer)) {
            return Ok(true);
        }
        let config = self.config.display();
        Err(UsageError(format!(
            "{config} has another plugin `{name}` than the set; remove it first: cofferdam remove \
             {name} --config {config}"
        ))
        .into())
    }
}
