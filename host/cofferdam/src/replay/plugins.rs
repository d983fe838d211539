//! Plugins that recorded calls run in.
//!
//! A component that the caller names comes first, then that of the plugin in a configuration, then
//! the recorded one, if the log keeps it. Each is loaded once, without grants: a replay has those
//! of the recording.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_engine::{Component, Engine, Grants, Plugin, PluginOptions};
use cofferdam_record::Log;
use cofferdam_tool::recording::CallRecording;
use cofferdam_tool::{Limits, PluginName};

use crate::config::ConfigFile;
use crate::error::Context as _;
use crate::granting::Values;
use crate::{Error, Operator, Result, compose, loading};

/// Plugins that recorded calls run in.
pub struct ReplayPlugins {
    engine: Engine,
    operator: Operator,
    component: Option<PathBuf>,
    config: Option<ConfigFile>,
    log: Option<Log>,
    loaded: HashMap<ReplayedComponent, Arc<Plugin>>,
}

/// Component of a loaded plugin.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ReplayedComponent {
    File(PathBuf),
    /// Component that the log keeps, by its digest.
    Logged(String),
}

impl ReplayPlugins {
    /// Creates a loader that knows no component.
    #[must_use]
    pub fn new(engine: Engine, operator: Operator) -> Self {
        let loaded = HashMap::new();
        Self { engine, operator, component: None, config: None, log: None, loaded }
    }

    /// Sets the component that all calls run in, such as a new version.
    #[must_use]
    pub fn component(mut self, file: impl Into<Option<PathBuf>>) -> Self {
        self.component = file.into();
        self
    }

    /// Sets the configuration whose plugins calls run in.
    #[must_use]
    pub fn config(mut self, config: impl Into<Option<ConfigFile>>) -> Self {
        self.config = config.into();
        self
    }

    /// Sets the log that may keep the recorded components.
    #[must_use]
    pub fn log(mut self, log: impl Into<Option<Log>>) -> Self {
        self.log = log.into();
        self
    }

    /// Returns the engine.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Returns the plugin that a call runs in.
    ///
    /// # Errors
    /// Returns an error if no component is known, or it cannot be loaded.
    pub async fn of(&mut self, recording: &CallRecording) -> Result<Arc<Plugin>> {
        let (name, digest) = (&recording.plugin.name, &recording.plugin.digest);
        let key = match self.file(recording)? {
            Some(file) => ReplayedComponent::File(file),
            None => ReplayedComponent::Logged(digest.clone()),
        };
        if let Some(plugin) = self.loaded.get(&key) {
            return Ok(Arc::clone(plugin));
        }
        let name = PluginName::new(name.as_str()).map_err(|e| Error::invalid(e.to_string()))?;
        let options = PluginOptions::new(name, Grants::default(), Limits::default());
        let plugin = match &key {
            ReplayedComponent::File(file) => {
                loading::load_file(&self.engine, file.clone(), options, &self.operator).await?
            }
            ReplayedComponent::Logged(_) => {
                let component = self.logged(recording)?;
                let shown = PathBuf::from(digest);
                loading::load_component(&self.engine, shown, component, options, &self.operator)
                    .await?
            }
        };
        let plugin = Arc::new(plugin);
        self.loaded.insert(key, Arc::clone(&plugin));
        Ok(plugin)
    }

    /// Returns the component file that the caller or a configuration names. A file of a
    /// configuration that does not exist counts only if the log does not keep the component.
    fn file(&self, recording: &CallRecording) -> Result<Option<PathBuf>> {
        if let Some(file) = &self.component {
            return Ok(Some(file.clone()));
        }
        let Some(config) = &self.config else { return Ok(None) };
        let is_logged = self.log.is_some() && recording.plugin.component.is_some();
        match compose::spec_of_config(config, &recording.plugin.name, Values::Leave) {
            Ok(spec) if spec.path.exists() || !is_logged => Ok(Some(spec.path)),
            Err(error) if !is_logged => Err(error),
            _ => Ok(None),
        }
    }

    fn logged(&self, recording: &CallRecording) -> Result<Component> {
        let logged = self.log.as_ref().map(|log| log.component(recording)).transpose();
        let logged = logged.context("the component in the log cannot be read")?.flatten();
        let logged = logged.ok_or_else(|| {
            let (name, digest) = (&recording.plugin.name, &recording.plugin.digest);
            let lacks = match self.log {
                Some(_) => "the log does not keep",
                None => "a recording in a file does not contain",
            };
            Error::invalid(format!(
                "{lacks} the component of the plugin `{name}`, {digest}; pass its \
                 file, or another version, as --with COMPONENT, or a configuration with the plugin \
                 as --config FILE"
            ))
        })?;
        let component = Component::from_bytes(logged.bytes);
        Ok(match logged.manifest {
            Some(manifest) => component.with_manifest(manifest),
            None => component,
        })
    }
}
