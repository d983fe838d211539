//! File-access tools: a model works on the files of one store or of several (`FILE-34` to
//! `FILE-47`).
//!
//! The module offers nine tools as a [`ToolSource`], like those of any plugin. Their answers,
//! refusals included, are ordinary results for the model and never a tool error (`FILE-43`). The
//! rules in `docs/rules/files.md` fix the wording of all answers except for failures of the store
//! itself. Each call of a tool is one operation on the store: other callers see its change
//! completely or not yet. Concurrent changes of one file run one after another, whatever their
//! number.
//!
//! With one store, paths start at its root. With several, the root has one directory for each
//! store, with the name of the store.
//!
//! Limits: [`FileAccessOptions`] bounds the size of an answer, and the quota bounds the size of a
//! store. A file larger than 64 MiB can be read in lines but not edited.

mod declarations;
mod edit;
mod lines;
mod operations;
mod requests;
mod stores;
mod turns;

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use cofferdam_tool::declaration::{DeclarationError, check_declarations};
use cofferdam_tool::invoke::FileEffects;
use cofferdam_tool::label::{Integrity, StatedBy, StatedLabels};
use cofferdam_tool::origin::ToolOrigin;
use cofferdam_tool::record::FileChange;
use cofferdam_tool::{
    CallContext, CallRecord, Completion, ErrorType, Outcome, Output, ToolCall, ToolDefinition,
    ToolError, ToolName, ToolSource,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::declarations::FileTool;
use self::edit::TRIES_MAX;
use self::requests::FileToolRequest;
pub use self::stores::{ApprovalRule, ToolAlias, UnknownToolWord};
use self::stores::{Failures, StoreAddress, Views};
use self::turns::FilePermit;
use crate::{
    Budget, FileError, FileStore, PathPatterns, SearchCaps, SharedStore, StorePath, StoreSharing,
    Transaction,
};

/// Maximum memory for changes that a call makes in an overlay first, in bytes: twice the largest
/// file that can be edited.
const CHANGED_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Globs of the paths that are hidden from the tools by default.
const HIDDEN: [&str; 3] = [".git", ".env", ".env.*"];

/// Options of the tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct FileAccessOptions {
    /// Offers only the tools that change nothing (`FILE-45`).
    pub is_read_only: bool,
    /// Requires a user's approval to delete.
    pub require_delete_approval: bool,
    /// Requires a user's approval for every other tool that changes something.
    pub require_write_approval: bool,
    /// Exceptions to these two options. The first rule that matches a call decides.
    pub approvals: Vec<ApprovalRule>,
    /// Paths that the tools neither list, search, read nor write. The default hides version control
    /// and files with secrets.
    pub hidden: PathPatterns,
    /// Paths that the tools do not change.
    pub read_only: PathPatterns,
    /// Maximum length of the content in one answer, in bytes (`FILE-35`).
    pub read_bytes_max: u64,
    /// Maximum number of entries of one listing (`FILE-33`).
    pub entries_max: usize,
    /// Limits of the results of one search.
    pub search: SearchCaps,
    /// Sharing of the store between sessions: one store for all, or a directory in it for each
    /// session.
    pub sharing: StoreSharing,
}

impl Default for FileAccessOptions {
    fn default() -> Self {
        Self {
            is_read_only: false,
            require_delete_approval: true,
            require_write_approval: false,
            approvals: Vec::new(),
            // A test checks that these patterns are valid.
            hidden: PathPatterns::new(HIDDEN.map(str::to_owned).to_vec()).unwrap_or_default(),
            read_only: PathPatterns::default(),
            read_bytes_max: 1_048_576,
            entries_max: 10_000,
            search: SearchCaps::default(),
            sharing: StoreSharing::Shared,
        }
    }
}

/// A store that the tools work on.
pub struct FileAccessStore {
    /// Name shown to users and, if there are several stores, to models.
    pub name: String,
    /// Store with the files.
    pub store: Arc<dyn FileStore>,
    /// Options of the tools for this store.
    pub options: FileAccessOptions,
}

/// File-access tools over one or several stores.
pub struct FileAccessTools {
    name: String,
    /// Digest of the locations of the stores.
    location: Option<String>,
    stores: Vec<FileAccessStore>,
    instructions: String,
    definitions: Arc<[Arc<ToolDefinition>]>,
}

/// Reason why several stores cannot be offered together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileAccessError {
    /// Two stores have the same name, or a name is not one segment of a path.
    #[error("`{name}` cannot be the name of a file store beside others")]
    Name {
        /// Rejected name.
        name: String,
    },
    /// The list of stores is empty.
    #[error("there is no file store")]
    NoStore,
    /// A declaration of the tools is invalid. Tests ensure that this does not happen.
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
}

/// State of one call.
struct CallWork<'a> {
    views: Views<'a>,
}

/// Answer of a tool, with its changes.
struct ToolResult {
    value: Value,
    changed: Vec<FileChange>,
    /// Descriptions of failures for the operator.
    failures: Vec<String>,
}

impl FileAccessTools {
    /// Creates the tools over `store`, which users know as `name`. A read-only store gets the tools
    /// of the read-only mode.
    ///
    /// # Errors
    /// Returns an error if a tool's own declaration is invalid, which tests rule out.
    pub fn new(
        name: impl Into<String>,
        store: Arc<dyn FileStore>,
        mut options: FileAccessOptions,
    ) -> Result<Self, DeclarationError> {
        options.is_read_only |= store.is_read_only();
        let name = name.into();
        Self::offering(name.clone(), vec![FileAccessStore { name, store, options }])
    }

    /// Creates the tools over `stores`. One store gets the same tools as with [`new`](Self::new),
    /// under its own name. Several stores, which users know together as `name`, each become a
    /// directory with the name of the store.
    ///
    /// # Errors
    /// See [`FileAccessError`].
    pub fn over(
        name: impl Into<String>,
        mut stores: Vec<FileAccessStore>,
    ) -> Result<Self, FileAccessError> {
        for store in &mut stores {
            store.options.is_read_only |= store.store.is_read_only();
        }
        let name = match stores.as_slice() {
            [] => return Err(FileAccessError::NoStore),
            [store] => store.name.clone(),
            _ => name.into(),
        };
        for (index, FileAccessStore { name, .. }) in stores.iter().enumerate() {
            let is_taken =
                stores.iter().take(index).any(|other| other.name.eq_ignore_ascii_case(name));
            if stores.len() > 1 && (is_taken || StorePath::ROOT.child(name).is_err()) {
                return Err(FileAccessError::Name { name: name.clone() });
            }
        }
        Ok(Self::offering(name, stores)?)
    }

    /// Sets a digest of the locations of the stores. It becomes a part of the tools' origin, so
    /// that an approval does not hold for other stores of the same name.
    #[must_use]
    pub fn located(mut self, digest: impl Into<String>) -> Self {
        self.location = Some(digest.into());
        self
    }

    fn offering(name: String, stores: Vec<FileAccessStore>) -> Result<Self, DeclarationError> {
        let is_read_only = stores.iter().all(|store| store.options.is_read_only);
        let offered = FileTool::ALL.iter().filter(|tool| !(is_read_only && tool.writes()));
        let declarations: Vec<_> = offered.map(|tool| tool.declaration()).collect();
        let definitions = check_declarations(&declarations)?.into_iter().map(Arc::new).collect();
        let instructions = declarations::instructions(&stores);
        Ok(Self { name, location: None, stores, instructions, definitions })
    }

    /// Creates all nine tools even for a read-only store. There, the tools that write return a
    /// refusal.
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    pub fn with_every_tool(
        name: impl Into<String>,
        store: Arc<dyn FileStore>,
        options: FileAccessOptions,
    ) -> Result<Self, DeclarationError> {
        let (name, options) = (name.into(), FileAccessOptions { is_read_only: false, ..options });
        Self::offering(name.clone(), vec![FileAccessStore { name, store, options }])
    }

    /// Returns the stores that the tools work on.
    #[must_use]
    pub fn stores(&self) -> &[FileAccessStore] {
        &self.stores
    }

    /// Runs one call. Makes the changes in an overlay first if the call is a dry run or must report
    /// them.
    async fn answer(
        &self,
        call: &ToolCall<'_>,
        context: &CallContext,
    ) -> Result<ToolResult, ToolError> {
        let unknown =
            || ToolError::new(ErrorType::PluginUnavailable).with_detail("no such file-access tool");
        let tool = FileTool::named(call.tool.name.as_str()).ok_or_else(unknown)?;
        let request = || {
            let arguments = Value::Object(call.arguments.value().clone());
            tool.request(arguments).map_err(|error| {
                // Cannot happen: the arguments were decoded by the declared schema.
                ToolError::new(ErrorType::PluginUnavailable).with_detail(error.to_string())
            })
        };
        let effects = context.file_effects;
        let failures = Failures::default();
        let views = Views::new(&self.stores, None, context, &failures);
        let first = request()?;
        // A call made by a plugin works on the files of the plugin's call, so it delays only other
        // calls that this plugin makes at the same time.
        let _turn = turn(&views, &first).await;
        if context.outer.is_some() || effects == FileEffects::default() || !tool.writes() {
            let mut answer = CallWork { views }.run(first).await;
            answer.failures = failures.take();
            return Ok(answer);
        }
        let mut request_again = Some(first);
        let mut tries_left = TRIES_MAX;
        loop {
            let transaction = Transaction::new(Budget::new(CHANGED_BYTES_MAX));
            let views = Views::new(&self.stores, Some(&transaction), context, &failures);
            let request = request_again.take().map_or_else(&request, Ok)?;
            let mut answer = CallWork { views }.run(request).await;
            tries_left = tries_left.saturating_sub(1);
            match transaction.finish(effects).await {
                Ok(changed) => {
                    answer.changed = changed;
                    answer.failures = failures.take();
                    return Ok(answer);
                }
                Err(error)
                    if matches!(error.source, FileError::Conflict { .. }) && tries_left > 0 => {}
                Err(error) => return Err(error.into()),
            }
            tokio::task::yield_now().await;
        }
    }
}

/// Waits for the permit of the file that `request` changes, if it changes one. Ignores invalid
/// names here, because the operation rejects them later.
async fn turn(views: &Views<'_>, request: &FileToolRequest) -> Option<FilePermit> {
    let StoreAddress { view, path } = views.file(request.changed_file()?).ok()?;
    Some(FilePermit::wait(view.store.locate(&path)).await)
}

#[async_trait]
impl ToolSource for FileAccessTools {
    fn name(&self) -> &str {
        &self.name
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn origin(&self, _: &ToolName) -> ToolOrigin {
        match &self.location {
            Some(digest) => ToolOrigin::program_over(&self.name, digest),
            None => ToolOrigin::program(&self.name),
        }
    }

    fn supports_dry_run(&self, _: &ToolName) -> bool {
        true
    }

    fn file_stores(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        let writable = self.stores.iter().filter(|store| !store.options.is_read_only);
        let shared = |store: &FileAccessStore| -> Arc<dyn Any + Send + Sync> {
            Arc::new(SharedStore(Arc::clone(&store.store)))
        };
        writable.map(shared).collect()
    }

    fn instructions(&self) -> Option<&str> {
        Some(&self.instructions)
    }

    fn needs_approval(&self, tool: &ToolName) -> bool {
        let may_need = |tool| self.stores.iter().any(|store| store.options.may_need_approval(tool));
        FileTool::named(tool.as_str()).is_some_and(may_need)
    }

    fn needs_approval_for(&self, tool: &ToolName, arguments: &Map<String, Value>) -> bool {
        FileTool::named(tool.as_str())
            .is_some_and(|tool| stores::needs_approval(&self.stores, tool, arguments))
    }

    /// Marks reads as untrusted: other people or programs often write the content and the names of
    /// files. Reading has no other effect, so it is safe even if untrusted content suggests it.
    /// Writing is not.
    fn labels(&self, tool: &ToolName) -> StatedLabels {
        match FileTool::named(tool.as_str()) {
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
            () = context.cancelled() => None,
            answered = self.answer(&call, context) => Some(answered),
        };
        let mut record = CallRecord::begun(context);
        let outcome = match answered {
            None => Outcome::Cancelled,
            Some(Err(error)) => Outcome::Error(error),
            Some(Ok(answer)) => {
                record.set_files(answer.changed);
                record.store_failures = answer.failures;
                Outcome::Ok(Output::Value(answer.value))
            }
        };
        record.tool = Some(call.tool.name.clone());
        record.phases.run = started.elapsed();
        record.set_outcome(&outcome);
        Completion::new(outcome, record)
    }
}

#[cfg(test)]
mod tests;
