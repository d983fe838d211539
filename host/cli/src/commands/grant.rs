//! `cofferdam grant` and `cofferdam revoke`: edit the grants in a configuration.

use std::path::{Path, PathBuf};

use cofferdam_tool::Permission;

use crate::args::{Global, GrantArgs, RevokeArgs};
use crate::exit::{ConsentError, Exit, UsageError};
use crate::{ask, host, print};
use cofferdam::config::ConfigFile;
use cofferdam::config::edit::{ConfigEditor, NewGrant};
use cofferdam::folder_lock::FolderLock;
use cofferdam::granting::Values;
use cofferdam::{columns, compose, consent, loading, remembered};

pub(crate) async fn grant(global: &Global, args: GrantArgs) -> anyhow::Result<Exit> {
    if args.list {
        return list();
    }
    let (plugin, config) = named(args.plugin, args.config)?;
    let mut wanted: Vec<Permission> = parse(&args.permissions)?;
    if args.all_asked {
        let missing = missing(global, &config, &plugin).await?;
        for permission in &missing {
            print::note(&format!("`{}` asks to {}", plugin, permission.in_plain_words()));
        }
        let is_agreed = missing.is_empty()
            || args.yes
            || (ask::is_possible() && ask::confirm("Grant all of this?"));
        if !is_agreed {
            return Err(ConsentError(format!(
                "nothing was granted{}; pass --yes to grant it without a question",
                ask::why_unanswered()
            ))
            .into());
        }
        wanted.extend(missing);
    }
    if wanted.is_empty() {
        print::note(&format!("`{}` is offered everything that it asks for", plugin));
        return Ok(Exit::Ok);
    }
    // Paths in the configuration are relative to its directory; this one is relative to the working
    // directory.
    let directory = args.directory.as_deref().map(std::path::absolute).transpose()?;
    let grants = wanted.iter().map(|permission| NewGrant {
        permission: permission.clone(),
        directory: directory.clone(),
        value: args.value.clone(),
    });
    let grants: Vec<_> = grants.collect();
    // Fails before saving if the grant names a missing store or secret, which would make the
    // configuration invalid, or if the plugin cannot be loaded. Compiling takes long, and other
    // processes wait for the lock meanwhile.
    let expected = edit(&config, &plugin, &grants)?.0.config()?;
    let mut loaded = load_from(global, &expected, &plugin).await?;
    let lock = FolderLock::take(&config)?;
    let (file, notes) = edit(&config, &plugin, &grants)?;
    let edited = file.config()?;
    if edited.text != expected.text {
        loaded = load_from(global, &edited, &plugin).await?;
    }
    file.save()?;
    drop(lock);
    for note in notes {
        print::note(&note);
    }
    for permission in wanted.iter().filter(|wanted| !loaded.requested().asks_for(wanted)) {
        print::note(&format!(
            "warning: `{plugin}` cannot use {permission}, because its manifest does not ask for it"
        ));
    }
    show(&loaded)
}

/// Opens a configuration and grants all of this in it. Returns a note about each grant too.
fn edit(
    config: &Path,
    plugin: &str,
    grants: &[NewGrant],
) -> anyhow::Result<(ConfigEditor, Vec<String>)> {
    let mut file = ConfigEditor::open_ambient(config)?;
    let mut notes = Vec::new();
    for grant in grants {
        let verb = if file.grant(plugin, grant)? { "may now" } else { "may already" };
        notes.push(format!("`{plugin}` {verb} {}", grant.permission.in_plain_words()));
    }
    Ok((file, notes))
}

pub(crate) async fn revoke(global: &Global, args: RevokeArgs) -> anyhow::Result<Exit> {
    if let Some(named) = &args.remembered {
        return forget(named);
    }
    let (plugin, config) = named(args.plugin, args.config)?;
    let lock = FolderLock::take(&config)?;
    let mut file = ConfigEditor::open_ambient(&config)?;
    let mut notes = Vec::new();
    if args.all {
        file.revoke_all(&plugin)?;
        notes.push(format!("`{plugin}` is no longer offered anything"));
    }
    for permission in parse(&args.permissions)? {
        if !file.revoke(&plugin, &permission)? {
            let name = &plugin;
            return Err(UsageError(format!(
                "[plugins.{name}.grants] has no `{permission}`; `cofferdam list --grants --config {}` \
                 shows what it has",
                consent::shell_path(&config)
            ))
            .into());
        }
        notes.push(format!("`{plugin}` may no longer {}", permission.in_plain_words()));
    }
    file.save()?;
    drop(lock);
    for note in notes {
        print::note(&note);
    }
    match load(global, &config, &plugin).await {
        Ok(loaded) => show(&loaded),
        Err(error) => {
            print::note(&format!("the grants that are left cannot be shown: {error:#}"));
            Ok(Exit::Ok)
        }
    }
}

/// Returns the plugin and the configuration of an edit, which the command line has to name.
fn named(plugin: Option<String>, config: Option<PathBuf>) -> anyhow::Result<(String, PathBuf)> {
    let named = plugin.zip(config);
    named.ok_or_else(|| {
        let message = "name a plugin and its configuration: cofferdam grant PLUGIN … --config FILE";
        UsageError(message.to_owned()).into()
    })
}

/// Prints the permanent grants of `--plugin` components.
fn list() -> anyhow::Result<Exit> {
    let text = remembered::list()?;
    match text.trim_end() {
        "" => print::note("no --plugin component has permanent grants"),
        text => print::result(text)?,
    }
    Ok(Exit::Ok)
}

/// Deletes the permanent grants of a `--plugin` component.
fn forget(named: &str) -> anyhow::Result<Exit> {
    let (digest, component) = remembered::forget(named)?;
    print::note(&format!("forgotten for {digest}:\n{}", component.text().trim_end()));
    Ok(Exit::Ok)
}

fn parse(texts: &[String]) -> anyhow::Result<Vec<Permission>> {
    let parse = |text: &String| {
        text.parse().map_err(|error: cofferdam_tool::permission::InvalidPermission| {
            UsageError(error.to_string()).into()
        })
    };
    texts.iter().map(parse).collect()
}

async fn missing(global: &Global, config: &Path, plugin: &str) -> anyhow::Result<Vec<Permission>> {
    let plugin = load(global, config, plugin).await?;
    Ok(plugin.granted().missing.iter().map(|missing| missing.permission.clone()).collect())
}

/// Prints the current permissions of the plugin: asked for, offered and granted.
fn show(plugin: &cofferdam_engine::Plugin) -> anyhow::Result<Exit> {
    print::result(&columns::text(&columns::rows(plugin)))?;
    Ok(Exit::Ok)
}

/// Loads one plugin of a configuration without its values, to inspect it.
pub(crate) async fn load(
    global: &Global,
    config: &Path,
    name: &str,
) -> anyhow::Result<cofferdam_engine::Plugin> {
    load_from(global, &ConfigFile::read_ambient(config)?, name).await
}

async fn load_from(
    global: &Global,
    file: &ConfigFile,
    name: &str,
) -> anyhow::Result<cofferdam_engine::Plugin> {
    // Without the values of the grants.
    let spec = compose::spec_of_config(file, name, Values::Leave)?;
    let engine = host::engine(global)?;
    Ok(loading::load_spec(&engine, &spec, &host::operator()).await?)
}
