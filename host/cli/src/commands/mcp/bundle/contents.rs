//! What goes into a bundle beside the program: components, their manifests, and a configuration that finds them there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use cofferdam_engine::Plugin;
use cofferdam_engine::manifest::MANIFEST_BYTES_MAX;
use cofferdam_engine::screen::ScreenLimits;
use cofferdam_files::read_named_ambient;
use toml_edit::DocumentMut;

use super::super::place::Place;
use super::super::served::{Line, variables};
use super::manifest::placeholder;
use crate::args::PluginArgs;
use crate::exit::UsageError;
use crate::host;
use cofferdam::config::{ConfigFile, SecretSource};
use cofferdam::pins::Pins;

/// The files of a bundle by name, and what the host has to be asked for.
pub(super) struct Contents {
    pub(super) files: BTreeMap<String, Vec<u8>>,
    /// What `cofferdam` is started with.
    pub(super) arguments: Vec<String>,
    /// Environment variables that hold secrets.
    pub(super) variables: BTreeSet<String>,
    /// Directories that the person chooses.
    pub(super) directories: Vec<Directory>,
}

/// A directory that the person chooses.
pub(super) struct Directory {
    pub(super) name: String,
    /// What may be done there.
    pub(super) may: &'static str,
}

/// Where the configuration is in a bundle.
const CONFIG: &str = "cofferdam.toml";
/// The folder that a host unpacks a bundle into.
const HERE: &str = "${__dirname}";

/// A bundle of the plugins of a configuration.
pub(super) fn of_config(config: &Path, args: &PluginArgs) -> anyhow::Result<Contents> {
    if !args.plugins.is_empty() || args.files.is_some() {
        bail!(UsageError(
            "a bundle is made of --config FILE, or of --plugin, --mount and --files".to_owned()
        ));
    }
    let file = ConfigFile::read_ambient(config)?;
    check_is_portable(&file)?;
    let mut document: DocumentMut =
        file.text.parse().with_context(|| format!("{} cannot be read", config.display()))?;
    let mut files = BTreeMap::new();
    for (name, plugin) in &file.config.plugins {
        let place = add_component(&mut files, name, &file.resolve(plugin.component.as_ref()))?;
        let entry = document.get_mut("plugins").and_then(|plugins| plugins.get_mut(name));
        let entry = entry.and_then(|entry| entry.as_table_like_mut());
        entry.context("a plugin that was read is there")?.insert("component", toml_edit::value(place));
    }
    files.insert(CONFIG.to_owned(), document.to_string().into_bytes());
    let mut line = Line::new();
    line.flag("--config", format!("{HERE}/{CONFIG}"));
    line.limits(args);
    Ok(Contents { files, arguments: line.and(&[]), variables: variables(config)?, directories: Vec::new() })
}

/// A bundle of the plugins that were typed.
pub(super) fn of_flags(args: &PluginArgs) -> anyhow::Result<Contents> {
    let mut files = BTreeMap::new();
    let mut directories = Vec::new();
    let mut line = Line::new();
    for plugin in &args.plugins {
        let plugin = host::plugin(plugin);
        let name = plugin.to_name()?;
        let place = add_component(&mut files, name.as_str(), &plugin.component)?;
        line.flag("--plugin", format!("{name}={HERE}/{place}"));
    }
    for mount in &args.mounts {
        line.flag("--mount", chosen(Place::parse(mount), &mut directories));
    }
    if let Some(files) = &args.files {
        let mut place = Place::parse(files);
        place.name = place.name.or(Some("workspace"));
        line.flag("--files", chosen(place, &mut directories));
    }
    line.limits(args);
    Ok(Contents { files, arguments: line.and(&[]), variables: BTreeSet::new(), directories })
}

/// A store as it is typed for `serve`; a directory is left to the person who installs the bundle.
fn chosen(place: Place<'_>, directories: &mut Vec<Directory>) -> String {
    let Some(name) = place.name.filter(|_| place.is_directory()) else {
        return place.with_store(place.store);
    };
    let may = match place.access {
        ":ro" => "only to read it",
        ":create" => "to read it and make new files",
        _ => "to read and change it",
    };
    directories.push(Directory { name: name.to_owned(), may });
    place.with_store(&placeholder(name))
}

/// Adds a component and the manifest beside it. Gives the component's name in the bundle.
fn add_component(files: &mut BTreeMap<String, Vec<u8>>, name: &str, path: &Path) -> anyhow::Result<String> {
    let read = |path: &Path, bytes_max| {
        read_named_ambient(path, bytes_max)
            .map_err(|error| UsageError(format!("{} cannot be read: {error}", path.display())))
    };
    let place = format!("plugins/{name}.wasm");
    if files.insert(place.clone(), read(path, ScreenLimits::default().component_bytes_max)?).is_some() {
        bail!(UsageError(format!(
            "two plugins are called `{name}`; name one of them with --plugin NAME=PATH"
        )));
    }
    let manifest: PathBuf = path.with_extension("toml");
    if manifest.is_file() {
        files.insert(format!("plugins/{name}.toml"), read(&manifest, MANIFEST_BYTES_MAX)?);
    }
    Ok(place)
}

/// Refuses what would be missing on another machine.
fn check_is_portable(file: &ConfigFile) -> anyhow::Result<()> {
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
            line.get_ref().first().is_some_and(|program| program.contains('/')) || server.directory.is_some()
        });
        if let Some(program) = program {
            let message = format!(
                "the server `{name}` is a program of this machine, which a bundle does not carry; use one that is found by its \
                 name alone, or an address"
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
    Ok(())
}

impl Contents {
    /// Puts in what the plugins were when the bundle was made. A changed one is not loaded where it is installed.
    pub(super) fn lock(&mut self, plugins: &[Arc<Plugin>]) -> anyhow::Result<()> {
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
