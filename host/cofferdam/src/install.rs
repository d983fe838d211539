//! Adds plugins to a configuration and removes them.
//!
//! Both files change under one lock. The lock file is written first, and an entry that no
//! configuration uses has no effect: a process that is killed in between leaves everything as it
//! was.

use std::path::{Path, PathBuf};

use cofferdam_engine::Plugin;

use crate::artifacts::{self, Origin};
use crate::config::ComponentLocation;
use crate::config::edit::ConfigEditor;
use crate::error::Context as _;
use crate::folder_lock::FolderLock;
use crate::pins::Pins;
use crate::{Error, Result, code_mode, trust};

/// Plugin that is added to a configuration.
pub struct NewPlugin<'a> {
    /// Location as the configuration names it. A file is relative to the working directory.
    pub location: &'a ComponentLocation,
    /// The plugin, loaded without grants.
    pub plugin: &'a Plugin,
    /// Origin of a plugin that was fetched.
    pub origin: Option<Origin>,
}

/// Adds plugins without grants to a configuration, and their current state to the lock file: all or
/// none. Creates a configuration that does not exist, and trusts it.
///
/// # Errors
/// Returns an error if the configuration has a plugin of that name, or cannot be written.
pub fn add(config: &Path, plugins: Vec<NewPlugin<'_>>) -> Result<()> {
    let lock = FolderLock::take(config)?;
    let exists = config.exists();
    let mut file = match exists {
        true => ConfigEditor::open_ambient(config)?,
        false => ConfigEditor::create_ambient(config)?,
    };
    let mut pins = Pins::of_config_ambient(config)?;
    for NewPlugin { location, plugin, origin } in plugins {
        let component = match location {
            ComponentLocation::File(path) => beside(config, path)?,
            fetched => fetched.to_string(),
        };
        file.add_plugin(plugin.identity().name.as_str(), &component)?;
        match origin {
            Some(origin) => {
                artifacts::register(config)?;
                pins.accept_fetched(plugin, origin);
            }
            None => pins.accept(plugin),
        }
    }
    // Fails before anything is written if the result would be invalid.
    let written = file.config()?;
    pins.save_locked(&lock)?;
    file.save()?;
    if !exists {
        trust::trust_ambient(&written)?;
    }
    Ok(())
}

/// Replaces the state of a plugin in the lock file. Does not change the configuration.
///
/// # Errors
/// Returns an error if the lock file cannot be written.
pub fn update(config: &Path, plugin: &Plugin, origin: Origin) -> Result<()> {
    artifacts::register(config)?;
    let mut pins = Pins::of_config_ambient(config)?;
    pins.accept_fetched(plugin, origin);
    pins.save()
}

/// Writes the origin of the interpreter of code mode to the lock file. `interpreter` is the
/// component, loaded without grants.
///
/// # Errors
/// Returns an error if the component is no interpreter, or the lock file cannot be written.
pub fn accept_interpreter(config: &Path, interpreter: &Plugin, origin: Origin) -> Result<()> {
    code_mode::check_interpreter(interpreter)?;
    artifacts::register(config)?;
    let mut pins = Pins::of_config_ambient(config)?;
    pins.accept_interpreter(origin);
    pins.save()
}

/// Removes a plugin from a configuration and from the lock file.
///
/// # Errors
/// Returns an error if the configuration has no such plugin, or cannot be written.
pub fn remove(config: &Path, name: &str) -> Result<()> {
    let lock = FolderLock::take(config)?;
    let mut file = ConfigEditor::open_ambient(config)?;
    file.remove_plugin(name)?;
    file.save()?;
    let mut pins = Pins::of_config_ambient(config)?;
    pins.remove(name);
    pins.save_locked(&lock)
}

/// Returns a path relative to the folder of the configuration if the file is in that folder, or
/// else the absolute path.
fn beside(config: &Path, path: &Path) -> Result<String> {
    let absolute = |path: &Path| -> Result<PathBuf> {
        path.canonicalize().with_context(|| format!("{} cannot be resolved", path.display()))
    };
    let folder = config.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = absolute(folder.unwrap_or(Path::new(".")))?;
    let path = absolute(path)?;
    let path = path.strip_prefix(&folder).unwrap_or(&path);
    let string = path.to_str().map(str::to_owned);
    string.ok_or_else(|| Error::invalid(format!("{} is not UTF-8", path.display())))
}
