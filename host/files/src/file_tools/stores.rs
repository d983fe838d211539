//! The stores behind the tools: which store a path refers to, which paths are visible, and which
//! calls need approval.

use std::sync::Arc;

use cofferdam_tool::{CallContext, FileAccess};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::declarations::FileTool;
use super::operations::OperationRefusal;
use super::{FileAccessOptions, FileAccessStore};
use crate::path::quoted;
use crate::{
    Access, AccessOutcome, AuditedStore, FileStore, NameRules, PathPatterns, ReadOnly,
    RestrictedStore, StorePath, Transaction,
};

/// Maximum number of different failures in one record.
const FAILURES_MAX: usize = 8;

/// Decides for some calls whether the user has to approve them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ApprovalRule {
    /// Names of the tools, with or without `file_access_`. If empty, the rule applies to all tools.
    #[serde(default)]
    pub tools: Vec<ToolAlias>,
    /// Paths relative to the root of the store. If empty, the rule applies to all paths.
    #[serde(default)]
    pub paths: PathPatterns,
    /// True if the calls need approval.
    pub needs_approval: bool,
}

/// Name of a file-access tool in a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ToolAlias(FileTool);

/// Error: a name in a rule is not a file-access tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a file-access tool; expected one of save_file, read_file, delete_file, list_files, search_files, \
         read_lines, replace, replace_lines, create_directory"
)]
pub struct UnknownToolWord(String);

impl TryFrom<String> for ToolAlias {
    type Error = UnknownToolWord;

    fn try_from(name: String) -> Result<Self, UnknownToolWord> {
        FileTool::named_in_rule(&name).map(Self).ok_or(UnknownToolWord(name))
    }
}

impl From<ToolAlias> for String {
    fn from(word: ToolAlias) -> Self {
        word.0.name().to_owned()
    }
}

impl ApprovalRule {
    fn is_about(&self, tool: FileTool) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|word| word.0 == tool)
    }

    /// Returns true if the rule decides about a call of `tool` with `path`. A rule that asks for
    /// approval also decides about a listing or a search that may reach its paths.
    fn decides(&self, tool: FileTool, path: &str) -> bool {
        let may_come_to = tool.reads_below() && self.needs_approval;
        self.is_about(tool) && (self.paths.is_empty() || may_come_to || self.paths.matches(path))
    }
}

impl FileAccessOptions {
    /// Returns true if a call of `tool` needs approval unless a rule says otherwise.
    fn needs_by_default(&self, tool: FileTool) -> bool {
        match tool {
            FileTool::DeleteFile => self.require_delete_approval,
            tool => tool.writes() && self.require_write_approval,
        }
    }

    /// Returns true if some call of `tool` may need approval.
    pub(super) fn may_need_approval(&self, tool: FileTool) -> bool {
        let by_rule = self.approvals.iter().any(|rule| rule.needs_approval && rule.is_about(tool));
        by_rule || self.needs_by_default(tool)
    }

    /// Returns true if a call of `tool` with `path` needs approval.
    fn needs_approval(&self, tool: FileTool, path: &str) -> bool {
        let rule = self.approvals.iter().find(|rule| rule.decides(tool, path));
        rule.map_or_else(|| self.needs_by_default(tool), |rule| rule.needs_approval)
    }
}

/// Failures of services during one call, for the operator.
#[derive(Clone, Default)]
pub(super) struct Failures(Arc<Mutex<Vec<String>>>);

impl Failures {
    fn note(&self, access: &Access<'_>) {
        let AccessOutcome::Failed(error) = access.outcome else { return };
        let Some(failure) = error.for_operator() else { return };
        let mut known = self.0.lock();
        if known.len() < FAILURES_MAX && !known.contains(&failure) {
            known.push(failure);
        }
    }

    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// One store, as a call sees it.
pub(super) struct View<'a> {
    pub(super) name: &'a str,
    pub(super) options: &'a FileAccessOptions,
    pub(super) store: Arc<dyn FileStore>,
}

/// Views of all stores in one call.
pub(super) struct Views<'a>(pub(super) Vec<View<'a>>);

/// A path in one of the stores.
pub(super) struct StoreAddress<'v> {
    pub(super) view: &'v View<'v>,
    pub(super) path: StorePath,
}

/// Directory of a listing or search.
pub(super) enum SearchRoot<'v> {
    /// A directory in one store.
    In(StoreAddress<'v>),
    /// The root above several stores.
    AboveAll,
}

impl<'a> Views<'a> {
    /// Creates the views of `stores` for a call with `context`. If there is a `transaction`,
    /// changes go into it.
    pub(super) fn new(
        stores: &'a [FileAccessStore],
        transaction: Option<&Transaction>,
        context: &CallContext,
        failures: &Failures,
    ) -> Self {
        // A call made by a plugin is a part of the plugin's call. A call made by a model is an
        // operation by itself (`FILE-23`).
        let outer =
            context.outer.as_ref().and_then(|outer| outer.files.downcast_ref::<Transaction>());
        let view = |part: &'a FileAccessStore| {
            let FileAccessStore { name, store, options } = part;
            let scope = |store| options.sharing.scope(store, context.session.as_deref());
            let store = match (outer, transaction) {
                (Some(outer), _) => scope(Arc::new(outer.view(name, store, FileAccess::ReadWrite))),
                (None, None) => scope(Arc::clone(store)),
                (None, Some(transaction)) => {
                    let scoped = scope(Arc::clone(store));
                    Arc::new(transaction.view(name, &scoped, FileAccess::ReadWrite))
                }
            };
            let store = match options.is_read_only && stores.len() > 1 {
                true => Arc::new(ReadOnly::new(store)),
                false => store,
            };
            let store: Arc<dyn FileStore> = match options.hidden.is_empty()
                && options.read_only.is_empty()
            {
                true => store,
                false => {
                    let (hidden, read_only) = (options.hidden.clone(), options.read_only.clone());
                    Arc::new(RestrictedStore::new(store, hidden, read_only))
                }
            };
            // Stores in directories of this machine have no service behind them.
            let store: Arc<dyn FileStore> = match store.root_ambient() {
                Some(_) => store,
                None => {
                    let failures = failures.clone();
                    Arc::new(AuditedStore::new(store, move |access| failures.note(access)))
                }
            };
            View { name, options, store }
        };
        Self(stores.iter().map(view).collect())
    }

    /// Returns the options that apply to an answer about all stores.
    pub(super) fn options(&self) -> Option<&'a FileAccessOptions> {
        self.0.first().map(|view| view.options)
    }

    /// Returns the address of the file `given`.
    pub(super) fn file(&self, given: &str) -> Result<StoreAddress<'_>, OperationRefusal> {
        if let [view] = self.0.as_slice() {
            let path = StorePath::file_under(given, view.store.names())
                .map_err(OperationRefusal::reason)?;
            return Ok(StoreAddress { view, path });
        }
        let path =
            StorePath::file_under(given, NameRules::Native).map_err(OperationRefusal::reason)?;
        self.address(given, &path)
    }

    /// Returns the directory `given`, or the root if it is `None`.
    pub(super) fn directory(
        &self,
        given: Option<&str>,
    ) -> Result<SearchRoot<'_>, OperationRefusal> {
        let given = given.unwrap_or_default();
        if let [view] = self.0.as_slice() {
            let path = StorePath::directory_under(given, view.store.names())
                .map_err(OperationRefusal::reason)?;
            return Ok(SearchRoot::In(StoreAddress { view, path }));
        }
        let path = StorePath::directory_under(given, NameRules::Native)
            .map_err(OperationRefusal::reason)?;
        if path.is_root() {
            Ok(SearchRoot::AboveAll)
        } else {
            self.address(given, &path).map(SearchRoot::In)
        }
    }

    /// Returns the address of a path that begins with the name of a store.
    fn address(&self, given: &str, path: &StorePath) -> Result<StoreAddress<'_>, OperationRefusal> {
        let name = path.segments().next().unwrap_or_default();
        let Some(view) = self.0.iter().find(|view| view.name == name) else {
            let names: Vec<_> = self.0.iter().map(|view| format!("'{}/'", view.name)).collect();
            return Err(OperationRefusal::Reason(format!(
                "there is no store '{}'. Paths must start with one of {}.",
                quoted(name),
                names.join(", ")
            )));
        };
        let root = StorePath::ROOT.child(view.name).map_err(OperationRefusal::reason)?;
        let below = path.below(&root).unwrap_or_default();
        // Checks names by the rules of the store. Errors quote the path as given.
        StorePath::directory_under(given, view.store.names()).map_err(OperationRefusal::reason)?;
        let path = StorePath::directory_under(below, view.store.names())
            .map_err(OperationRefusal::reason)?;
        Ok(StoreAddress { view, path })
    }

    /// Returns the prefix of paths in `view`.
    pub(super) fn prefix(&self, view: &View<'_>) -> String {
        if self.0.len() == 1 { String::new() } else { format!("{}/", view.name) }
    }
}

/// Returns true if the user has to approve a call of `tool` with the decoded `arguments`.
pub(super) fn needs_approval(
    stores: &[FileAccessStore],
    tool: FileTool,
    arguments: &Map<String, Value>,
) -> bool {
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str);
    let given = argument("file_name").or_else(|| argument("directory")).unwrap_or_default();
    let Ok(path) = StorePath::directory_under(given, NameRules::Native) else {
        // Such a call is refused whatever the user answers.
        return stores.iter().any(|store| store.options.may_need_approval(tool));
    };
    if let [store] = stores {
        return store.options.needs_approval(tool, path.as_str());
    }
    let (name, below) = path.as_str().split_once('/').unwrap_or((path.as_str(), ""));
    match stores.iter().find(|store| store.name == name) {
        Some(store) => store.options.needs_approval(tool, below),
        None => stores.iter().any(|store| store.options.needs_approval(tool, "")),
    }
}
