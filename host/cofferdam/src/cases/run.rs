//! Runs cases: each in its own call, with only the grants that it names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Context as _;
use cofferdam_engine::{Engine, Grants, Mount, Plugin, PluginOptions};
use cofferdam_files::{FileStore, MemoryStore, Quota, StorePath, WriteMode};
use cofferdam_tool::ask::{LogLevel, LogSink};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::invoke::{FileEffects, Progress, ProgressSink};
use cofferdam_tool::permission::SecretText;
use cofferdam_tool::recording::{CallRecording, RecordingLevel};
use cofferdam_tool::{
    CallContext, Completion, FileAccess, Limits, MountName, RefusedCall, ToolName, ToolSource,
    Toolset,
};
use parking_lot::Mutex;

use super::{MountedFiles, TestCase};
use crate::{Error, Operator, loading, replay, stores};

/// Runs cases of one component.
pub struct Runner<'a> {
    /// Engine that calls run on.
    pub engine: &'a Engine,
    /// Component file.
    pub component: &'a Path,
    /// Base directory of mounts.
    pub directory: &'a Path,
    /// Language that selects among the variants of `error`.
    pub language: Option<&'a str>,
    /// Declarations of the component. A tool that calls others may call all tools of its own
    /// plugin, if it requests them.
    pub declarations: &'a [Declaration],
    /// True to run each call again from a recording, and to report what differs.
    pub replays: bool,
}

/// Result of a case: the differences, one per line.
pub struct Verdict {
    pub problems: Vec<String>,
}

/// A plugin with the grants of one case.
pub struct PreparedCase {
    plugin: Arc<Plugin>,
    toolset: Toolset,
    pub(super) stores: Vec<(String, Arc<dyn FileStore>)>,
    is_dry_run: bool,
}

/// Progress and log that a tool sends to its caller.
#[derive(Default)]
pub(super) struct CaseOutput {
    pub(super) progress: Mutex<Vec<Progress>>,
    pub(super) log: Mutex<Vec<(LogLevel, String)>>,
}

impl ProgressSink for CaseOutput {
    fn report(&self, _call_id: &str, progress: Progress) {
        self.progress.lock().push(progress);
    }
}

impl LogSink for CaseOutput {
    fn log(&self, _call_id: &str, level: LogLevel, message: &str) {
        self.log.lock().push((level, message.to_owned()));
    }
}

impl Runner<'_> {
    /// Runs a case.
    ///
    /// # Errors
    /// Returns an error if the case or the component is invalid. The outcome of the call is part of
    /// the verdict instead.
    pub async fn run(&self, case: &TestCase) -> crate::Result<Verdict> {
        if let Some(file) = &case.recording {
            return self.replay(&self.directory.join(file)).await;
        }
        let prepared = self.prepare(case).await?;
        let output = Arc::new(CaseOutput::default());
        let ended = prepared.call(case, Some(&output)).await;
        let mut problems =
            super::expect::problems(case, &prepared, &ended, &output, self.language).await;
        if self.replays
            && let Ok(completion) = &ended
            && let Some(recording) = &completion.record.recording
            && recording.gaps.is_empty()
        {
            problems.extend(replayed(&prepared.plugin, recording).await?);
        }
        Ok(Verdict { problems })
    }

    /// Runs a recorded call again.
    async fn replay(&self, file: &Path) -> crate::Result<Verdict> {
        let recording = Arc::new(replay::read_ambient(file)?);
        let name = crate::plugin_name(self.component).map_err(invalid)?;
        let options = PluginOptions::new(name, Grants::default(), Limits::default());
        let component = self.component.to_owned();
        let plugin =
            loading::load_file(self.engine, component, options, &Operator::default()).await?;
        Ok(Verdict { problems: replayed(&plugin, &recording).await? })
    }

    /// Loads the plugin with the grants of a case.
    pub async fn prepare(&self, case: &TestCase) -> crate::Result<PreparedCase> {
        let (mounts, is_dry_run) = self.mounts(case).await?;
        let name = crate::plugin_name(self.component).map_err(invalid)?;
        let values = |values: &BTreeMap<String, String>| {
            values
                .iter()
                .map(|(name, value)| (name.clone(), SecretText::new(value.clone())))
                .collect()
        };
        let stores =
            mounts.iter().map(|mount| (mount.name.to_string(), Arc::clone(&mount.store))).collect();
        let grants = Grants {
            mounts,
            env: values(&case.env),
            config: values(&case.config),
            secrets: values(&case.secrets),
            readable_secrets: case.secrets.keys().cloned().collect(),
            tools: self
                .declarations
                .iter()
                .map(|tool| ToolName::new(&*tool.name))
                .collect::<Result<_, _>>()
                .map_err(invalid)?,
            ..Grants::default()
        };
        let recording = if self.replays { RecordingLevel::All } else { RecordingLevel::default() };
        let options =
            PluginOptions { recording, ..PluginOptions::new(name, grants, Limits::default()) };
        let plugin = loading::load_file(
            self.engine,
            self.component.to_owned(),
            options,
            &Operator::default(),
        )
        .await?;
        let plugin = Arc::new(plugin);
        let toolset =
            Toolset::join([Arc::clone(&plugin) as Arc<dyn ToolSource>]).map_err(invalid)?;
        Ok(PreparedCase { plugin, toolset, stores, is_dry_run })
    }

    /// Returns the stores of a case, and whether one of them is a directory. If so, the case is a
    /// dry run, which leaves the directory unchanged.
    async fn mounts(&self, case: &TestCase) -> crate::Result<(Vec<Mount>, bool)> {
        let (mut mounts, mut has_directory) = (Vec::new(), false);
        for (name, files) in &case.mounts {
            let store: Arc<dyn FileStore> = match files {
                MountedFiles::Directory(path) => {
                    has_directory = true;
                    stores::mount_directory(
                        &self.beside(path)?,
                        FileAccess::ReadWrite,
                        Quota::default(),
                    )?
                }
                MountedFiles::Texts(texts) => {
                    let store = MemoryStore::new(Quota::default());
                    for (path, text) in texts {
                        let at = StorePath::file(path).map_err(|error| {
                            Error::Invalid(format!("`{path}` in {}: {error}", case.title()))
                        })?;
                        let written =
                            store.write(&at, text.clone().into_bytes(), WriteMode::Replace).await;
                        written.with_context(|| format!("{name}/{at} cannot be written"))?;
                    }
                    Arc::new(store)
                }
            };
            let name =
                MountName::new(name).with_context(|| format!("a mount of {}", case.title()))?;
            mounts.push(Mount::new(name, store, FileAccess::ReadWrite));
        }
        Ok((mounts, has_directory))
    }

    /// Returns a directory below the directory of the cases. Returns an error for any other
    /// directory, because the cases of an untrusted plugin must not reach other files of this
    /// machine.
    fn beside(&self, path: &Path) -> crate::Result<PathBuf> {
        let wrong = |why: &str| Error::Invalid(format!("a case mounts {}, {why}", path.display()));
        let root =
            if self.directory.as_os_str().is_empty() { Path::new(".") } else { self.directory };
        let root = root.canonicalize().context("the directory of the cases is gone")?;
        let directory =
            root.join(path).canonicalize().map_err(|error| wrong(&error.to_string()))?;
        if !directory.starts_with(&root) {
            return Err(wrong("which is not below the directory of the cases"));
        }
        Ok(directory)
    }
}

/// Runs a recorded call again and returns the differences.
async fn replayed(plugin: &Plugin, recording: &Arc<CallRecording>) -> crate::Result<Vec<String>> {
    let report = replay::run(plugin, recording).await.map_err(invalid)?;
    Ok(report.differences.iter().map(|difference| format!("replay: {difference}")).collect())
}

impl PreparedCase {
    pub(super) async fn call(
        &self,
        case: &TestCase,
        output: Option<&Arc<CaseOutput>>,
    ) -> Result<Completion, RefusedCall> {
        let context = CallContext {
            file_effects: FileEffects { is_dry_run: self.is_dry_run, shows_diffs: false },
            progress: output.map(|output| Arc::clone(output) as Arc<dyn ProgressSink>),
            log: output.map(|output| Arc::clone(output) as Arc<dyn LogSink>),
            ..CallContext::new("case")
        };
        let arguments = serde_json::to_vec(&case.arguments).unwrap_or_default();
        self.toolset.call(&case.tool, Some(&arguments), &context).await
    }

    /// Calls the tool of a case to measure its duration. Returns whether the call returned a value.
    pub async fn succeeds(&self, case: &TestCase) -> bool {
        let ended = self.call(case, None).await;
        ended.is_ok_and(|completion| matches!(completion.outcome, cofferdam_tool::Outcome::Ok(_)))
    }

    pub fn definition(&self, tool: &str) -> Option<&cofferdam_tool::ToolDefinition> {
        self.toolset.definition(tool).ok().map(|definition| &**definition)
    }
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::invalid(error.to_string())
}
