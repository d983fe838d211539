//! A host, for the package.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use cofferdam::ErrorKind;
use cofferdam::pipe::{
    CallResult, HostMessage, MessageSender as _, PipeOptions, ProgramCall, ProgramSession,
};
use parking_lot::Mutex;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::call::NativeCall;
use crate::router::{ProgramMessage, Router};
use crate::{flags, runtime, value};

/// Maximum number of calls in progress that block no thread, as over a pipe.
const CALLS_MAX: usize = 1024;
/// Maximum bytes of the arguments of a call, as of a message over a pipe.
const ARGUMENTS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Members of every call: the type, the number, the tool and its arguments.
const COMMON_MEMBERS: usize = 4;

/// Host in this process. Its messages are those of `cofferdam pipe`.
#[pyclass(frozen, module = "cofferdam_native")]
pub(crate) struct NativeHost {
    state: Arc<HostState>,
    messages: Mutex<Receiver<ProgramMessage>>,
    /// Function of the package that encodes what [`value::encode`] does not.
    encode: Py<PyAny>,
}

/// Host, for its calls.
pub(crate) struct HostState {
    /// Absent while the host starts.
    session: OnceLock<ProgramSession>,
    pub(crate) router: Arc<Router>,
    /// Fires when the host is closed.
    pub(crate) end: CancellationToken,
    /// Tasks and waiting threads.
    pub(crate) tasks: TaskTracker,
    /// Calls that block no thread.
    calls: Mutex<HashMap<u64, CancellationToken>>,
}

#[pymethods]
impl NativeHost {
    /// Starts a host, whose messages say when it is ready. `hello` is the first message of the
    /// program, `flags` are the flags of `cofferdam pipe` with their values, and `program`
    /// compiles plugins.
    #[new]
    fn new(
        hello: String,
        flags: Vec<(String, String)>,
        program: PathBuf,
        encode: Py<PyAny>,
    ) -> PyResult<Self> {
        let runtime = runtime::start()?;
        if runtime::is_forked() {
            runtime::get()?;
        }
        let (router, messages) = Router::new();
        let state = Arc::new(HostState {
            session: OnceLock::new(),
            router: Arc::new(router),
            end: CancellationToken::new(),
            tasks: TaskTracker::new(),
            calls: Mutex::default(),
        });
        let opened = Arc::clone(&state);
        let options = flags::options(flags, program);
        state.tasks.spawn_on(async move { opened.open(options, &hello).await }, runtime.handle());
        Ok(Self { state, messages: Mutex::new(messages), encode })
    }

    /// Waits for the next message that belongs to no [`NativeCall`]. Returns `None` when the host
    /// has ended.
    fn next_message<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(mut messages) = self.messages.try_lock() else {
            return Err(PyRuntimeError::new_err("expected one thread that reads, found two"));
        };
        match runtime::wait(py, Box::pin(messages.recv()))? {
            None | Some(ProgramMessage::End) => Ok(None),
            Some(message) => value::message(py, message).map(Some),
        }
    }

    /// Returns a call, which starts when its messages are waited for.
    fn call(&self, message: &Bound<'_, PyDict>) -> PyResult<NativeCall> {
        Ok(NativeCall::new(Arc::clone(&self.state), self.read_call(message)?))
    }

    /// Starts a call that blocks no thread. Its messages belong to the reading thread.
    fn spawn(&self, message: &Bound<'_, PyDict>) -> PyResult<()> {
        let call = self.read_call(message)?;
        let runtime = runtime::get()?;
        let cancellation = self.state.end.child_token();
        let is_admitted = {
            let mut calls = self.state.calls.lock();
            let is_admitted = calls.len() < CALLS_MAX;
            if is_admitted {
                calls.insert(call.id, cancellation.clone());
            }
            is_admitted
        };
        let state = Arc::clone(&self.state);
        let task = async move {
            let result = if is_admitted {
                let result = state.run(&call, cancellation).await;
                state.calls.lock().remove(&call.id);
                result
            } else {
                let message = format!(
                    "{CALLS_MAX} calls are in progress; wait for a result before the next call"
                );
                CallResult::refused("too_many_calls", &message)
            };
            state.router.read(ProgramMessage::Result(call.id, result)).await;
        };
        self.state.tasks.spawn_on(task, runtime.handle());
        Ok(())
    }

    /// Stops a call that blocks no thread.
    fn cancel(&self, id: u64) {
        let calls = self.state.calls.lock();
        if let Some(cancellation) = calls.get(&id) {
            cancellation.cancel();
        }
    }

    /// Passes on the answer to a request.
    fn reply(&self, reply: &[u8]) -> PyResult<()> {
        let invalid = |error: &dyn std::error::Error| PyValueError::new_err(error.to_string());
        let reply = std::str::from_utf8(reply).map_err(|error| invalid(&error))?;
        self.state.session()?.reply(reply).map_err(|error| invalid(&error))
    }

    /// Cancels all calls. The host ends when they have.
    fn close(&self) {
        let Ok(runtime) = runtime::get() else { return };
        if self.state.end.is_cancelled() {
            return;
        }
        self.state.end.cancel();
        self.state.tasks.close();
        if let Some(session) = self.state.session.get() {
            session.close();
        }
        let state = Arc::clone(&self.state);
        runtime.spawn(async move {
            state.tasks.wait().await;
            state.router.read(ProgramMessage::End).await;
        });
    }
}

impl NativeHost {
    fn read_call(&self, message: &Bound<'_, PyDict>) -> PyResult<ProgramCall> {
        let py = message.py();
        let mut call = ProgramCall::default();
        if let Some(id) = message.get_item(intern!(py, "id"))? {
            call.id = id.extract()?;
        }
        if let Some(tool) = message.get_item(intern!(py, "tool"))? {
            call.tool = tool.extract()?;
        }
        if let Some(arguments) = message.get_item(intern!(py, "arguments"))? {
            call.arguments = Some(self.encode(&arguments)?);
        }
        if message.len() > COMMON_MEMBERS {
            read_options(message, &mut call)?;
        }
        Ok(call)
    }

    fn encode(&self, arguments: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        match value::encode(arguments) {
            Some(json) if json.len() <= ARGUMENTS_BYTES_MAX => Ok(json),
            _ => self.encode.bind(arguments.py()).call1((arguments,))?.extract(),
        }
    }
}

fn read_options(message: &Bound<'_, PyDict>, call: &mut ProgramCall) -> PyResult<()> {
    if let Some(session) = message.get_item("session")? {
        call.session = session.extract()?;
    }
    if let Some(timeout) = message.get_item("timeout_ms")? {
        call.timeout_ms = timeout.extract()?;
    }
    let is_set = |name: &str| match message.get_item(name)? {
        Some(value) => value.is_truthy(),
        None => Ok(false),
    };
    call.dry_run = is_set("dry_run")?;
    call.diff = is_set("diff")?;
    call.progress = is_set("progress")?;
    Ok(())
}

impl HostState {
    /// Starts the host, and tells the program that it is ready or why it is not.
    async fn open(&self, options: Result<PipeOptions, String>, hello: &str) {
        let opened = match options {
            Ok(options) => {
                let opened = ProgramSession::open(options, hello, Arc::clone(&self.router) as _);
                let Some(opened) = self.end.run_until_cancelled(opened).await else { return };
                opened.map_err(|error| (format!("{error:#}"), error.kind()))
            }
            Err(message) => Err((message, ErrorKind::Invalid)),
        };
        match opened {
            Ok(session) => {
                let ready = self.session.get_or_init(|| session).ready();
                self.router.send(&ready).await;
            }
            Err((message, kind)) => {
                let exit = kind.exit_code();
                self.router.send(&HostMessage::Failed { message, exit }).await;
            }
        }
    }

    /// Makes a call.
    pub(crate) async fn run(
        &self,
        call: &ProgramCall,
        cancellation: CancellationToken,
    ) -> CallResult {
        match self.session.get() {
            Some(session) => session.call(call, cancellation).await,
            None => CallResult::refused("refused", "the host has not started"),
        }
    }

    fn session(&self) -> PyResult<&ProgramSession> {
        self.session.get().ok_or_else(|| PyRuntimeError::new_err("the host has not started"))
    }
}

impl Drop for HostState {
    /// Ends the engine on another thread, for this one may have the interpreter's lock. A forked
    /// process has none of the threads that this would wait for.
    fn drop(&mut self) {
        let session = self.session.take();
        match runtime::get() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || drop(session))),
            Err(_) => std::mem::forget(session),
        }
    }
}
