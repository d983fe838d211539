//! What `cofferdam serve` is started with: the same plugins, from wherever a host starts it.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context;

use super::place::{Place, absolute, text};
use crate::args::{Global, PluginArgs};
use crate::exit::UsageError;
use crate::host;
use cofferdam::compose::{self, PluginSpec};
use cofferdam::config::{ConfigFile, Offered, SecretSource, ValueSource};
use cofferdam::granting::Values;

/// The path of this program.
pub(super) fn program() -> anyhow::Result<String> {
    text(std::env::current_exe().context("cannot find this program")?)
}

/// Refuses what `serve` would refuse at its start, where the person would not see it.
pub(super) fn check(args: &PluginArgs, file: Option<&ConfigFile>) -> anyhow::Result<Vec<PluginSpec>> {
    let selection = &host::selection(args)?;
    let specs = compose::plugin_specs(selection, file, Values::Leave)?;
    compose::file_tools(selection, file, &specs, Values::Leave, &[], None)?;
    for spec in &specs {
        if !spec.path.is_file() {
            return Err(UsageError(format!("there is no file {}", spec.path.display())).into());
        }
    }
    Ok(specs)
}

/// The arguments, with every path made absolute.
pub(super) fn arguments(global: &Global, args: &PluginArgs, more: &[String]) -> anyhow::Result<Vec<String>> {
    let mut line = Line::new();
    if let Some(config) = &args.config {
        line.flag("--config", absolute(config)?);
    }
    for plugin in &args.plugins {
        let plugin = host::plugin(plugin);
        let name = plugin.to_name()?;
        line.flag("--plugin", format!("{name}={}", absolute(&plugin.component)?));
    }
    for mount in &args.mounts {
        line.flag("--mount", Place::parse(mount).absolute()?);
    }
    if let Some(files) = &args.files {
        line.flag("--files", Place::parse(files).absolute()?);
    }
    line.limits(args);
    if let Some(directory) = &global.cache_dir {
        line.flag("--cache-dir", absolute(directory)?);
    }
    if global.no_cache {
        line.words.push("--no-cache".to_owned());
    }
    Ok(line.and(more))
}

/// A command line of `serve` in the making.
pub(super) struct Line {
    words: Vec<String>,
}

impl Line {
    pub(super) fn new() -> Self {
        Self { words: vec!["serve".to_owned()] }
    }

    pub(super) fn flag(&mut self, name: &str, value: String) {
        self.words.extend([name.to_owned(), value]);
    }

    /// The limits that were typed.
    pub(super) fn limits(&mut self, args: &PluginArgs) {
        if let Some(timeout) = args.timeout {
            self.flag("--timeout", format!("{}ms", timeout.as_millis()));
        }
        if let Some(memory) = args.memory {
            self.flag("--memory", memory.to_string());
        }
    }

    /// The whole line, with what was typed for `serve` itself.
    pub(super) fn and(mut self, more: &[String]) -> Vec<String> {
        self.words.extend_from_slice(more);
        self.words
    }
}

/// The environment variables that a configuration takes values from. A host starts its servers with few of its own.
pub(super) fn variables(config: &Path) -> anyhow::Result<BTreeSet<String>> {
    let file = ConfigFile::read_ambient(config)?;
    let secrets = file.config.secrets.values().filter_map(|source| match source.get_ref() {
        SecretSource::Env(name) => Some(name.clone()),
        _ => None,
    });
    let mut names: BTreeSet<String> = secrets.collect();
    for server in file.config.servers.values() {
        for source in server.sources().map_err(|(span, message)| file.error(span, message))? {
            if let ValueSource::Env(name) = source {
                names.insert(name);
            }
        }
    }
    let tables = file.config.plugins.values().map(|plugin| &plugin.grants).chain([&file.config.grants]);
    for table in tables {
        let mut offered = Offered::default();
        table.add_to(&mut offered).map_err(|(span, message)| file.error(span, message))?;
        for source in offered.env.values().chain(offered.config.values()) {
            if let ValueSource::Env(name) = source {
                names.insert(name.clone());
            }
        }
    }
    Ok(names)
}
