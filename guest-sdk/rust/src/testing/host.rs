//! A host in memory that grants stores, secrets, other tools and a client to the tools of a test.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::rc::Rc;

use serde_json::Value;

use super::stores::Stores;
use crate::client::log::Level;
use crate::client::{self, Answer, Kind, Question};
use crate::{Content, Tool, ToolFailure, content, tool_calls, toolbox};

/// Grants for the tools that a test calls, and the reports of these tools.
///
/// ```
/// use cofferdam_sdk::files::Store;
/// use cofferdam_sdk::testing::Host;
/// use cofferdam_sdk::{ToolFailure, call, json, tool};
///
/// /// Counts the lines of a note and keeps the number beside it.
/// #[tool]
/// fn count_lines(path: String) -> Result<usize, ToolFailure> {
///     let store = Store::named("notes");
///     let lines = store.read_to_string(&path)?.lines().count();
///     call::progress(1.0, Some(1.0), Some("counted"));
///     store.create(&format!("{path}.lines"), lines.to_string())?;
///     Ok(lines)
/// }
///
/// let host = Host::new().file("notes", "a.txt", "one\ntwo");
/// assert_eq!(host.call::<count_lines>(json!({"path": "a.txt"})).unwrap(), 2);
/// assert_eq!(host.text("notes", "a.txt.lines").as_deref(), Some("2"));
/// assert_eq!(host.progress()[0].done, 1.0);
/// // What a call that fails has changed is gone, as with the real host.
/// assert!(host.call::<count_lines>(json!({"path": "a.txt"})).is_err());
/// ```
///
/// Limits, schemas and permissions exist only in the real host; `cofferdam test` runs a component
/// with them.
#[derive(Clone, Default)]
pub struct Host {
    state: Rc<RefCell<State>>,
}

/// Report made with [`call::progress`](crate::call::progress).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Work done so far.
    pub done: f64,
    /// Total work.
    pub total: Option<f64>,
    /// Description of the current work.
    pub message: Option<String>,
}

type ToolFunction = Rc<dyn Fn(Value) -> Result<Vec<Content>, ToolFailure>>;
type EndedCall = (u32, Result<Vec<Content>, tool_calls::Error>);
type Answers = Rc<dyn Fn(Question) -> Result<Answer, client::Error>>;

/// Calls that the current call has started.
#[derive(Default)]
struct StartedCalls {
    count: u32,
    /// Calls that the tool has not waited for.
    ended: Vec<EndedCall>,
}

#[derive(Default)]
struct State {
    stores: Stores,
    secrets: BTreeMap<String, String>,
    tools: BTreeMap<String, ToolFunction>,
    started: StartedCalls,
    answers: Option<Answers>,
    progress: Vec<Progress>,
    log: Vec<(Level, String)>,
}

thread_local! {
    /// Host of the current call of this thread.
    static CURRENT: RefCell<Option<Host>> = const { RefCell::new(None) };
}

impl Host {
    /// Creates a host that grants nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an empty, writable store.
    #[must_use]
    pub fn store(self, name: &str) -> Self {
        self.state.borrow_mut().stores.add(name);
        self
    }

    /// Adds a file to a store. Creates a writable store if it is missing.
    ///
    /// # Panics
    /// Panics if the path breaks a rule of stores.
    #[must_use]
    #[expect(clippy::panic, reason = "the author of the test is to see it")]
    pub fn file(self, store: &str, path: &str, content: impl AsRef<[u8]>) -> Self {
        let written = {
            let mut state = self.state.borrow_mut();
            state.stores.add(store);
            state.stores.write(store, path, content.as_ref(), true)
        };
        if let Err(error) = written {
            panic!("`{path}` cannot be a file of `{store}`: {error}");
        }
        self
    }

    /// Makes a store read-only.
    #[must_use]
    pub fn read_only(self, store: &str) -> Self {
        self.state.borrow_mut().stores.protect(store);
        self
    }

    /// Adds a secret that the tools may read.
    #[must_use]
    pub fn secret(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.state.borrow_mut().secrets.insert(name.into(), value.into());
        self
    }

    /// Adds another tool, for [`toolbox`] and [`tool_calls`].
    #[must_use]
    pub fn tool(
        self,
        name: impl Into<String>,
        tool: impl Fn(Value) -> Result<Value, ToolFailure> + 'static,
    ) -> Self {
        let contents = move |arguments| Ok(vec![Content::json(&tool(arguments)?)?]);
        self.state.borrow_mut().tools.insert(name.into(), Rc::new(contents));
        self
    }

    /// Adds a client that answers questions.
    #[must_use]
    pub fn client(
        self,
        answers: impl Fn(Question) -> Result<Answer, client::Error> + 'static,
    ) -> Self {
        self.state.borrow_mut().answers = Some(Rc::new(answers));
        self
    }

    /// Calls a tool like [`testing::call`](super::call), with the grants of this host. If it fails,
    /// its file changes are dropped.
    ///
    /// # Errors
    /// A failure of the tool, also for arguments that do not match, or a result that is not JSON.
    pub fn call<T: Tool>(&self, arguments: Value) -> Result<Value, ToolFailure> {
        Ok(content::value(self.contents::<T>(arguments)?)?)
    }

    /// Calls a tool like [`testing::contents`](super::contents), with the grants of this host.
    ///
    /// # Errors
    /// A failure of the tool, also for arguments that do not match.
    pub fn contents<T: Tool>(&self, arguments: Value) -> Result<Vec<Content>, ToolFailure> {
        let before = self.state.borrow().stores.clone();
        let started_before = mem::take(&mut self.state.borrow_mut().started);
        let outer = Current::enter(self);
        let result = super::contents::<T>(arguments);
        drop(outer);
        self.state.borrow_mut().started = started_before;
        if result.is_err() {
            self.state.borrow_mut().stores = before;
        }
        result
    }

    /// Returns the content of a file, if it exists.
    #[must_use]
    pub fn bytes(&self, store: &str, path: &str) -> Option<Vec<u8>> {
        self.state.borrow().stores.read(store, path, 0, u64::MAX).ok()
    }

    /// Returns the content of a text file, if it exists.
    #[must_use]
    pub fn text(&self, store: &str, path: &str) -> Option<String> {
        String::from_utf8(self.bytes(store, path)?).ok()
    }

    /// Returns all reports that calls have made with [`call::progress`](crate::call::progress).
    #[must_use]
    pub fn progress(&self) -> Vec<Progress> {
        self.state.borrow().progress.clone()
    }

    /// Returns all log lines that calls have sent with [`client::log`].
    #[must_use]
    pub fn log(&self) -> Vec<(Level, String)> {
        self.state.borrow().log.clone()
    }
}

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

/// Guard that makes a host the current one. Dropping it restores the previous host.
struct Current(Option<Host>);

impl Current {
    fn enter(host: &Host) -> Self {
        Self(CURRENT.replace(Some(host.clone())))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        CURRENT.set(mem::take(&mut self.0));
    }
}

fn with<T>(work: impl FnOnce(&mut State) -> T) -> Option<T> {
    let host = CURRENT.with_borrow(Clone::clone)?;
    let mut state = host.state.borrow_mut();
    Some(work(&mut state))
}

/// Calls `work` with the stores of the current call. Outside a call there are none.
pub(crate) fn stores<T>(work: impl FnOnce(&mut Stores) -> T) -> T {
    match CURRENT.with_borrow(Clone::clone) {
        Some(host) => work(&mut host.state.borrow_mut().stores),
        None => work(&mut Stores::default()),
    }
}

pub(crate) fn secret(name: &str) -> Option<String> {
    with(|state| state.secrets.get(name).cloned()).flatten()
}

pub(crate) fn tool_names() -> Vec<String> {
    with(|state| state.tools.keys().cloned().collect()).unwrap_or_default()
}

pub(crate) fn call_tool(name: &str, arguments: &Value) -> Result<Vec<Content>, toolbox::Error> {
    let tool = with(|state| state.tools.get(name).cloned()).flatten();
    // Called without a borrow, because the tool may use the host.
    tool.ok_or(toolbox::Error::UnknownTool)?(arguments.clone()).map_err(toolbox::Error::Failed)
}

/// Adds a started call that has ended, and returns its number.
pub(crate) fn add_ended(outcome: Result<Vec<Content>, tool_calls::Error>) -> u32 {
    let add = |state: &mut State| {
        let StartedCalls { count, ended } = &mut state.started;
        *count = count.saturating_add(1);
        ended.push((*count, outcome));
        *count
    };
    with(add).unwrap_or_default()
}

pub(crate) fn take_ended() -> Vec<EndedCall> {
    with(|state| mem::take(&mut state.started.ended)).unwrap_or_default()
}

pub(crate) fn can_ask(_: Kind) -> bool {
    with(|state| state.answers.is_some()).unwrap_or_default()
}

pub(crate) fn ask(questions: Vec<Question>) -> Result<Vec<Answer>, client::Error> {
    let answers =
        with(|state| state.answers.clone()).flatten().ok_or(client::Error::Unsupported)?;
    questions.into_iter().map(|question| answers(question)).collect()
}

pub(crate) fn report(done: f64, total: Option<f64>, message: Option<&str>) {
    let message = message.map(str::to_owned);
    with(|state| state.progress.push(Progress { done, total, message }));
}

pub(crate) fn log(level: Level, message: &str) {
    with(|state| state.log.push((level, message.to_owned())));
}

pub(crate) fn is_there() -> bool {
    with(|_| ()).is_some()
}
