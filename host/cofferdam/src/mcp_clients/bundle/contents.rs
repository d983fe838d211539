//! Contents of a bundle in addition to the program: components, their manifests, and a
//! configuration that names them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_engine::Plugin;
use cofferdam_engine::manifest::MANIFEST_BYTES_MAX;
use cofferdam_engine::screen::ScreenLimits;
use cofferdam_files::read_named_ambient;
use cofferdam_tool::FileAccess;
use toml_edit::DocumentMut;

use super::super::serve_command::{CommandLine, absolute_location, environment_variables};
use super::manifest::placeholder;
use crate::artifacts::Locator;
use crate::config::{ConfigFile, SecretSource};
use crate::error::Context as _;
use crate::flags;
use crate::pins::Pins;
use crate::{Error, OfferedPermission, Result, Selection, StoreLocation};

/// Files of a bundle by name, and the values that the client asks the user for.
pub(super) struct BundleContents {
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// Arguments of the program.
    pub(super) arguments: Vec<String>,
    /// Environment variables that hold secrets.
    pub(super) variables: BTreeSet<String>,
    /// Directories that the user chooses.
    pub(super) directories: Vec<ChosenDirectory>,
}

/// A directory that the user chooses.
pub(super) struct ChosenDirectory {
    pub(super) name: String,
    /// Access of tools to it, in words.
    pub(super) may: &'static str,
}

/// Path of the configuration in a bundle.
const CONFIG: &str = "cofferdam.toml";
/// Placeholder for the folder into which a client unpacks a bundle.
const BUNDLE: &str = "${__dirname}";

impl BundleContents {
    /// Returns the contents of a bundle with the plugins of a configuration.
    pub(super) fn of_config(config: &Path, selection: &Selection) -> Result<Self> {
        if !selection.plugins.is_empty() || selection.files.is_some() {
            return Err(Error::invalid(
                "a bundle is made of --config FILE, or of --plugin, --mount and --files",
            ));
        }
        let file = ConfigFile::read_ambient(config)?;
        check_portable(&file)?;
        let mut document: DocumentMut =
            file.text.parse().with_context(|| format!("{} cannot be read", config.display()))?;
        let mut files = BTreeMap::new();
        let locator = Locator::new(&file)?;
        for (name, plugin) in &file.config.plugins {
            let located = locator.locate(name, plugin.component.get_ref());
            if let Some(missing) = located.missing {
                return Err(Error::NotAccepted(missing));
            }
            let packed = add_component(&mut files, name, &located.path)?;
            let entry = document.get_mut("plugins").and_then(|plugins| plugins.get_mut(name));
            let entry = entry.and_then(|entry| entry.as_table_like_mut());
            let entry = entry.with_context(|| format!("`plugins.{name}` is not a table"))?;
            entry.insert("component", toml_edit::value(packed));
        }
        files.insert(CONFIG.to_owned(), document.to_string().into_bytes());
        let mut line = CommandLine::new();
        line.flag("--config", format!("{BUNDLE}/{CONFIG}"));
        line.tools(selection);
        line.limits(selection);
        let variables = environment_variables(config)?;
        Ok(Self { files, arguments: line.arguments, variables, directories: Vec::new() })
    }

    /// Returns the contents of a bundle with the component files of a selection.
    pub(super) fn of_files(selection: &Selection) -> Result<Self> {
        let mut files = BTreeMap::new();
        let mut directories = Vec::new();
        let mut line = CommandLine::new();
        for plugin in &selection.plugins {
            let name = plugin.to_name()?;
            let packed = add_component(&mut files, name.as_str(), &plugin.component)?;
            line.flag("--plugin", format!("{name}={BUNDLE}/{packed}"));
        }
        for mount in &selection.mounts {
            let location =
                packed_location(&mount.name, &mount.location, mount.access, &mut directories)?;
            line.flag("--mount", flags::store(Some(&mount.name), &location, mount.access));
        }
        if let Some(store) = &selection.files {
            let name = store.name.as_deref().unwrap_or("workspace");
            let location = packed_location(name, &store.location, store.access, &mut directories)?;
            line.flag("--files", flags::store(Some(name), &location, store.access));
        }
        line.tools(selection);
        line.limits(selection);
        let variables = selection.permissions.iter().filter_map(OfferedPermission::variable);
        let variables = variables.map(str::to_owned).collect();
        Ok(Self { files, arguments: line.arguments, variables, directories })
    }

    /// Adds a lock file for the plugins. After installation, a plugin that was changed is not
    /// loaded.
    pub(super) fn pin(&mut self, plugins: &[Arc<Plugin>]) -> Result<()> {
        if !self.files.contains_key(CONFIG) {
            return Ok(());
        }
        let mut pins = Pins::none(Path::new(CONFIG));
        for plugin in plugins {
            pins.accept(plugin);
        }
        self.files.insert(pins.path().display().to_string(), pins.text()?);
        Ok(())
    }
}

/// Returns the location of a store in a bundle. Directories become placeholders, because the user
/// who installs the bundle chooses them.
fn packed_location(
    name: &str,
    location: &StoreLocation,
    access: FileAccess,
    directories: &mut Vec<ChosenDirectory>,
) -> Result<String> {
    if !matches!(location, StoreLocation::Directory(_)) {
        return absolute_location(location);
    }
    let may = match access {
        FileAccess::ReadOnly => "only to read it",
        FileAccess::CreateOnly => "to read it and make new files",
        FileAccess::ReadWrite => "to read and change it",
    };
    directories.push(ChosenDirectory { name: name.to_owned(), may });
    Ok(placeholder(name))
}

/// Adds a component and the manifest beside it. Returns the component's name in the bundle.
fn add_component(files: &mut BTreeMap<String, Vec<u8>>, name: &str, path: &Path) -> Result<String> {
    let read = |path: &Path, bytes_max| {
        read_named_ambient(path, bytes_max)
            .map_err(|error| Error::invalid(format!("{} cannot be read: {error}", path.display())))
    };
    let packed = format!("plugins/{name}.wasm");
    if files
        .insert(packed.clone(), read(path, ScreenLimits::default().component_bytes_max)?)
        .is_some()
    {
        return Err(Error::invalid(format!(
            "two plugins are called `{name}`; name one of them with --plugin NAME=PATH"
        )));
    }
    let manifest: PathBuf = path.with_extension("toml");
    if manifest.is_file() {
        files.insert(format!("plugins/{name}.toml"), read(&manifest, MANIFEST_BYTES_MAX)?);
    }
    Ok(packed)
}

/// Returns an error if a configuration needs files or programs of this machine.
fn check_portable(file: &ConfigFile) -> Result<()> {
    for (name, secret) in &file.config.secrets {
        if let SecretSource::File(_) = secret.get_ref() {
            let message = format!(
                "the secret `{name}` is in a file, which a bundle does not carry; write {name} = {{ env = \"…\" }}, and the \
                 host asks for it"
            );
            return Err(file.error(secret.span(), message).into());
        }
    }
    for (name, server) in &file.config.servers {
        let program = server.command.as_ref().filter(|line| {
            line.get_ref().first().is_some_and(|program| program.contains('/'))
                || server.directory.is_some()
        });
        if let Some(program) = program {
            let message = format!(
                "the server `{name}` is a program of this machine, which a bundle does not carry; use one that is found by its \
                 name, or an address"
            );
            return Err(file.error(program.span(), message).into());
        }
    }
    let stores = file.config.stores.iter().map(|(name, store)| (name, &store.directory));
    let files = file.config.files.iter().map(|(name, files)| (name, &files.directory));
    for (name, directory) in stores.chain(files) {
        if let Some(directory) = directory {
            let message = format!(
                "the store `{name}` is a directory of this machine; use --plugin with --mount, and the host asks for the \
                 directory, or a store in a bucket or in memory"
            );
            return Err(file.error(directory.span(), message).into());
        }
    }
    #[cfg(feature = "skills")]
    if let Some(directory) = file.config.skills.directories.first() {
        let message = "a bundle does not carry directories of skills; remove them, or list a store in a bucket as \
                       `stores` of [skills]";
        return Err(file.error(directory.span(), message).into());
    }
    Ok(())
}
