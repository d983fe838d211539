//! Standard input of a server. What it does not read is limited, and messages of abandoned calls
//! are withdrawn.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId};
use rmcp::service::TxJsonRpcMessage;
use tokio::io::AsyncWriteExt as _;
use tokio::process::ChildStdin;
use tokio::sync::{Mutex as AsyncMutex, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::client::limits::UNREAD_BYTES_MAX;

/// Error returned when too much already waits for a server to read it.
#[derive(Debug, thiserror::Error)]
#[error("the server does not read its input")]
pub(in crate::client) struct Unread;

/// Standard input of a server, which gets one message after the other.
pub(super) struct ServerInput {
    pipe: Arc<AsyncMutex<Option<ChildStdin>>>,
    /// One permit for each byte that may wait.
    room: Arc<Semaphore>,
    waiting: WaitingRequests,
    closed: CancellationToken,
    server: String,
}

/// Requests of which nothing has been written, each with the token that withdraws it.
#[derive(Clone, Default)]
struct WaitingRequests(Arc<Mutex<HashMap<RequestId, CancellationToken>>>);

impl WaitingRequests {
    /// Adds a message if it is a request, and returns its id.
    fn add(
        &self,
        message: &ClientJsonRpcMessage,
        withdrawn: &CancellationToken,
    ) -> Option<RequestId> {
        let JsonRpcMessage::Request(request) = message else { return None };
        self.0.lock().insert(request.id.clone(), withdrawn.clone());
        Some(request.id.clone())
    }

    /// Withdraws the request that a message cancels. Returns false if it cancels no waiting one.
    fn withdraw(&self, message: &ClientJsonRpcMessage) -> bool {
        let JsonRpcMessage::Notification(notification) = message else { return false };
        let ClientNotification::CancelledNotification(cancelled) = &notification.notification
        else {
            return false;
        };
        let id = cancelled.params.request_id.as_ref();
        let removed = id.and_then(|id| self.0.lock().remove(id));
        removed.inspect(CancellationToken::cancel).is_some()
    }
}

impl ServerInput {
    pub(super) fn new(pipe: ChildStdin, server: &str) -> Self {
        Self {
            pipe: Arc::new(AsyncMutex::new(Some(pipe))),
            room: Arc::new(Semaphore::new(UNREAD_BYTES_MAX)),
            waiting: WaitingRequests::default(),
            closed: CancellationToken::new(),
            server: server.to_owned(),
        }
    }

    /// Writes a message after the earlier ones. A cancellation withdraws its request if nothing of
    /// that has been written, and is then not written either.
    pub(super) fn send(
        &self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let is_withdrawal = self.waiting.withdraw(&message);
        if is_withdrawal {
            let server = &self.server;
            tracing::warn!(server, "a server does not read its input; a request was withdrawn");
        }
        let (waiting, withdrawn) = (self.waiting.clone(), CancellationToken::new());
        let request = waiting.add(&message, &withdrawn);
        let (pipe, room) = (Arc::clone(&self.pipe), Arc::clone(&self.room));
        let closed = self.closed.clone();
        async move {
            if is_withdrawal {
                return Ok(());
            }
            let line = line(message)?;
            // A message that is larger than the limit needs all of it.
            let bytes = u32::try_from(line.len().min(UNREAD_BYTES_MAX)).unwrap_or(u32::MAX);
            let Ok(_room) = room.try_acquire_many_owned(bytes) else {
                request.map(|id| waiting.0.lock().remove(&id));
                return Err(io::Error::other(Unread));
            };
            let writing = async {
                let mut pipe = pipe.lock().await;
                if request.is_some_and(|id| waiting.0.lock().remove(&id).is_none()) {
                    return Ok(());
                }
                let pipe = pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
                pipe.write_all(&line).await?;
                pipe.flush().await
            };
            tokio::select! {
                written = writing => written,
                () = withdrawn.cancelled() => Ok(()),
                () = closed.cancelled() => Err(io::ErrorKind::BrokenPipe.into()),
            }
        }
    }

    /// Closes the pipe, also while a message is being written.
    pub(super) async fn close(&self) {
        self.closed.cancel();
        self.pipe.lock().await.take();
    }
}

fn line(message: ClientJsonRpcMessage) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&message)?;
    line.push(b'\n');
    Ok(line)
}
