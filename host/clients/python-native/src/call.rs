//! Calls that block their thread.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use cofferdam::pipe::{CallResult, ProgramCall};
use parking_lot::Mutex;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::host::HostState;
use crate::router::ProgramMessage;
use crate::{runtime, value};

type CallFuture = Pin<Box<dyn Future<Output = CallResult> + Send>>;

/// Call of a thread that waits for its messages.
#[pyclass(frozen, module = "cofferdam_native")]
pub(crate) struct NativeCall {
    host: Arc<HostState>,
    id: u64,
    cancellation: CancellationToken,
    waiting: Mutex<WaitingCall>,
}

struct WaitingCall {
    messages: Receiver<ProgramMessage>,
    progress: CallProgress,
}

/// State of a call.
enum CallProgress {
    /// The thread that waits runs the call.
    Here(CallFuture),
    /// The runtime runs the call, so that it goes on while the program serves it.
    OnRuntime(JoinHandle<CallResult>),
    /// The result waits for the program to take the messages before it.
    Ended(Box<CallResult>),
    /// The program has the result.
    Finished,
}

impl NativeCall {
    pub(crate) fn new(host: Arc<HostState>, call: ProgramCall) -> Self {
        let id = call.id;
        let messages = host.router.open(id);
        let cancellation = host.end.child_token();
        let token = cancellation.clone();
        let state = Arc::clone(&host);
        let future = Box::pin(async move { state.run(&call, token).await });
        let waiting = WaitingCall { messages, progress: CallProgress::Here(future) };
        Self { host, id, cancellation, waiting: Mutex::new(waiting) }
    }
}

#[pymethods]
impl NativeCall {
    /// Waits for the next message about the call, the last of which is its result.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(mut waiting) = self.waiting.try_lock() else {
            return Err(PyRuntimeError::new_err("expected one thread that waits, found two"));
        };
        let message = {
            let _waiting = self.host.tasks.token();
            runtime::wait(py, NextMessage { id: self.id, waiting: &mut waiting })?
        };
        match message {
            Some(message) => {
                if !matches!(message, ProgramMessage::Result(..)) {
                    waiting.progress.leave_thread(&self.host)?;
                }
                value::message(py, message)
            }
            None => Err(PyRuntimeError::new_err("the call has ended, or the host has panicked")),
        }
    }

    /// Stops the call. It ends on the runtime, with its record.
    fn cancel(&self) {
        self.cancellation.cancel();
        if let Some(mut waiting) = self.waiting.try_lock() {
            let _ = waiting.progress.leave_thread(&self.host);
        }
    }
}

impl CallProgress {
    /// Moves the call to the runtime.
    fn leave_thread(&mut self, host: &HostState) -> PyResult<()> {
        let runtime = runtime::get()?;
        *self = match std::mem::replace(self, Self::Finished) {
            Self::Here(future) => Self::OnRuntime(host.tasks.spawn_on(future, runtime.handle())),
            other => other,
        };
        Ok(())
    }
}

/// Next message about a call. `None` if there is none anymore.
struct NextMessage<'w> {
    id: u64,
    waiting: &'w mut WaitingCall,
}

impl Future for NextMessage<'_> {
    type Output = Option<ProgramMessage>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ProgramMessage>> {
        let id = self.id;
        let WaitingCall { messages, progress } = &mut *self.waiting;
        let result = match progress {
            CallProgress::Here(future) => future.as_mut().poll(context),
            CallProgress::OnRuntime(task) => match Pin::new(task).poll(context) {
                Poll::Ready(Ok(result)) => Poll::Ready(result),
                Poll::Ready(Err(_)) => {
                    *progress = CallProgress::Finished;
                    return Poll::Ready(None);
                }
                Poll::Pending => Poll::Pending,
            },
            CallProgress::Ended(_) => Poll::Pending,
            CallProgress::Finished => return Poll::Ready(None),
        };
        if let Poll::Ready(result) = result {
            *progress = CallProgress::Ended(Box::new(result));
        }
        if !matches!(progress, CallProgress::Ended(_)) {
            return messages.poll_recv(context);
        }
        if let Ok(message) = messages.try_recv() {
            return Poll::Ready(Some(message));
        }
        match std::mem::replace(progress, CallProgress::Finished) {
            CallProgress::Ended(result) => Poll::Ready(Some(ProgramMessage::Result(id, *result))),
            _ => Poll::Ready(None),
        }
    }
}

impl Drop for NativeCall {
    /// Cancels a call that has not ended. It ends on the runtime, with its record.
    fn drop(&mut self) {
        if runtime::is_forked() {
            return;
        }
        self.host.router.close(self.id);
        let waiting = self.waiting.get_mut();
        if matches!(waiting.progress, CallProgress::Here(_) | CallProgress::OnRuntime(_)) {
            self.cancellation.cancel();
            let _ = waiting.progress.leave_thread(&self.host);
        }
    }
}
