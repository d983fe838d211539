//! Permissions of plugins for the pages of an inspector.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_engine::Plugin;
use cofferdam_inspector::{GrantSource, PermissionGrant, PluginGrants};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::grant_command;
use crate::artifacts::Locator;
use crate::columns::Row;
use crate::config::ConfigFile;
use crate::file_version::FileVersion;
use crate::granting::Values;
use crate::pins::Pins;
use crate::{EngineOptions, Operator, Result, columns, compose, flags, loading};

/// Versions of files, by path.
type FileVersions = Vec<(PathBuf, Option<FileVersion>)>;

/// Permissions, or `None` while they are loaded.
type LoadedGrants = Option<Result<Vec<PluginGrants>, String>>;

/// Permissions of the plugins of a configuration, for the files from which they were loaded.
struct ConfigGrants {
    options: EngineOptions,
    config: PathBuf,
    runtime: Handle,
    loaded: Mutex<(FileVersions, LoadedGrants)>,
}

/// Returns the permissions of the plugins of a configuration. Each plugin is loaded for it in the
/// background, now and after a change of its files, without the values that its grants name, and no
/// question is asked.
///
/// # Panics
/// Outside of a tokio runtime.
#[must_use]
pub fn grants_of_config(options: EngineOptions, config: &Path) -> GrantSource {
    let (config, runtime) = (config.to_owned(), Handle::current());
    let grants = Arc::new(ConfigGrants { options, config, runtime, loaded: Mutex::default() });
    // The first page has them sooner.
    let _ = grants.current();
    Arc::new(move || grants.current().transpose())
}

impl ConfigGrants {
    /// Returns the permissions, and starts to load them if files have changed.
    fn current(self: &Arc<Self>) -> LoadedGrants {
        let versions = self.versions();
        let mut loaded = self.loaded.lock();
        if loaded.0 != versions {
            *loaded = (versions.clone(), None);
            self.runtime.spawn(Arc::clone(self).load(versions));
        }
        loaded.1.clone()
    }

    /// Loads the plugins. The result counts if no file has changed meanwhile.
    async fn load(self: Arc<Self>, versions: FileVersions) {
        let loader = Arc::clone(&self);
        let loading = tokio::task::spawn_blocking(move || {
            loader.runtime.block_on(of_file(loader.options.clone(), &loader.config))
        });
        let grants = match loading.await {
            Ok(grants) => grants.map_err(|error| format!("{error:#}")),
            Err(_) => Err("loading the plugins ended with a bug".to_owned()),
        };
        let mut loaded = self.loaded.lock();
        if loaded.0 == versions {
            loaded.1 = Some(grants);
        }
    }

    /// Returns the versions of the configuration, its lock file, components and manifests.
    fn versions(&self) -> FileVersions {
        let mut paths = vec![self.config.clone(), Pins::path_of(&self.config)];
        if let Ok(file) = ConfigFile::read_ambient(&self.config)
            && let Ok(locator) = Locator::new(&file)
        {
            for (name, plugin) in &file.config.plugins {
                let component = locator.locate(name, plugin.component.get_ref()).path;
                paths.extend([component.with_extension("toml"), component]);
            }
        }
        let version = |path: PathBuf| {
            let version = FileVersion::of(&path);
            (path, version)
        };
        paths.into_iter().map(version).collect()
    }
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
