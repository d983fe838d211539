//! Copies of plugins for machines without a network.
//!
//! A copy is an image layout of OCI, which other programs read as well, with the signatures of the
//! plugins. The lock file says which components belong to a configuration and who has signed them,
//! so a copy need not be trusted.

use std::path::Path;
use std::str::FromStr as _;

use cofferdam_registry::{ArtifactStore, Digest, ImageLayout};

use crate::artifacts::{self, Origin};
use crate::config::edit::replace_file;
use crate::config::{ComponentLocation, ConfigFile, PluginConfig};
use crate::error::Context as _;
use crate::pins::Pins;
use crate::registry::{self, PluginFetcher};
use crate::{Error, Operator, Result};

/// File in a copy with the root that the identities of its signatures are verified with.
const ROOT_FILE: &str = "trusted_root.json";
/// Name of the interpreter of code mode among the plugins.
const INTERPRETER: &str = "[code] interpreter";

/// Copies the locked plugins of a configuration into an image layout at `directory`, which is
/// created if it does not exist. Returns their names.
///
/// # Errors
/// Returns an error if a plugin is not in the lock file or not on this machine, or the layout
/// cannot be written.
pub fn export_ambient(config: &ConfigFile, directory: &Path) -> Result<Vec<String>> {
    if directory.exists() && !directory.is_dir() {
        return Err(Error::invalid(format!("{} is not a directory", directory.display())));
    }
    let store = artifacts::store()?;
    let origins = origins(config)?;
    let failed = || format!("{} cannot be written", directory.display());
    let mut layout = ImageLayout::create_ambient(directory).with_context(failed)?;
    for (name, origin) in &origins {
        let absent = || {
            Error::NotAccepted(format!(
                "`{name}` is not on this machine; run `cofferdam fetch --config {}`",
                config.path.display()
            ))
        };
        if !store.contains(origin.layer, origin.size) {
            return Err(absent());
        }
        match origin.manifest {
            Some(manifest) if read(&store, manifest, u64::MAX)?.is_none() => return Err(absent()),
            Some(manifest) => layout.add(&store, manifest, &origin.source).with_context(failed)?,
            None => {
                let component = read(&store, origin.layer, origin.size)?.ok_or_else(absent)?;
                layout.blobs().insert(&component).with_context(failed)?;
            }
        }
    }
    layout.write().with_context(failed)?;
    replace_file(&directory.join(ROOT_FILE), &registry::root_json(config)?).with_context(failed)?;
    Ok(origins.into_iter().map(|(name, _)| name).collect())
}

/// Copies the locked plugins of a configuration from an image layout to this machine. Returns their
/// names.
///
/// # Errors
/// Returns an error if a plugin is not in the lock file, or the layout does not contain it
/// unchanged.
pub async fn import_ambient(
    config: &ConfigFile,
    directory: &Path,
    operator: &Operator,
) -> Result<Vec<String>> {
    if !directory.is_dir() {
        return Err(Error::invalid(format!("there is no directory {}", directory.display())));
    }
    let fetcher = PluginFetcher::new_ambient(Some(config), operator)?;
    let fetcher = fetcher.from_copy_ambient(directory)?;
    let mut names = Vec::new();
    for (name, origin) in origins(config)? {
        let location = ComponentLocation::from_str(&origin.source);
        let location = location.with_context(|| format!("`{name}` cannot be imported"))?;
        fetcher.fetch_locked(&location, &origin).await?;
        names.push(name);
    }
    Ok(names)
}

/// Reads a blob. Other bytes are an error.
fn read(store: &ArtifactStore, digest: Digest, bytes_max: u64) -> Result<Option<Vec<u8>>> {
    store.read(digest, bytes_max).with_context(|| format!("{digest} cannot be used"))
}

/// Returns the origins of the plugins and the interpreter of a configuration that are not files.
fn origins(config: &ConfigFile) -> Result<Vec<(String, Origin)>> {
    let pins = Pins::of_config_ambient(&config.path)?;
    let plugins = config.config.plugins.iter();
    let fetched = plugins.filter(|(_, plugin)| plugin.component.get_ref().file().is_none());
    let origin = |(name, plugin): (&String, &PluginConfig)| {
        let origin = pins.origin_at(name, plugin.component.get_ref()).cloned();
        origin.map(|origin| (name.clone(), origin)).ok_or_else(|| {
            let lock = pins.path().display();
            Error::NotAccepted(format!("`{name}` is not in {lock}; run `cofferdam fetch`"))
        })
    };
    let mut origins = fetched.map(origin).collect::<Result<Vec<_>>>()?;
    let interpreter = config.interpreter()?.filter(|location| location.file().is_none());
    if let Some(location) = interpreter {
        let origin = pins.interpreter_at(location).cloned().ok_or_else(|| {
            let lock = pins.path().display();
            Error::NotAccepted(format!("{location} is not in {lock}; run `cofferdam fetch`"))
        })?;
        origins.push((INTERPRETER.to_owned(), origin));
    }
    Ok(origins)
}
