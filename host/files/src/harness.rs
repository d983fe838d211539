//! The file-access tools: a model works on the files of one store or of several (`FILE-34` to
//! `FILE-47`).
//!
//! Nine tools, offered as a [`ToolSource`] like any plugin's. What they answer, refusals included,
//! is ordinary text for the model and never a tool error (`FILE-43`); only a store that fails by
//! itself says so in other words than the contract's. A tool is one operation on the store: others
//! see its change as a whole or not at all. Changes of one file by calls at the same time are made
//! one after another, whatever their number.
//!
//! With one store, paths start at its root. With several, each store is a directory of that name in
//! the root.
//!
//! Limits: what one answer holds is bounded by [`FileAccessOptions`], what a store holds by its
//! quota. A file larger than 64 MiB can be read in lines but not edited.

mod declarations;
mod edit;
mod lines;
mod operations;
mod requests;
mod stores;
mod turns;

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use cofferdam_tool::declaration::{DeclarationError, check_declarations};
use cofferdam_tool::invoke::FileEffects;
use cofferdam_tool::label::{Integrity, StatedBy, StatedLabels};
use cofferdam_tool::record::FileChange;
use cofferdam_tool::{
    CallContext, CallRecord, Completion, ErrorType, Outcome, Output, ToolCall, ToolDefinition,
    ToolError, ToolName, ToolSource,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::declarations::Tool;
use self::edit::TRIES_MAX;
use self::requests::Request;
pub use self::stores::{ApprovalRule, ToolWord, UnknownToolWord};
use self::stores::{Failures, Place, Views};
use self::turns::Turn;
use crate::{
    Budget, FileError, FileStore, PathPatterns, SearchCaps, Sharing, StorePath, Transaction,
};

/// The memory that the changes of a call may take that are kept apart first, in bytes: twice the
/// largest file that is edited.
const CHANGED_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Globs that are hidden from the tools by default.
const HIDDEN: [&str; 3] = [".git", ".env", ".env.*"];

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
    /// Exceptions from these two. The first rule that fits a call decides.
    pub approvals: Vec<ApprovalRule>,
    /// Paths that the tools neither list, search, read nor write: version control and files with
    /// secrets, unless said otherwise.
    pub hidden: PathPatterns,
    /// Paths that the tools do not change.
    pub read_only: PathPatterns,
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
            approvals: Vec::new(),
            // They are valid, which is tested.
            hidden: PathPatterns::new(HIDDEN.map(str::to_owned).to_vec()).unwrap_or_default(),
            read_only: PathPatterns::default(),
            read_bytes_max: 1_048_576,
            entries_max: 10_000,
            search: SearchCaps::default(),
            sharing: Sharing::Shared,
        }
    }
}

/// A store that the tools work on.
pub struct FileAccessStore {
    /// Name for users and, beside other stores, for models.
    pub name: String,
    /// The store.
    pub store: Arc<dyn FileStore>,
    /// Options of the tools for this store.
    pub options: FileAccessOptions,
}

/// The file-access tools over one store or several.
pub struct FileAccessTools {
    name: String,
    stores: Vec<FileAccessStore>,
    instructions: String,
    definitions: Arc<[Arc<ToolDefinition>]>,
}

/// Reason why several stores cannot be offered together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileAccessError {
    /// Two stores have one name, or a name is not one segment of a path.
    #[error("`{name}` cannot be the name of a file store beside others")]
    Name {
        /// The name.
        name: String,
    },
    /// There is no store.
    #[error("there is no file store")]
    NoStore,
    /// A declaration of the tools is refused, which is tested not to happen.
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
}

/// What one call works with.
struct Work<'a> {
    views: Views<'a>,
}

/// What a tool has to say, and what it changed.
struct Answer {
    value: Value,
    changed: Vec<FileChange>,
    /// Descriptions of failures for the operator.
    failures: Vec<String>,
}

impl FileAccessTools {
    /// The tools over `store`, which people call `name`. A store that is read-only gets the tools
    /// of the read-only mode.
    ///
    /// # Errors
    /// None of the tools' own declarations is refused by the rules for declarations; that this is
    /// so is tested.
    pub fn new(
        name: impl Into<String>,
        store: Arc<dyn FileStore>,
        mut options: FileAccessOptions,
    ) -> Result<Self, DeclarationError> {
        options.is_read_only |= store.is_read_only();
        let name = name.into();
        Self::offering(name.clone(), vec![FileAccessStore { name, store, options }])
    }

    /// The tools over `stores`. With one they are those of [`new`](Self::new) under its name; with
    /// several, which people call `name` together, each store is a directory of its name.
    ///
    /// # Errors
    /// [`FileAccessError`].
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

    fn offering(name: String, stores: Vec<FileAccessStore>) -> Result<Self, DeclarationError> {
        let is_read_only = stores.iter().all(|store| store.options.is_read_only);
        let offered = Tool::ALL.iter().filter(|tool| !(is_read_only && tool.writes()));
        let declarations: Vec<_> = offered.map(|tool| tool.declaration()).collect();
        let definitions = check_declarations(&declarations)?.into_iter().map(Arc::new).collect();
        let instructions = declarations::instructions(&stores);
        Ok(Self { name, stores, instructions, definitions })
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
        let (name, options) = (name.into(), FileAccessOptions { is_read_only: false, ..options });
        Self::offering(name.clone(), vec![FileAccessStore { name, store, options }])
    }

    /// The stores that the tools work on.
    #[must_use]
    pub fn stores(&self) -> &[FileAccessStore] {
        &self.stores
    }

    /// Runs one call. The changes of a dry run, and those that are to be shown, are made in an
    /// overlay first.
    async fn answer(
        &self,
        call: &ToolCall<'_>,
        context: &CallContext,
    ) -> Result<Answer, ToolError> {
        let unknown =
            || ToolError::new(ErrorType::PluginUnavailable).with_detail("no such file-access tool");
        let tool = Tool::named(call.tool.name.as_str()).ok_or_else(unknown)?;
        let request = || {
            let arguments = Value::Object(call.arguments.value().clone());
            tool.request(arguments).map_err(|error| {
                // Decoding by the declared schema has seen to that.
                ToolError::new(ErrorType::PluginUnavailable).with_detail(error.to_string())
            })
        };
        let effects = context.file_effects;
        let failures = Failures::default();
        let views = Views::new(&self.stores, None, context, &failures);
        let first = request()?;
        // A call of a plugin's call has the files of that one, and holds nobody up.
        let _turn = if context.outer.is_none() { turn(&views, &first).await } else { None };
        if context.outer.is_some() || effects == FileEffects::default() || !tool.writes() {
            let mut answer = Work { views }.run(first).await;
            answer.failures = failures.take();
            return Ok(answer);
        }
        let mut request_again = Some(first);
        let mut tries_left = TRIES_MAX;
        loop {
            let transaction = Transaction::new(Budget::new(CHANGED_BYTES_MAX));
            let views = Views::new(&self.stores, Some(&transaction), context, &failures);
            let request = request_again.take().map_or_else(&request, Ok)?;
            let mut answer = Work { views }.run(request).await;
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

/// Waits for the turn of the file that `request` changes, if it changes one. A name that no file
/// can have is refused later.
async fn turn(views: &Views<'_>, request: &Request) -> Option<Turn> {
    let Place { view, path } = views.file(request.changed_file()?).ok()?;
    Some(Turn::wait(view.store.locate(&path)).await)
}

#[async_trait]
impl ToolSource for FileAccessTools {
    fn name(&self) -> &str {
        &self.name
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn supports_dry_run(&self, _: &ToolName) -> bool {
        true
    }

    fn instructions(&self) -> Option<&str> {
        Some(&self.instructions)
    }

    fn needs_approval(&self, tool: &ToolName) -> bool {
        let may_need = |tool| self.stores.iter().any(|store| store.options.may_need_approval(tool));
        Tool::named(tool.as_str()).is_some_and(may_need)
    }

    fn needs_approval_for(&self, tool: &ToolName, arguments: &Map<String, Value>) -> bool {
        Tool::named(tool.as_str())
            .is_some_and(|tool| stores::needs_approval(&self.stores, tool, arguments))
    }

    /// What is in a file, and what it is called, was often written by somebody else. Reading does
    /// nothing else, so that it is safe whoever has suggested it; writing is not.
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
                record.store_failures = answer.failures;
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
