//! Calls that the program makes, side by side.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use serde::Serialize;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::lines::LineSender;
use super::message::ClientCall;
use super::session::{CallResult, ProgramSession};
use crate::{Error, Result};

/// Maximum number of calls in progress. Further ones are refused.
const CALLS_MAX: usize = 1024;

/// Calls of one program.
pub(super) struct Calls {
    shared: Arc<SharedCalls>,
    tasks: TaskTracker,
    /// Fires when the program is gone.
    end: CancellationToken,
}

struct SharedCalls {
    session: ProgramSession,
    sender: LineSender,
    running: Mutex<HashMap<u64, CancellationToken>>,
    /// True if the program has broken the protocol. It gets no results then.
    has_failed: AtomicBool,
}

/// Message with the result of a call.
#[derive(Serialize)]
struct ResultMessage<'r> {
    #[serde(rename = "type")]
    message: &'static str,
    id: u64,
    #[serde(flatten)]
    result: &'r CallResult,
}

impl Calls {
    pub(super) fn new(session: ProgramSession, sender: LineSender) -> Self {
        let running = Mutex::default();
        let shared = SharedCalls { session, sender, running, has_failed: AtomicBool::new(false) };
        Self { shared: Arc::new(shared), tasks: TaskTracker::new(), end: CancellationToken::new() }
    }

    pub(super) fn session(&self) -> &ProgramSession {
        &self.shared.session
    }

    /// Returns a guard that cancels all calls when it is dropped.
    pub(super) fn cancel_on_drop(&self) -> DropGuard {
        self.end.clone().drop_guard()
    }

    /// Sends no further results: calls in progress have not been canceled by the program.
    pub(super) fn fail(&self) {
        self.shared.has_failed.store(true, Ordering::Release);
    }

    /// Waits until all calls have ended.
    pub(super) async fn ended(&self) {
        self.shared.session.close();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Starts a call. Its result is sent when it ends.
    ///
    /// # Errors
    /// Returns an error if the id belongs to a call in progress.
    pub(super) async fn start(&self, call: ClientCall<'_>) -> Result<()> {
        let call = call.into_call();
        let cancellation = self.end.child_token();
        {
            let mut running = self.shared.running.lock();
            if running.contains_key(&call.id) {
                return Err(in_progress(call.id));
            }
            if running.len() < CALLS_MAX {
                running.insert(call.id, cancellation.clone());
            }
        }
        if !self.shared.is_running(call.id) {
            let message = format!(
                "{CALLS_MAX} calls are in progress; wait for a result before the next call"
            );
            self.shared.send(call.id, &CallResult::refused("too_many_calls", &message)).await;
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        self.tasks.spawn(async move {
            let result = shared.session.call(&call, cancellation).await;
            // The program may use the id again as soon as it has the result.
            shared.finish(call.id);
            shared.send(call.id, &result).await;
        });
        Ok(())
    }

    /// Refuses a call that is not valid.
    ///
    /// # Errors
    /// Returns an error if the id belongs to a call in progress.
    pub(super) async fn refuse(&self, id: u64, error: &Error) -> Result<()> {
        if self.shared.is_running(id) {
            return Err(in_progress(id));
        }
        self.shared.send(id, &CallResult::refused("invalid_call", &error.to_string())).await;
        Ok(())
    }

    /// Cancels a call, if it is in progress.
    pub(super) fn cancel(&self, id: u64) {
        let running = self.shared.running.lock();
        if let Some(cancellation) = running.get(&id) {
            cancellation.cancel();
        }
    }
}

impl SharedCalls {
    fn is_running(&self, id: u64) -> bool {
        self.running.lock().contains_key(&id)
    }

    fn finish(&self, id: u64) {
        self.running.lock().remove(&id);
    }

    async fn send(&self, id: u64, result: &CallResult) {
        if !self.has_failed.load(Ordering::Acquire) {
            self.sender.send(&ResultMessage { message: "result", id, result }).await;
        }
    }
}

fn in_progress(id: u64) -> Error {
    Error::invalid(format!(
        "expected a new `id` in `call`, found {id}, which belongs to a call in progress"
    ))
}
