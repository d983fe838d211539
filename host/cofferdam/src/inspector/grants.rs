//! Permissions of plugins for the pages of an inspector.

use std::path::Path;
use std::sync::Arc;

use cofferdam_engine::Plugin;
use cofferdam_inspector::{GrantSource, PermissionGrant, PluginGrants};
use tokio::runtime::Handle;

use super::grant_command;
use crate::columns::Row;
use crate::config::ConfigFile;
use crate::granting::Values;
use crate::{EngineOptions, Operator, Result, columns, compose, flags, loading};

/// Returns the permissions of the plugins of a configuration. Each plugin is loaded for it, without
/// the values that its grants name, and no question is asked.
///
/// # Panics
/// Outside of a tokio runtime.
#[must_use]
pub fn grants_of_config(options: EngineOptions, config: &Path) -> GrantSource {
    let (config, runtime) = (config.to_owned(), Handle::current());
    Arc::new(move || {
        let loading = of_file(options.clone(), &config);
        runtime.block_on(loading).map_err(|error| format!("{error:#}"))
    })
}

async fn of_file(options: EngineOptions, config: &Path) -> Result<Vec<PluginGrants>> {
    let file = ConfigFile::read_ambient(config)?;
    let (engine, operator) = (options.start()?, Operator::default());
    let mut all = Vec::new();
    for name in file.config.plugins.keys() {
        let loaded = match compose::spec_of_config(&file, name, Values::Leave) {
            Ok(spec) => loading::load_spec(&engine, &spec, &operator).await,
            Err(error) => Err(error),
        };
        all.push(match loaded {
            Ok(plugin) => grants_of_plugin(&plugin, Some(config)),
            Err(error) => {
                let problem = Some(format!("{error:#}"));
                PluginGrants { plugin: name.clone(), problem, ..PluginGrants::default() }
            }
        });
    }
    Ok(all)
}

/// Returns the permissions of a loaded plugin, with the commands that change them.
pub(crate) fn grants_of_plugin(plugin: &Plugin, config: Option<&Path>) -> PluginGrants {
    let name = plugin.identity().name.to_string();
    let rows = columns::rows(plugin).into_iter();
    let permissions = rows.map(|row| permission(&name, row, config)).collect();
    PluginGrants { plugin: name, permissions, problem: None }
}

fn permission(plugin: &str, row: Row, config: Option<&Path>) -> PermissionGrant {
    let missing = row.permission.as_ref().filter(|_| row.is_missing());
    let grant_command =
        missing.and_then(|permission| grant_command(plugin, &permission.to_string(), config));
    let revoke = |permission: &cofferdam_tool::Permission| {
        let permission = flags::word(&permission.to_string());
        let config = flags::word(&config?.display().to_string());
        Some(format!("cofferdam revoke {plugin} {permission} --config {config}"))
    };
    let revoke_commands = row.revocable.iter().filter_map(revoke).collect();
    let Row { what, asked, offered, granted, permission, .. } = row;
    PermissionGrant {
        subject: what,
        asked,
        offered,
        granted,
        permission,
        grant_command,
        revoke_commands,
    }
}
