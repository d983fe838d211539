//! Plugins that were fetched from registries and from the web: their origins in the lock file, and
//! their components in the artifact store.
//!
//! A configuration names such a plugin by a reference that can move. The lock file pins the digest
//! of the component. Commands that call tools read the component from the store by that digest and
//! never use the network.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cofferdam_engine::{Component, Engine};
pub use cofferdam_registry::StorePruning;
use cofferdam_registry::{ArtifactStore, Digest, Signer};
use cofferdam_tool::PluginName;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::config::{ComponentLocation, ConfigFile};
use crate::error::Context as _;
use crate::pins::Pins;
#[cfg(feature = "registry")]
use crate::registry::Policy;
use crate::{Result, directories, state_file};

/// Name of the artifact store in the user's state directory.
const STORE: &str = "artifacts";
/// Directory in the store with the paths of the configurations that use it.
const CONFIGURATIONS: &str = "configurations";

/// Origin of a plugin that was fetched. The lock file contains it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Location as written in the configuration.
    pub source: String,
    /// Version that the location named when it was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Digest of the manifest, for an artifact of a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Digest>,
    /// Digest of the component.
    pub layer: Digest,
    /// Size of the component in bytes.
    pub size: u64,
    /// Signer of the artifact whom a rule of the configuration trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signer: Option<Signer>,
    /// Types of the statements that the rule required and that were verified.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attested: Vec<String>,
}

/// Component of a plugin, or the reason why it cannot be used.
pub(crate) struct LocatedComponent {
    /// Component file. For a plugin that is not in the lock file, its location.
    pub(crate) path: PathBuf,
    /// Digest that the component must have.
    pub(crate) digest: Option<Digest>,
    /// Reason why the component cannot be used.
    pub(crate) missing: Option<String>,
}

impl LocatedComponent {
    /// Creates the component of a file.
    pub(crate) fn file(path: PathBuf) -> Self {
        Self { path, digest: None, missing: None }
    }
}

/// Finds the components of a configuration. Reads the lock file once, and only for a plugin that
/// was fetched.
pub(crate) struct Locator<'a> {
    file: &'a ConfigFile,
    lock: Option<Lock>,
}

/// Lock file and store, with the rules about signatures.
struct Lock {
    pins: Pins,
    store: ArtifactStore,
    #[cfg(feature = "registry")]
    policy: Policy,
}

impl<'a> Locator<'a> {
    pub(crate) fn new(file: &'a ConfigFile) -> Result<Self> {
        let plugins = file.config.plugins.values().map(|plugin| plugin.component.get_ref());
        let interpreter = file.config.code.interpreter.iter().map(Spanned::get_ref);
        let is_fetched = plugins.chain(interpreter).any(|location| location.file().is_none());
        let lock = match is_fetched {
            true => Some(Lock {
                pins: Pins::of_config_ambient(&file.path)?,
                store: store()?,
                #[cfg(feature = "registry")]
                policy: Policy::read_ambient(Some(file))?,
            }),
            false => None,
        };
        Ok(Self { file, lock })
    }

    /// Returns the component of the plugin `name` at `location`.
    pub(crate) fn locate(&self, name: &str, location: &ComponentLocation) -> LocatedComponent {
        self.locate_by(location, |pins| pins.origin_at(name, location))
    }

    /// Returns the component of the interpreter at `location`.
    pub(crate) fn locate_interpreter(&self, location: &ComponentLocation) -> LocatedComponent {
        self.locate_by(location, |pins| pins.interpreter_at(location))
    }

    fn locate_by(
        &self,
        location: &ComponentLocation,
        origin: impl FnOnce(&Pins) -> Option<&Origin>,
    ) -> LocatedComponent {
        let (Some(lock), None) = (&self.lock, location.file()) else {
            let path = location.file().unwrap_or(Path::new(""));
            return LocatedComponent::file(self.file.resolve(path));
        };
        let Lock { pins, store, .. } = lock;
        let source = location.to_string();
        let config = self.file.path.display();
        let Some(origin) = origin(pins) else {
            let missing = format!(
                "{source} is not in {}; run `cofferdam fetch --config {config}`",
                pins.path().display()
            );
            return LocatedComponent {
                path: PathBuf::from(source),
                digest: None,
                missing: Some(missing),
            };
        };
        #[cfg(feature = "registry")]
        let objection = lock.policy.objection(location, origin);
        #[cfg(not(feature = "registry"))]
        let objection = None;
        let is_stored = store.contains(origin.layer, origin.size);
        let absent = (!is_stored).then(|| {
            format!("{source} is not on this machine; run `cofferdam fetch --config {config}`")
        });
        let missing = objection.or(absent);
        LocatedComponent { path: store.path(origin.layer), digest: Some(origin.layer), missing }
    }
}

/// Opens the user's artifact store.
pub(crate) fn store() -> Result<ArtifactStore> {
    ArtifactStore::open_ambient(directory()?).context("the artifact store cannot be opened")
}

fn directory() -> Result<PathBuf> {
    Ok(directories::state()?.join(STORE))
}

/// Remembers that a configuration uses the artifact store, so that [`prune_ambient`] leaves what
/// its lock file names.
pub(crate) fn register(config: &Path) -> Result<()> {
    let unresolved = || format!("{} cannot be resolved", config.display());
    let path = std::path::absolute(config).with_context(unresolved)?;
    let name = Digest::of(path.as_os_str().as_encoded_bytes()).hex();
    let file = directory()?.join(CONFIGURATIONS).join(name);
    if file.exists() { Ok(()) } else { state_file::save(&file, &Some(path)) }
}

/// Removes the artifacts that no lock file of this user's configurations names, except those of the
/// last hour.
///
/// # Errors
/// Returns an error, and removes nothing, if a lock file or an artifact that it names cannot be
/// read.
pub fn prune_ambient() -> Result<StorePruning> {
    // Opening a store creates it.
    if !directory()?.exists() {
        return Ok(StorePruning::default());
    }
    let store = store()?;
    let mut used = BTreeSet::new();
    for config in configurations()? {
        for origin in Pins::of_config_ambient(&config)?.origins() {
            used.insert(origin.layer);
            if let Some(manifest) = origin.manifest {
                let blobs = store.artifact_blobs(manifest);
                used.extend(blobs.with_context(|| format!("{manifest} cannot be used"))?);
            }
        }
    }
    store.prune(&used).context("the artifact store cannot be read")
}

/// Returns the configurations that use the store, and forgets those that have no lock file any
/// more.
fn configurations() -> Result<Vec<PathBuf>> {
    let directory = directory()?.join(CONFIGURATIONS);
    let unreadable = || format!("{} cannot be read", directory.display());
    let entries = match std::fs::read_dir(&directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(unreadable)?,
    };
    let mut configurations = Vec::new();
    for entry in entries {
        let file = entry.with_context(unreadable)?.path();
        let config: Option<PathBuf> = state_file::read(&file, "remove it if it is damaged")?;
        match config.filter(|config| Pins::path_of(config).exists()) {
            Some(config) => configurations.push(config),
            // Another process may have removed it.
            None => drop(std::fs::remove_file(&file)),
        }
    }
    Ok(configurations)
}

/// Returns the imports of the component that the lock file has, to compare them with those of
/// another version. Returns `None` if it is not on this machine.
///
/// # Errors
/// Returns an error if the component cannot be read.
pub async fn imports_ambient(
    engine: &Engine,
    plugin: &PluginName,
    origin: &Origin,
) -> Result<Option<Vec<String>>> {
    let store = store()?;
    if !store.contains(origin.layer, origin.size) {
        return Ok(None);
    }
    let component = component(&store.path(origin.layer), Some(origin.layer));
    let screened = engine.screened(&component, plugin).await;
    Ok(Some(screened.with_context(|| format!("{} cannot be read", origin.layer))?.info.imports))
}

/// Returns the component at `path`, which must have `digest` if it was fetched.
pub(crate) fn component(path: &Path, digest: Option<Digest>) -> Component {
    with_digest(Component::from_file_ambient(path), digest)
}

/// Requires a component to have `digest`, if there is one.
pub(crate) fn with_digest(component: Component, digest: Option<Digest>) -> Component {
    match digest {
        Some(digest) => component.with_digest(*digest.as_bytes()),
        None => component,
    }
}
