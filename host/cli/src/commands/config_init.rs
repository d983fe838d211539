//! `cofferdam config init`: writes a starter configuration.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use cofferdam::PluginFile;
use cofferdam::consent;
use cofferdam::starter::{self, StarterPlugin};
use cofferdam_engine::Engine;
use cofferdam_tool::PluginName;

use crate::args::{ConfigInitArgs, Global};
use crate::exit::{Exit, UsageError};
use crate::{host, print};

pub(crate) async fn run(global: &Global, args: &ConfigInitArgs) -> anyhow::Result<Exit> {
    let engine = host::engine(global)?;
    let mut plugins: Vec<StarterPlugin> = Vec::new();
    for typed in &args.plugins {
        let plugin = starter_plugin(&engine, typed, &args.file).await?;
        if plugins.iter().any(|other| other.name == plugin.name) {
            let name = &plugin.name;
            return Err(UsageError(format!(
                "two plugins are called `{name}`; write --plugin NAME=PATH for one of them"
            ))
            .into());
        }
        plugins.push(plugin);
    }
    let file = args.file.display();
    let mut created = std::fs::File::create_new(&args.file).map_err(|error| {
        UsageError(match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                format!("{file} exists; edit it, or name another file")
            }
            _ => format!("{file} cannot be created: {error}"),
        })
    })?;
    let written = created.write_all(starter::text(&file.to_string(), &plugins).as_bytes());
    written.with_context(|| format!("{file} cannot be written"))?;
    let config = consent::shell_path(&args.file);
    print::note(&format!("{file} is created; `cofferdam list --config {config}` shows its tools"));
    Ok(Exit::Ok)
}

/// Loads a plugin without grants, to read what it asks for.
async fn starter_plugin(
    engine: &Engine,
    typed: &str,
    config: &Path,
) -> anyhow::Result<StarterPlugin> {
    let plugin = PluginFile::parse(typed);
    let usage = |error: &dyn std::fmt::Display| UsageError(error.to_string());
    let name = match plugin.name {
        Some(name) => PluginName::new(&*name).map_err(|error| usage(&error))?,
        None => cofferdam::plugin_name(&plugin.component).map_err(|error| usage(&error))?,
    };
    let path = plugin.component;
    let loaded = host::load_without_grants(engine, name.clone(), path.clone()).await?;
    // Paths of a configuration are relative to it.
    let is_beside = config.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    let component = if is_beside { path } else { std::path::absolute(path)? };
    let missing = &loaded.granted().missing;
    let requested = missing.iter().map(|missing| missing.permission.clone()).collect();
    Ok(StarterPlugin { name, component, requested })
}
