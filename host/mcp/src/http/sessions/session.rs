//! One session: its running calls, its streams, and the messages between client and handler.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    GetExtensions as _, GetMeta as _, ProgressToken, RequestId, ServerJsonRpcMessage,
    ServerNotification,
};
use rmcp::service::OriginatingRequestId;
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::SessionError;
use super::stream::{EventId, EventStream, Position, Reader};

/// Time after which a session that is not in use ends.
const IDLE_MAX: Duration = Duration::from_mins(5);
/// Time for which the events of a finished call are kept.
const KEPT_MAX: Duration = Duration::from_mins(5);
/// Maximum number of finished calls whose events are kept.
const FINISHED_MAX: usize = 64;
/// Maximum size of the kept events of finished calls, in bytes of JSON.
const FINISHED_BYTES_MAX: usize = 1 << 20;
/// Maximum number of messages that wait for the handler. More wait in their HTTP requests.
const WAITING_MAX: usize = 16;

/// Session of one client.
pub(super) struct Session {
    /// Principal that the session belongs to.
    pub(super) owner: Arc<str>,
    to_handler: mpsc::Sender<ClientJsonRpcMessage>,
    closed: CancellationToken,
    state: Mutex<State>,
}

/// Kept events of a finished call.
struct FinishedCall {
    call: u64,
    at: Instant,
    bytes: usize,
}

struct State {
    /// Receiver of the response to `initialize`.
    opening: Option<oneshot::Sender<ServerJsonRpcMessage>>,
    /// Streams of calls, by the number of the call.
    calls: HashMap<u64, EventStream>,
    standalone: EventStream,
    running: HashMap<RequestId, u64>,
    progress: HashMap<ProgressToken, u64>,
    /// Calls of the unanswered questions to the client.
    questions: HashMap<RequestId, u64>,
    /// Oldest first.
    finished: VecDeque<FinishedCall>,
    finished_bytes: usize,
    /// Calls to cancel at the end of the session.
    cancelled: Vec<RequestId>,
    /// Number for the next call or reader.
    next: u64,
    readers: usize,
    last_used: Instant,
}

impl Session {
    pub(super) fn open(owner: Arc<str>) -> (Arc<Self>, SessionTransport) {
        let (to_handler, from_client) = mpsc::channel(WAITING_MAX);
        let state = State {
            opening: None,
            calls: HashMap::new(),
            standalone: EventStream::default(),
            running: HashMap::new(),
            progress: HashMap::new(),
            questions: HashMap::new(),
            finished: VecDeque::new(),
            finished_bytes: 0,
            cancelled: Vec::new(),
            next: 0,
            readers: 0,
            last_used: Instant::now(),
        };
        let closed = CancellationToken::new();
        let session = Arc::new(Self { owner, to_handler, closed, state: Mutex::new(state) });
        (Arc::clone(&session), SessionTransport { session, from_client })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Ends the session: its streams end, and its running calls are canceled.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        self.closed.cancel();
        state.opening = None;
        let running: Vec<_> = state.running.drain().map(|(id, _)| id).collect();
        state.cancelled.extend(running);
        state.standalone.wake();
        state.calls.values_mut().for_each(EventStream::wake);
    }

    /// Passes `initialize` to the handler and returns the response.
    pub(super) async fn initialize(
        &self,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        let (opening, response) = oneshot::channel();
        self.state.lock().opening = Some(opening);
        self.to_handler.send(message).await.map_err(|_| SessionError::Unknown)?;
        response.await.map_err(|_| SessionError::Unknown)
    }

    /// Passes a request to the handler and returns the stream with its response.
    pub(super) async fn call(
        self: &Arc<Self>,
        message: ClientJsonRpcMessage,
    ) -> Result<Reader, SessionError> {
        // Nothing is noted of a request whose client hangs up while it waits.
        let permit = self.to_handler.reserve().await.map_err(|_| SessionError::Unknown)?;
        let mut state = self.state.lock();
        if self.is_closed() {
            return Err(SessionError::Unknown);
        }
        let call = state.next_number();
        if let ClientJsonRpcMessage::Request(request) = &message {
            if state.running.contains_key(&request.id) {
                return Err(SessionError::DuplicateId(request.id.clone()));
            }
            state.running.insert(request.id.clone(), call);
            if let Some(token) = request.request.get_meta().get_progress_token() {
                state.progress.insert(token, call);
            }
        }
        state.calls.insert(call, EventStream::default());
        let id = EventId { event: 0, call: Some(call) };
        let reader = self.reader(&mut state, id, true).ok_or(SessionError::Unknown);
        drop(state);
        permit.send(message);
        reader
    }

    /// Passes a notification or an answer to the handler.
    pub(super) async fn accept(&self, message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        {
            let mut state = self.state.lock();
            state.last_used = Instant::now();
            match &message {
                ClientJsonRpcMessage::Response(response) => {
                    state.questions.remove(&response.id);
                }
                ClientJsonRpcMessage::Error(error) => {
                    if let Some(id) = &error.id {
                        state.questions.remove(id);
                    }
                }
                ClientJsonRpcMessage::Notification(notification) => {
                    // The handler does not answer a canceled request.
                    if let ClientNotification::CancelledNotification(cancelled) =
                        &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                        && let Some(call) = state.running.remove(id)
                    {
                        state.finish(call);
                    }
                }
                ClientJsonRpcMessage::Request(_) => {}
            }
        }
        self.to_handler.send(message).await.map_err(|_| SessionError::Unknown)
    }

    /// Opens the standalone stream at the first event that no stream has delivered.
    pub(super) fn listen(self: &Arc<Self>) -> Option<Reader> {
        let mut state = self.state.lock();
        let event = state.standalone.taken;
        self.reader(&mut state, EventId { event, call: None }, true)
    }

    /// Continues a stream after an event.
    pub(super) fn resume(self: &Arc<Self>, last: EventId) -> Option<Reader> {
        self.reader(&mut self.state.lock(), last, false)
    }

    fn reader(self: &Arc<Self>, state: &mut State, last: EventId, is_new: bool) -> Option<Reader> {
        state.last_used = Instant::now();
        let id = state.next_number();
        let stream = state.stream(last.call)?;
        stream.add_reader(id);
        let read = last.event.min(stream.events.last());
        stream.wake();
        state.readers = state.readers.saturating_add(1);
        let position = Position { id, call: last.call, read, is_new, is_passed_over: false };
        Some(Reader { session: Arc::clone(self), position })
    }

    pub(super) fn poll(
        &self,
        reader: &mut Position,
        context: &Context<'_>,
    ) -> Poll<Option<ServerSseMessage>> {
        let mut state = self.state.lock();
        match state.stream(reader.call) {
            Some(stream) if !self.is_closed() => stream.poll(reader, context),
            _ => Poll::Ready(None),
        }
    }

    /// Notes that a reader has gone.
    pub(super) fn leave(&self, reader: &Position) {
        let mut state = self.state.lock();
        if let Some(stream) = state.stream(reader.call) {
            stream.remove_reader(reader.id);
        }
        state.readers = state.readers.saturating_sub(1);
        state.last_used = Instant::now();
        state.forget_calls();
    }

    /// Adds a message of the handler to the stream that it belongs to.
    fn deliver(&self, message: ServerJsonRpcMessage) {
        let mut state = self.state.lock();
        match &message {
            ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_) => {
                state.answer(message);
            }
            ServerJsonRpcMessage::Request(request) => {
                let origin = request.request.extensions().get::<OriginatingRequestId>();
                let call = origin.and_then(|origin| state.running.get(&origin.0)).copied();
                if let Some(call) = call {
                    state.questions.insert(request.id.clone(), call);
                }
                state.push(call, message);
            }
            ServerJsonRpcMessage::Notification(notification) => {
                let call = match &notification.notification {
                    ServerNotification::ProgressNotification(progress) => {
                        state.progress.get(&progress.params.progress_token).copied()
                    }
                    ServerNotification::CancelledNotification(withdrawn) => {
                        let id = withdrawn.params.request_id.as_ref();
                        id.and_then(|id| state.questions.remove(id))
                    }
                    _ => None,
                };
                state.push(call, message);
            }
        }
    }

    /// Returns the time at which to look for what is no longer needed.
    fn check_time(&self) -> Instant {
        let state = self.state.lock();
        let soon = Instant::now() + Duration::from_mins(1);
        if state.is_in_use() { soon } else { soon.min(state.last_used + IDLE_MAX) }
    }

    /// Forgets old calls, and ends the session if it has been idle for too long.
    fn check(&self) {
        let is_idle = {
            let mut state = self.state.lock();
            state.forget_calls();
            !state.is_in_use() && state.last_used.elapsed() >= IDLE_MAX
        };
        if is_idle {
            self.close();
        }
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    fn stream(&mut self, call: Option<u64>) -> Option<&mut EventStream> {
        match call {
            Some(call) => self.calls.get_mut(&call),
            None => Some(&mut self.standalone),
        }
    }

    /// Adds a message to the stream of a call, or to the standalone one if the call has ended.
    fn push(&mut self, call: Option<u64>, message: ServerJsonRpcMessage) {
        match call.and_then(|call| self.calls.get_mut(&call)) {
            Some(stream) => stream.push(message),
            None => self.standalone.push(message),
        }
    }

    /// Ends a call with its response.
    fn answer(&mut self, message: ServerJsonRpcMessage) {
        if let Some(opening) = self.opening.take() {
            let _ = opening.send(message);
            return;
        }
        let id = match &message {
            ServerJsonRpcMessage::Response(response) => Some(&response.id),
            ServerJsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        // A call that is no longer running was canceled.
        if let Some(call) = id.and_then(|id| self.running.remove(id)) {
            self.push(Some(call), message);
            self.finish(call);
        }
    }

    fn finish(&mut self, call: u64) {
        let now = Instant::now();
        self.last_used = now;
        self.progress.retain(|_, of| *of != call);
        self.questions.retain(|_, of| *of != call);
        let Some(stream) = self.calls.get_mut(&call) else { return };
        stream.finish();
        let bytes = stream.events.bytes();
        self.finished.push_back(FinishedCall { call, at: now, bytes });
        self.finished_bytes = self.finished_bytes.saturating_add(bytes);
        self.forget_calls();
    }

    /// Drops the oldest finished calls that are too many or too old. One that is being read stays.
    fn forget_calls(&mut self) {
        let Self { finished, finished_bytes, calls, .. } = self;
        let (now, mut count) = (Instant::now(), finished.len());
        finished.retain(|old| {
            let is_kept = count <= FINISHED_MAX
                && *finished_bytes <= FINISHED_BYTES_MAX
                && now.duration_since(old.at) < KEPT_MAX;
            if is_kept || calls.get(&old.call).is_some_and(EventStream::has_readers) {
                return true;
            }
            calls.remove(&old.call);
            count = count.saturating_sub(1);
            *finished_bytes = finished_bytes.saturating_sub(old.bytes);
            false
        });
    }

    fn is_in_use(&self) -> bool {
        self.readers > 0 || !self.running.is_empty()
    }
}

/// The handler's end of a session. The session ends with it.
pub(crate) struct SessionTransport {
    session: Arc<Session>,
    from_client: mpsc::Receiver<ClientJsonRpcMessage>,
}

impl Transport<RoleServer> for SessionTransport {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        self.session.deliver(message);
        std::future::ready(Ok(()))
    }

    /// Returns the next message of the client. At the end of the session these are the
    /// cancellations of its running calls, for which the SDK would wait five seconds.
    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            tokio::select! {
                biased;
                () = self.session.closed.cancelled() => {
                    let id = self.session.state.lock().cancelled.pop()?;
                    return Some(cancellation(id));
                }
                message = self.from_client.recv() => return message,
                () = tokio::time::sleep_until(self.session.check_time()) => self.session.check(),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.session.close();
        Ok(())
    }
}

impl Drop for SessionTransport {
    fn drop(&mut self) {
        self.session.close();
    }
}

fn cancellation(id: RequestId) -> ClientJsonRpcMessage {
    let reason = Some("the session has ended".to_owned());
    let params = CancelledNotificationParam::new(Some(id), reason);
    let cancelled = CancelledNotification::new(params);
    ClientJsonRpcMessage::notification(ClientNotification::CancelledNotification(cancelled))
}
