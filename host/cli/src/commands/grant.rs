//! `cofferdam grant` and `cofferdam revoke`: edits of the policy.

use std::path::Path;

use cofferdam_tool::Permission;

use crate::args::{Global, GrantArgs, RevokeArgs};
use crate::compose::PluginSpec;
use crate::config::ConfigFile;
use crate::exit::{ConsentError, Exit, UsageError};
use crate::offer::Values;
use crate::policy_file::{NewGrant, PolicyFile};
use crate::stores::Stores;
use crate::{ask, columns, compose, loading, print};

pub(crate) async fn grant(global: &Global, args: GrantArgs) -> anyhow::Result<Exit> {
    let mut wanted: Vec<Permission> = parse(&args.permissions)?;
    if args.all_asked {
        let missing = missing(global, &args.config, &args.plugin).await?;
        for permission in &missing {
            print::note(&format!("`{}` asks to {}", args.plugin, permission.in_plain_words()));
        }
        let is_agreed =
            missing.is_empty() || args.yes || (ask::is_possible() && ask::yes("Grant all of this?"));
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
        print::note(&format!("`{}` is offered everything that it asks for", args.plugin));
        return Ok(Exit::Ok);
    }
    let mut file = PolicyFile::open_ambient(&args.config)?;
    // Paths in the file are relative to the file, and the one that was typed is not.
    let directory = args.directory.as_deref().map(std::path::absolute).transpose()?;
    let mut notes = Vec::new();
    for permission in wanted {
        let grant = NewGrant { permission, directory: directory.clone(), value: args.value.clone() };
        let verb = if file.grant(&args.plugin, &grant)? { "may now" } else { "may already" };
        notes.push(format!("`{}` {verb} {}", args.plugin, grant.permission.in_plain_words()));
    }
    // A store or a secret that is not there would be an error of the file from now on.
    spec(&file.config()?, &args.plugin)?;
    file.save()?;
    for note in notes {
        print::note(&note);
    }
    show(global, &args.config, &args.plugin).await
}

pub(crate) async fn revoke(global: &Global, args: RevokeArgs) -> anyhow::Result<Exit> {
    let mut file = PolicyFile::open_ambient(&args.config)?;
    if args.all {
        file.revoke_all(&args.plugin)?;
        print::note(&format!("`{}` is offered nothing any more", args.plugin));
    }
    for permission in parse(&args.permissions)? {
        if !file.revoke(&args.plugin, &permission)? {
            let name = &args.plugin;
            return Err(UsageError(format!(
                "[plugins.{name}.grants] has no `{permission}`; what [grants] gives to every plugin is taken away there, or \
                 with `default-grants = false`"
            ))
            .into());
        }
        print::note(&format!("`{}` may no longer {}", args.plugin, permission.in_plain_words()));
    }
    file.save()?;
    show(global, &args.config, &args.plugin).await
}

fn parse(texts: &[String]) -> anyhow::Result<Vec<Permission>> {
    let parse = |text: &String| {
        text.parse().map_err(|error: cofferdam_tool::InvalidPermission| UsageError(error.to_string()).into())
    };
    texts.iter().map(parse).collect()
}

async fn missing(global: &Global, config: &Path, plugin: &str) -> anyhow::Result<Vec<Permission>> {
    let plugin = load(global, config, plugin).await?;
    Ok(plugin.granted().missing.iter().map(|missing| missing.permission.clone()).collect())
}

/// The three columns, as they are now.
async fn show(global: &Global, config: &Path, plugin: &str) -> anyhow::Result<Exit> {
    let plugin = load(global, config, plugin).await?;
    print::result(&columns::text(&columns::rows(&plugin)))?;
    Ok(Exit::Ok)
}

/// One plugin of a configuration, for looking at it.
pub(crate) async fn load(
    global: &Global,
    config: &Path,
    name: &str,
) -> anyhow::Result<cofferdam_engine::Plugin> {
    let spec = spec(&ConfigFile::read_ambient(config)?, name)?;
    let engine = compose::engine(global)?;
    loading::load_one(&engine, spec.path, spec.options).await
}

/// What a configuration says of one plugin, without the values behind names.
fn spec(file: &ConfigFile, name: &str) -> anyhow::Result<PluginSpec> {
    let Some(plugin) = file.config.plugins.get(name) else {
        return Err(UsageError(format!("{} has no plugin `{name}`", file.path.display())).into());
    };
    compose::spec_of_config(file, name, plugin, &Stores::new(file, Values::Leave), Values::Leave)
}
