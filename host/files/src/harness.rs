//! The file-access tools: a model works on the files of one store (`FILE-34` to `FILE-47`).
//!
//! Nine tools, offered as a [`ToolSource`] like any plugin's. What they answer, refusals included, is ordinary text for the
//! model and never a tool error (`FILE-43`); only a store that fails by itself says so in other words than the contract's.
//! A tool is one operation on the store: others see its change as a whole or not at all. Changes of one file by calls at the
//! same time are made one after another, whatever their number.
//!
//! Limits: what one answer holds is bounded by [`FileAccessOptions`], what a store holds by its quota. A file larger than 64 MiB
//! can be read in lines but not edited.

mod declarations;
mod edit;
mod lines;
mod operations;
mod requests;
mod turns;

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use cofferdam_tool::{
    CallContext, CallRecord, Completion, DeclarationError, ErrorType, FileAccess, FileChange, FileEffects,
    Integrity, Outcome, Output, StatedBy, StatedLabels, ToolCall, ToolDefinition, ToolError, ToolName,
    ToolSource, check_declarations,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::declarations::{INSTRUCTIONS, Tool};
use self::edit::TRIES_MAX;
use self::requests::Request;
use self::turns::Turn;
use crate::{Budget, FileError, FileStore, SearchCaps, Sharing, StorePath, Transaction};

/// The memory that the changes of a call may take that are kept apart first, in bytes: twice the largest file that is
/// edited.
const CHANGED_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// How the tools behave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct FileAccessOptions {
    /// Offer only the tools that change nothing (`FILE-45`).
    pub is_read_only: bool,
    /// Deleting needs a person's approval.
    pub require_delete_approval: bool,
    /// So does every other tool that changes something.
    pub require_write_approval: bool,
    /// The longest content that one answer holds, in bytes (`FILE-35`).
    pub read_bytes_max: u64,
    /// Entries of one listing (`FILE-33`).
    pub entries_max: usize,
    /// What one search gives.
    pub search: SearchCaps,
    /// Whether all sessions see the whole store, or each a directory of its own in it.
    pub sharing: Sharing,
}

impl Default for FileAccessOptions {
    fn default() -> Self {
        Self {
            is_read_only: false,
            require_delete_approval: true,
            require_write_approval: false,
            read_bytes_max: 1_048_576,
            entries_max: 10_000,
            search: SearchCaps::default(),
            sharing: Sharing::Shared,
        }
    }
}

/// The file-access tools over one store.
pub struct FileAccessTools {
    name: String,
    store: Arc<dyn FileStore>,
    options: FileAccessOptions,
    definitions: Arc<[Arc<ToolDefinition>]>,
}

/// What one call works with.
struct Work<'a> {
    name: &'a str,
    store: &'a Arc<dyn FileStore>,
    options: &'a FileAccessOptions,
}

/// What a tool has to say, and what it changed.
struct Answer {
    value: Value,
    changed: Vec<FileChange>,
}

impl FileAccessTools {
    /// The tools over `store`, which people call `name`. A store that is read-only gets the tools of the read-only mode.
    ///
    /// # Errors
    /// None of the tools' own declarations is refused by the rules for declarations; that this is so is tested.
    pub fn new(
        name: impl Into<String>,
        store: Arc<dyn FileStore>,
        mut options: FileAccessOptions,
    ) -> Result<Self, DeclarationError> {
        options.is_read_only |= store.is_read_only();
        Self::offering(name.into(), store, options)
    }

    fn offering(
        name: String,
        store: Arc<dyn FileStore>,
        options: FileAccessOptions,
    ) -> Result<Self, DeclarationError> {
        let offered = Tool::ALL.iter().filter(|tool| !(options.is_read_only && tool.writes()));
        let declarations: Vec<_> = offered.map(|tool| tool.declaration()).collect();
        let definitions = check_declarations(&declarations)?.into_iter().map(Arc::new).collect();
        Ok(Self { name, store, options, definitions })
    }

    /// All nine tools, whatever the store is: those that write say that they may not.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_every_tool(
        name: impl Into<String>,
        store: Arc<dyn FileStore>,
        options: FileAccessOptions,
    ) -> Result<Self, DeclarationError> {
        Self::offering(name.into(), store, FileAccessOptions { is_read_only: false, ..options })
    }

    /// The store that the tools work on.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn FileStore> {
        &self.store
    }

    /// Runs one call. The changes of a dry run, and those that are to be shown, are made in an overlay first.
    async fn answer(&self, call: &ToolCall<'_>, context: &CallContext) -> Result<Answer, ToolError> {
        let unknown = || ToolError::new(ErrorType::PluginUnavailable).with_detail("no such file-access tool");
        let tool = Tool::named(call.tool.name.as_str()).ok_or_else(unknown)?;
        let request = || {
            let arguments = Value::Object(call.arguments.value().clone());
            tool.request(arguments).map_err(|error| {
                // Decoding by the declared schema has seen to that.
                ToolError::new(ErrorType::PluginUnavailable).with_detail(error.to_string())
            })
        };
        let scope = |store| self.options.sharing.scope(store, context.session.as_deref());
        let effects = context.file_effects;
        // What a plugin has called is a part of its call; what a model has called is an operation of its own (`FILE-23`).
        let outer = context.outer.as_ref().and_then(|outer| outer.files.downcast_ref::<Transaction>());
        if let Some(outer) = outer {
            let view = outer.view(&self.name, &self.store, FileAccess::ReadWrite);
            return Ok(self.work(&scope(Arc::new(view))).run(request()?).await);
        }
        let store = scope(Arc::clone(&self.store));
        let first = request()?;
        let _turn = turn(&*store, &first).await;
        if effects == FileEffects::default() || !tool.writes() {
            return Ok(self.work(&store).run(first).await);
        }
        let mut request_again = Some(first);
        let mut tries_left = TRIES_MAX;
        loop {
            let transaction = Transaction::new(Budget::new(CHANGED_BYTES_MAX));
            let view: Arc<dyn FileStore> =
                Arc::new(transaction.view(&self.name, &store, FileAccess::ReadWrite));
            let request = request_again.take().map_or_else(&request, Ok)?;
            let mut answer = self.work(&view).run(request).await;
            tries_left = tries_left.saturating_sub(1);
            match transaction.finish(effects).await {
                Ok(changed) => {
                    answer.changed = changed;
                    return Ok(answer);
                }
                Err(error) if matches!(error.source, FileError::Conflict { .. }) && tries_left > 0 => {}
                Err(error) => return Err(error.into()),
            }
            tokio::task::yield_now().await;
        }
    }

    fn work<'a>(&'a self, store: &'a Arc<dyn FileStore>) -> Work<'a> {
        Work { name: &self.name, store, options: &self.options }
    }
}

/// Waits for the turn of the file that `request` changes, if it changes one. A name that no file can have is refused later.
async fn turn(store: &dyn FileStore, request: &Request) -> Option<Turn> {
    let path = StorePath::file(request.changed_file()?).ok()?;
    Some(Turn::wait(store.locate(&path)).await)
}

#[async_trait]
impl ToolSource for FileAccessTools {
    fn name(&self) -> &str {
        &self.name
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn instructions(&self) -> Option<&str> {
        Some(INSTRUCTIONS)
    }

    fn needs_approval(&self, tool: &ToolName) -> bool {
        match Tool::named(tool.as_str()) {
            Some(Tool::DeleteFile) => self.options.require_delete_approval,
            Some(tool) => tool.writes() && self.options.require_write_approval,
            None => false,
        }
    }

    /// What is in a file, and what it is called, was often written by somebody else. Reading does nothing else, so that it is
    /// safe whoever has suggested it; writing is not.
    fn labels(&self, tool: &ToolName) -> StatedLabels {
        match Tool::named(tool.as_str()) {
            Some(tool) if tool.writes() => StatedLabels::default(),
            _ => StatedLabels {
                source_integrity: Some(Integrity::Untrusted),
                accepts_untrusted: Some(true),
                ..StatedLabels::default()
            },
        }
    }

    fn states_for(&self) -> StatedBy {
        StatedBy::Program
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let started = Instant::now();
        let answered = tokio::select! {
            biased;
            () = context.given_up() => None,
            answered = self.answer(&call, context) => Some(answered),
        };
        let mut record = CallRecord::begun(context);
        let outcome = match answered {
            None => Outcome::Cancelled,
            Some(Err(error)) => Outcome::Error(error),
            Some(Ok(answer)) => {
                record.set_files(answer.changed);
                Outcome::Ok(Output::Value(answer.value))
            }
        };
        record.tool = Some(call.tool.name.clone());
        record.phases.run = started.elapsed();
        record.set_outcome(&outcome);
        Completion { outcome, record }
    }
}

#[cfg(test)]
mod tests;
