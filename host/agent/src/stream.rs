//! Streamed runs.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt};
use tokio::sync::mpsc;

use crate::hooks::Hooks;
use crate::{Response, RunError, Update};

/// Maximum number of unread updates before the run waits for its reader, so that it does not get
/// ahead of what the reader has seen.
const UPDATES_AHEAD_MAX: usize = 1;

type RunFuture<T> = Pin<Box<dyn Future<Output = Result<T, RunError>> + Send>>;

/// A streamed run (`LOOP-29`). It makes progress only while it is read. Dropping it ends the run.
///
/// Middleware uses hooks to work on content that has not arrived yet (`MW-5`):
/// [`map_updates`](Self::map_updates), [`map_response`](Self::map_response),
/// [`on_end`](Self::on_end).
pub struct RunStream {
    state: StreamState,
    hooks: Hooks<Response>,
}

enum StreamState {
    /// Agent middleware is running.
    Beginning(RunFuture<RunStream>),
    /// Agent middleware is done and has returned this stream.
    Inner(Box<RunStream>),
    /// The loop is running.
    Going { run: RunFuture<Response>, updates: mpsc::Receiver<Update> },
    /// The loop is done; some updates may still be unread.
    Left { updates: VecDeque<Update>, ended: Option<Box<Result<Response, RunError>>> },
}

impl RunStream {
    /// Creates a stream of a run that sends its updates to the given sender, for implementations of
    /// [`AgentRun`](crate::AgentRun).
    pub fn of<F>(run: impl FnOnce(mpsc::Sender<Update>) -> F) -> Self
    where
        F: Future<Output = Result<Response, RunError>> + Send + 'static,
    {
        let (sender, updates) = mpsc::channel(UPDATES_AHEAD_MAX);
        Self::in_state(StreamState::Going { run: Box::pin(run(sender)), updates })
    }

    /// Creates a stream that first waits for another one.
    pub(crate) fn beginning(
        begun: impl Future<Output = Result<Self, RunError>> + Send + 'static,
    ) -> Self {
        Self::in_state(StreamState::Beginning(Box::pin(begun)))
    }

    fn in_state(state: StreamState) -> Self {
        Self { state, hooks: Hooks::default() }
    }

    /// Applies a function to every update from now on.
    #[must_use]
    pub fn map_updates(mut self, change: impl FnMut(Update) -> Update + Send + 'static) -> Self {
        self.hooks.on_update(change);
        self
    }

    /// Applies a function to the response if the run succeeds.
    #[must_use]
    pub fn map_response(
        mut self,
        change: impl FnOnce(Response) -> Response + Send + 'static,
    ) -> Self {
        self.hooks.on_whole(change);
        self
    }

    /// Calls a function when the run ends for any reason, including when it is dropped.
    #[must_use]
    pub fn on_end(mut self, end: impl FnOnce() + Send + 'static) -> Self {
        self.hooks.on_end(end);
        self
    }

    /// Reads the rest and returns the whole response, the same as without streaming.
    ///
    /// # Errors
    /// The error that ended the run.
    pub async fn finish(mut self) -> Result<Response, RunError> {
        while let Some(update) = self.next().await {
            update?;
        }
        self.take_response().unwrap_or(Err(RunError::Cancelled))
    }

    /// Returns the response, if there is one to take.
    fn take_response(&mut self) -> Option<Result<Response, RunError>> {
        let ended = match &mut self.state {
            StreamState::Inner(inner) => inner.take_response().map(Box::new),
            StreamState::Left { ended, .. } => ended.take(),
            StreamState::Beginning(_) | StreamState::Going { .. } => None,
        };
        ended.map(|response| (*response).map(|response| self.hooks.whole(response)))
    }

    fn poll_raw(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Update, RunError>>> {
        loop {
            match &mut self.state {
                StreamState::Beginning(begun) => {
                    self.state = match ready!(begun.as_mut().poll(context)) {
                        Ok(inner) => StreamState::Inner(Box::new(inner)),
                        Err(error) => {
                            self.state =
                                StreamState::Left { updates: VecDeque::new(), ended: None };
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                }
                StreamState::Inner(inner) => return inner.poll_next_unpin(context),
                StreamState::Going { run, updates } => {
                    if let Poll::Ready(Some(update)) = updates.poll_recv(context) {
                        return Poll::Ready(Some(Ok(update)));
                    }
                    let Poll::Ready(ended) = run.as_mut().poll(context) else {
                        // The run may have sent an update before it became pending.
                        return match updates.poll_recv(context) {
                            Poll::Ready(Some(update)) => Poll::Ready(Some(Ok(update))),
                            _ => Poll::Pending,
                        };
                    };
                    let mut left = VecDeque::new();
                    while let Ok(update) = updates.try_recv() {
                        left.push_back(update);
                    }
                    self.state = StreamState::Left { updates: left, ended: Some(Box::new(ended)) };
                }
                StreamState::Left { updates, ended } => {
                    if let Some(update) = updates.pop_front() {
                        return Poll::Ready(Some(Ok(update)));
                    }
                    return Poll::Ready(match ended.take_if(|ended| ended.is_err()) {
                        Some(ended) => ended.err().map(Err),
                        None => None,
                    });
                }
            }
        }
    }
}

impl Stream for RunStream {
    type Item = Result<Update, RunError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.poll_raw(context));
        if !matches!(next, Some(Ok(_))) {
            self.hooks.end();
        }
        Poll::Ready(next.map(|update| update.map(|update| self.hooks.update(update))))
    }
}

impl From<Response> for RunStream {
    /// Converts a response to a finished run, with one update per message.
    fn from(response: Response) -> Self {
        let updates = response.messages.iter().flat_map(|message| {
            let message = Arc::unwrap_or_clone(Arc::clone(message));
            let reply = crate::Reply { messages: vec![message], ..crate::Reply::default() };
            reply.into_updates().into_iter().filter(|update| !update.deltas.is_empty())
        });
        Self::in_state(StreamState::Left {
            updates: updates.collect(),
            ended: Some(Box::new(Ok(response))),
        })
    }
}

impl std::fmt::Debug for RunStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunStream").finish_non_exhaustive()
    }
}
