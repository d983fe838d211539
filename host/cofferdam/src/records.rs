//! Call log of a host: `[records]` of a configuration, its directory, and what is recorded besides
//! calls.
//!
//! `serve`, `chat` and `workflow` record by default, single calls on request. The directory is in
//! the user's state directory unless a configuration names another one, and no tool may write to
//! it. A log that cannot be written stops nothing, unless it was asked for explicitly.

#[cfg(feature = "otlp")]
mod collector;
#[cfg(feature = "witness")]
mod witnesses;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_engine::Plugin;
use cofferdam_record::{FullQueue, LogEvent, PayloadMode, RecordOptions, Recorder};
use cofferdam_tool::recording::RecordingLevel;
use cofferdam_tool::redact::Redactor;
use cofferdam_tool::sink::CallSink;
use parking_lot::Mutex;
use serde::Deserialize;
use toml::Spanned;

#[cfg(feature = "otlp")]
pub use self::collector::exporter;
#[cfg(feature = "witness")]
pub use self::witnesses::witness_keys;
use crate::compose::PluginSpec;
use crate::config::ConfigFile;
use crate::config::edit::GrantChange;
use crate::error::Context as _;
use crate::{Error, Operator, Result, Selection, directories};

/// Name of the log in the user's state directory.
const DIRECTORY: &str = "records";
/// Smallest `bytes-max`: the notes of removed segments take less than that for millions of calls.
const BYTES_MIN: u64 = 4 * 1024 * 1024;

/// Decision of a command about recording its calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RecordMode {
    /// Nothing is recorded, unless the configuration says `enabled = true`.
    #[default]
    Off,
    /// Calls are recorded, unless the configuration says `enabled = false`. A log that cannot be
    /// opened is a warning.
    On,
    /// Calls are recorded. A log that cannot be opened is an error.
    Always,
    /// Nothing is recorded.
    Never,
}

/// `[records]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct RecordsTable {
    /// True if every command records, false if none does.
    enabled: Option<bool>,
    /// Directory of the log.
    directory: Option<PathBuf>,
    /// Treatment of arguments, results and output.
    payloads: PayloadsKey,
    /// Maximum bytes of the log.
    bytes_max: Spanned<u64>,
    /// Days after which records are removed.
    days_max: Spanned<u32>,
    /// Treatment of calls while the writer cannot keep up.
    on_full: OnFullKey,
    /// Calls that are recorded so that they can run again.
    replay: RecordingLevel,
    /// Collector that gets spans of the calls.
    #[cfg(feature = "otlp")]
    otlp: Option<self::collector::CollectorTable>,
    /// Witnesses that sign the checkpoints.
    #[cfg(feature = "witness")]
    witness: Vec<self::witnesses::WitnessTable>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PayloadsKey {
    None,
    #[default]
    Digests,
    Local,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OnFullKey {
    #[default]
    Wait,
    Drop,
}

impl Default for RecordsTable {
    fn default() -> Self {
        Self {
            enabled: None,
            directory: None,
            payloads: PayloadsKey::default(),
            bytes_max: Spanned::new(0..0, 1024 * 1024 * 1024),
            days_max: Spanned::new(0..0, 30),
            on_full: OnFullKey::default(),
            replay: RecordingLevel::default(),
            #[cfg(feature = "otlp")]
            otlp: None,
            #[cfg(feature = "witness")]
            witness: Vec::new(),
        }
    }
}

/// Log that a host writes to.
pub struct CallLog {
    recorder: Arc<Recorder>,
    #[cfg(any(feature = "cluster", feature = "witness"))]
    directory: PathBuf,
    /// Digests of the plugins that were recorded as loaded, by name.
    plugins: Mutex<BTreeMap<String, String>>,
    /// Export of what is recorded.
    #[cfg(feature = "otlp")]
    export: Mutex<Option<cofferdam_record::OtlpExport>>,
    /// Offers of checkpoints to witnesses.
    #[cfg(feature = "witness")]
    witnesses: Mutex<Option<cofferdam_record::WitnessTask>>,
}

/// Log that a host is going to open.
pub(crate) struct PlannedLog {
    options: Result<RecordOptions>,
    is_required: bool,
    #[cfg(feature = "otlp")]
    exporter: Option<cofferdam_record::OtlpExporter>,
    #[cfg(feature = "witness")]
    witnesses: Vec<cofferdam_record::WitnessClient>,
}

/// Returns the directory of the log: that of a configuration, or `records` in the user's state
/// directory.
///
/// # Errors
/// Returns an error if the home directory is not known.
pub fn directory_ambient(config: Option<&ConfigFile>) -> Result<PathBuf> {
    config.and_then(own_directory).map_or_else(default_directory, Ok)
}

/// Returns the directory of the log that a configuration names.
pub(crate) fn own_directory(config: &ConfigFile) -> Option<PathBuf> {
    config.config.records.directory.as_ref().map(|directory| config.resolve(directory))
}

/// Returns the directory of the log in the user's state directory.
pub(crate) fn default_directory() -> Result<PathBuf> {
    Ok(directories::state()?.join(DIRECTORY))
}

/// Returns the limits of the log: its bytes and the age of its records.
///
/// # Errors
/// Returns an error if the configuration has limits that no log can have.
pub fn limits(config: Option<&ConfigFile>) -> Result<(u64, Duration)> {
    let default = RecordsTable::default();
    let table = config.map_or(&default, |file| &file.config.records);
    if let Some(file) = config {
        check_limits(file)?;
    }
    Ok((*table.bytes_max.get_ref(), table.age_max()))
}

/// Checks what a configuration says about the log, without reading secrets.
pub(crate) fn check(file: &ConfigFile) -> Result<()> {
    check_limits(file)?;
    #[cfg(feature = "otlp")]
    collector::check(file)?;
    #[cfg(feature = "witness")]
    witnesses::clients(file)?;
    Ok(())
}

/// Checks the limits of the log in a configuration.
pub(crate) fn check_limits(file: &ConfigFile) -> Result<()> {
    let RecordsTable { bytes_max, days_max, .. } = &file.config.records;
    if *bytes_max.get_ref() < BYTES_MIN {
        let message = format!("`bytes-max` must be at least {BYTES_MIN}");
        return Err(file.error(bytes_max.span(), message).into());
    }
    if *days_max.get_ref() == 0 {
        let message = "`days-max` must be at least 1; `enabled = false` switches recording off";
        return Err(file.error(days_max.span(), message).into());
    }
    Ok(())
}

/// Returns which calls of a plugin are recorded so that they can run again. A configuration counts
/// only if the recordings go somewhere; a program can read them from the records of its calls.
pub(crate) fn recording_level(
    selection: &Selection,
    config: Option<&ConfigFile>,
    plugin: &str,
    has_log: bool,
) -> RecordingLevel {
    if let Some(level) = selection.recording {
        return level;
    }
    if !has_log && selection.call_sink.is_none() {
        return RecordingLevel::Off;
    }
    let config = config.map(|file| &file.config);
    let of_plugin = config.and_then(|config| config.plugins.get(plugin)?.replay);
    let of_file = config.map(|config| config.records.replay);
    of_plugin.or(of_file).unwrap_or_default()
}

/// Returns the log that the selection and its configuration ask for. Tries to create its directory,
/// so that the mounts of plugins can be compared with it.
pub(crate) fn plan(
    selection: &Selection,
    config: Option<&ConfigFile>,
) -> Result<Option<PlannedLog>> {
    let default = RecordsTable::default();
    let table = config.map_or(&default, |file| &file.config.records);
    let is_required = match (selection.records, table.enabled) {
        (RecordMode::Never, _)
        | (RecordMode::Off, None | Some(false))
        | (RecordMode::On, Some(false)) => return Ok(None),
        (RecordMode::On, None) => false,
        (RecordMode::Always, _) | (_, Some(true)) => true,
    };
    if let Some(file) = config {
        check_limits(file)?;
    }
    let options = directory_ambient(config).map(|directory| {
        // Opening the log reports the error.
        let _ = directories::make_private(&directory);
        let mut options = table.options(directory);
        if let Some(level) = selection.recording {
            options.stores_conversations = level == RecordingLevel::All;
        }
        options
    });
    Ok(Some(PlannedLog {
        options,
        is_required,
        #[cfg(feature = "otlp")]
        exporter: config.map(collector::exporter).transpose()?.flatten(),
        #[cfg(feature = "witness")]
        witnesses: config.map(witnesses::clients).transpose()?.unwrap_or_default(),
    }))
}

/// Records changes of grants, unless nothing is recorded with this configuration. They are made
/// already, so a log that cannot be written is a warning.
pub(crate) fn note_grants(config: &ConfigFile, changes: &[GrantChange]) {
    let table = &config.config.records;
    let Ok(directory) = directory_ambient(Some(config)) else { return };
    let is_recording = table.enabled.unwrap_or_else(|| directory.exists());
    if changes.is_empty() || !is_recording {
        return;
    }
    match Recorder::open(table.options(directory)) {
        Ok(recorder) => {
            for GrantChange { plugin, permission, is_added } in changes.iter().cloned() {
                recorder.event(LogEvent::Grant { plugin, permission, is_added });
            }
            recorder.close();
        }
        Err(error) => {
            tracing::warn!(target: "cofferdam::record", %error, "the grant is not recorded");
        }
    }
}

impl RecordsTable {
    /// Describes what differs from the defaults about who learns of calls, in one line each.
    pub(crate) fn deviations(&self) -> impl Iterator<Item = String> {
        let disabled =
            (self.enabled == Some(false)).then(|| "[records] records no calls".to_owned());
        #[cfg(feature = "otlp")]
        let exported = self.otlp.as_ref().map(|table| {
            format!("[records.otlp] sends a span of each recorded call to {}", table.url())
        });
        #[cfg(not(feature = "otlp"))]
        let exported = None;
        disabled.into_iter().chain(exported)
    }

    fn age_max(&self) -> Duration {
        Duration::from_secs(u64::from(*self.days_max.get_ref()) * 24 * 60 * 60)
    }

    fn options(&self, directory: PathBuf) -> RecordOptions {
        let mut options = RecordOptions::new(directory);
        options.payloads = match self.payloads {
            PayloadsKey::None => PayloadMode::None,
            PayloadsKey::Digests => PayloadMode::Digests,
            PayloadsKey::Local => PayloadMode::Local,
        };
        options.stores_conversations = self.replay == RecordingLevel::All;
        options.bytes_max = *self.bytes_max.get_ref();
        options.age_max = self.age_max();
        options.on_full = match self.on_full {
            OnFullKey::Wait => FullQueue::Wait,
            OnFullKey::Drop => FullQueue::Drop,
        };
        options
    }
}

/// Returns the sink of all calls: the program's own, or else the log.
pub(crate) fn sink(log: Option<&Arc<CallLog>>, selection: &Selection) -> Option<Arc<dyn CallSink>> {
    let recorder = |log: &Arc<CallLog>| Arc::clone(&log.recorder) as Arc<dyn CallSink>;
    selection.call_sink.clone().or_else(|| log.map(recorder))
}

impl PlannedLog {
    /// Opens the log. The secrets that plugins are granted are redacted in it. A log that was not
    /// asked for explicitly and cannot be opened is a warning.
    pub(crate) fn open(
        self,
        specs: &[PluginSpec],
        operator: &Operator,
    ) -> Result<Option<Arc<CallLog>>> {
        let opened = self.options.and_then(|mut options| {
            let secrets = specs.iter().flat_map(|spec| &spec.options.grants.secrets);
            let secrets = secrets.map(|(name, value)| (name.as_str(), value));
            options.secrets =
                Redactor::new(secrets).map_err(|error| Error::invalid(error.to_string()))?;
            CallLog::open(options)
        });
        match opened {
            Ok(log) => {
                #[cfg(feature = "otlp")]
                if let Some(exporter) = self.exporter {
                    log.export_to(exporter)?;
                }
                #[cfg(feature = "witness")]
                if !self.witnesses.is_empty() {
                    log.offer_to(self.witnesses);
                }
                Ok(Some(log))
            }
            Err(error) if self.is_required => Err(error),
            Err(error) => {
                operator.note(&format!("warning: calls are not recorded: {error:#}"));
                Ok(None)
            }
        }
    }
}

impl CallLog {
    /// Opens a log for a host. Calls of the host's tools are recorded until it is dropped.
    ///
    /// # Errors
    /// Returns an error if the directory is not the user's own, or cannot be written.
    pub fn open(options: RecordOptions) -> Result<Arc<Self>> {
        let directory = options.directory.clone();
        let recorder = Recorder::open(options)
            .with_context(|| format!("the call log {} cannot be opened", directory.display()))?;
        Ok(Arc::new(Self {
            recorder: Arc::new(recorder),
            #[cfg(any(feature = "cluster", feature = "witness"))]
            directory,
            plugins: Mutex::default(),
            #[cfg(feature = "otlp")]
            export: Mutex::default(),
            #[cfg(feature = "witness")]
            witnesses: Mutex::default(),
        }))
    }

    /// Returns the recorder, for further events and the state of the log.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Returns the directory of the log.
    #[cfg(feature = "cluster")]
    pub(crate) fn directory(&self) -> &std::path::Path {
        &self.directory
    }

    /// Writes what was recorded, closes the log, and sends the rest to the collector and the last
    /// checkpoints to witnesses, if there are any, for at most two seconds each. Later calls are
    /// not recorded. Dropping the log closes it without sending anything.
    pub async fn finish(&self) {
        self.recorder.close();
        #[cfg(feature = "witness")]
        {
            let task = self.witnesses.lock().take();
            if let Some(task) = task {
                task.shutdown().await;
            }
        }
        #[cfg(feature = "otlp")]
        {
            let export = self.export.lock().take();
            if let Some(export) = export {
                export.shutdown().await;
            }
        }
    }

    /// Records which plugins were loaded or replaced since the last time.
    pub(crate) fn note_plugins<'p>(&self, plugins: impl Iterator<Item = &'p Arc<Plugin>>) {
        let mut known = self.plugins.lock();
        for plugin in plugins {
            let identity = &plugin.info().identity;
            if let Some(file) = plugin.file_ambient() {
                self.recorder.component_ambient(&identity.digest, file);
            }
            let (plugin, digest) = (identity.name.to_string(), identity.digest.to_string());
            let replaces = known.insert(plugin.clone(), digest.clone());
            if replaces.as_ref() != Some(&digest) {
                self.recorder.event(LogEvent::Plugin { plugin, digest, replaces });
            }
        }
    }
}

impl std::fmt::Debug for CallLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallLog").finish_non_exhaustive()
    }
}
