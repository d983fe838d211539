//! Command line of `cofferdam serve` for the plugins of a selection.

use std::collections::BTreeSet;
use std::path::Path;

use cofferdam_tool::Toolset;

use crate::compose::HostPlan;
use crate::config::{ConfigFile, OfferedGrants, SecretSource, ValueSource};
use crate::error::Context as _;
use crate::granting::Values;
use crate::toolsets::KnownTools;
use crate::{CacheDirectory, Error, Result, Selection, StoreLocation, flags, servers};

/// Arguments of `cofferdam serve` that offer the plugins of a selection from any working directory.
#[derive(Debug, Clone)]
pub struct ServeCommand {
    arguments: Vec<String>,
}

impl ServeCommand {
    /// Checks that the selection can be served, and makes all its paths absolute.
    ///
    /// # Errors
    /// Returns an error if `serve` would reject the selection at its start, where the user would
    /// not see the message, or if a path is not UTF-8.
    pub fn new(selection: &Selection, cache: &CacheDirectory) -> Result<Self> {
        check(selection)?;
        let mut line = CommandLine::new();
        if let Some(config) = &selection.config {
            line.flag("--config", absolute(config)?);
        }
        for plugin in &selection.plugins {
            line.flag(
                "--plugin",
                format!("{}={}", plugin.to_name()?, absolute(&plugin.component)?),
            );
        }
        for mount in &selection.mounts {
            let location = absolute_location(&mount.location)?;
            line.flag("--mount", flags::store(Some(&mount.name), &location, mount.access));
        }
        if let Some(files) = &selection.files {
            let location = absolute_location(&files.location)?;
            line.flag("--files", flags::store(files.name.as_deref(), &location, files.access));
        }
        line.tools(selection);
        line.limits(selection);
        match cache {
            CacheDirectory::At(directory) => line.flag("--cache-dir", absolute(directory)?),
            CacheDirectory::None => line.arguments.push("--no-cache".to_owned()),
            CacheDirectory::User => {}
        }
        Ok(Self { arguments: line.arguments })
    }

    /// Appends flags unchanged.
    #[must_use]
    pub fn with_flags(mut self, flags: &[String]) -> Self {
        self.arguments.extend_from_slice(flags);
        self
    }

    /// Returns the arguments, beginning with `serve`.
    #[must_use]
    pub(crate) fn into_arguments(self) -> Vec<String> {
        self.arguments
    }
}

/// Returns an error if `serve` would reject the selection at its start.
pub(super) fn check(selection: &Selection) -> Result<HostPlan> {
    let plan = HostPlan::new(selection, Values::Leave, &[], None)?.require_tools(selection)?;
    if let Some(file) = &plan.config {
        crate::serve::check(file)?;
        servers::check_toolsets(file)?;
    }
    let (config, toolset) = (plan.config.as_ref(), &Toolset::default());
    KnownTools { config, toolset, is_complete: false }.selected(selection)?;
    match plan.specs.iter().find(|spec| !spec.path.is_file()) {
        Some(spec) => Err(Error::invalid(format!("there is no file {}", spec.path.display()))),
        None => Ok(plan),
    }
}

/// Builder of a command line.
pub(super) struct CommandLine {
    pub(super) arguments: Vec<String>,
}

impl CommandLine {
    pub(super) fn new() -> Self {
        Self { arguments: vec!["serve".to_owned()] }
    }

    pub(super) fn flag(&mut self, name: &str, value: String) {
        self.arguments.extend([name.to_owned(), value]);
    }

    /// Adds the offered tools of the selection.
    pub(super) fn tools(&mut self, selection: &Selection) {
        for toolset in &selection.toolsets {
            self.flag("--toolset", toolset.clone());
        }
        if !selection.tools.is_empty() {
            self.flag("--tools", selection.tools.join(","));
        }
    }

    /// Adds the permissions and limits of the selection.
    pub(super) fn limits(&mut self, selection: &Selection) {
        for offered in &selection.permissions {
            if let Some((flag, value)) =
                flags::permission(&offered.permission, offered.value.as_ref())
            {
                self.flag(flag, value);
            }
        }
        if let Some(timeout) = selection.timeout {
            self.flag("--timeout", format!("{}ms", timeout.as_millis()));
        }
        if let Some(bytes) = selection.memory_bytes_max {
            self.flag("--memory", (bytes >> 20).to_string());
        }
    }
}

/// Returns a location in command-line syntax that is valid in every working directory.
pub(super) fn absolute_location(location: &StoreLocation) -> Result<String> {
    match location {
        StoreLocation::Directory(directory) => absolute(directory),
        StoreLocation::Bucket(address) => Ok(address.clone()),
        StoreLocation::Memory => Ok("memory".to_owned()),
    }
}

/// Returns an absolute path as a string, because files of clients can hold only strings.
pub(super) fn absolute(path: &Path) -> Result<String> {
    let absolute = std::path::absolute(path)
        .with_context(|| format!("{} cannot be made absolute", path.display()))?;
    absolute.into_os_string().into_string().map_err(|path| {
        Error::invalid(format!(
            "the path {} is not UTF-8, which files of clients cannot hold",
            path.display()
        ))
    })
}

/// Returns the environment variables from which a configuration takes values. Clients start servers
/// with only a few of their own variables.
///
/// # Errors
/// Returns an error if the configuration is invalid.
pub fn environment_variables(config: &Path) -> Result<BTreeSet<String>> {
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
    for table in file.grants_tables() {
        let mut offered = OfferedGrants::default();
        table.add_to(&mut offered).map_err(|(span, message)| file.error(span, message))?;
        for source in offered.env.values().chain(offered.config.values()) {
            if let ValueSource::Env(name) = source {
                names.insert(name.clone());
            }
        }
    }
    Ok(names)
}
