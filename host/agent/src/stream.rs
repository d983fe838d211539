//! A run that is read while it goes on.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt};
use tokio::sync::mpsc;

use crate::hooks::Hooks;
use crate::{Response, RunError, Update};

/// Updates that may wait to be read before the run waits for its reader: it is never ahead of what
/// was seen of it.
const UPDATES_AHEAD_MAX: usize = 1;

type Going<T> = Pin<Box<dyn Future<Output = Result<T, RunError>> + Send>>;

/// A run that is read while it goes on (`LOOP-29`): nothing happens unless it is. Dropping it ends
/// the run.
///
/// Middleware works on what will come through the hooks (`MW-5`):
/// [`map_updates`](Self::map_updates), [`map_response`](Self::map_response),
/// [`on_end`](Self::on_end).
pub struct RunStream {
    state: State,
    hooks: Hooks<Response>,
}

enum State {
    /// Agent middleware is running.
    Beginning(Going<RunStream>),
    /// That is done, and this is what it has made.
    Inner(Box<RunStream>),
    /// The loop is running.
    Going { run: Going<Response>, updates: mpsc::Receiver<Update> },
    /// The loop is done, and there may be something to be read.
    Left { updates: VecDeque<Update>, ended: Option<Result<Response, RunError>> },
}

impl RunStream {
    /// A run whose updates go where `run` is told to send them.
    pub(crate) fn of<F>(run: impl FnOnce(mpsc::Sender<Update>) -> F) -> Self
    where
        F: Future<Output = Result<Response, RunError>> + Send + 'static,
    {
        let (sender, updates) = mpsc::channel(UPDATES_AHEAD_MAX);
        Self::in_state(State::Going { run: Box::pin(run(sender)), updates })
    }

    /// A run that has something to do before there is anything to read.
    pub(crate) fn beginning(
        begun: impl Future<Output = Result<Self, RunError>> + Send + 'static,
    ) -> Self {
        Self::in_state(State::Beginning(Box::pin(begun)))
    }

    fn in_state(state: State) -> Self {
        Self { state, hooks: Hooks::default() }
    }

    /// Changes every update that is read from now on.
    #[must_use]
    pub fn map_updates(mut self, change: impl FnMut(Update) -> Update + Send + 'static) -> Self {
        self.hooks.on_update(change);
        self
    }

    /// Changes the response, when the run has ended well.
    #[must_use]
    pub fn map_response(
        mut self,
        change: impl FnOnce(Response) -> Response + Send + 'static,
    ) -> Self {
        self.hooks.on_whole(change);
        self
    }

    /// Is called when the run is over, however it ended, also when it is dropped.
    #[must_use]
    pub fn on_end(mut self, end: impl FnOnce() + Send + 'static) -> Self {
        self.hooks.on_end(end);
        self
    }

    /// Reads the rest and returns the whole response, the same as without streaming.
    ///
    /// # Errors
    /// What ended the run.
    pub async fn finish(mut self) -> Result<Response, RunError> {
        while let Some(update) = self.next().await {
            update?;
        }
        self.take_response().unwrap_or(Err(RunError::Cancelled))
    }

    /// The response, once there is one to take.
    fn take_response(&mut self) -> Option<Result<Response, RunError>> {
        let ended = match &mut self.state {
            State::Inner(inner) => inner.take_response(),
            State::Left { ended, .. } => ended.take(),
            State::Beginning(_) | State::Going { .. } => None,
        };
        ended.map(|response| response.map(|response| self.hooks.whole(response)))
    }

    fn poll_raw(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Update, RunError>>> {
        loop {
            match &mut self.state {
                State::Beginning(begun) => {
                    self.state = match ready!(begun.as_mut().poll(context)) {
                        Ok(inner) => State::Inner(Box::new(inner)),
                        Err(error) => {
                            self.state = State::Left { updates: VecDeque::new(), ended: None };
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                }
                State::Inner(inner) => return inner.poll_next_unpin(context),
                State::Going { run, updates } => {
                    if let Poll::Ready(Some(update)) = updates.poll_recv(context) {
                        return Poll::Ready(Some(Ok(update)));
                    }
                    let Poll::Ready(ended) = run.as_mut().poll(context) else {
                        // It may have sent something before it came to wait.
                        return match updates.poll_recv(context) {
                            Poll::Ready(Some(update)) => Poll::Ready(Some(Ok(update))),
                            _ => Poll::Pending,
                        };
                    };
                    let mut left = VecDeque::new();
                    while let Ok(update) = updates.try_recv() {
                        left.push_back(update);
                    }
                    self.state = State::Left { updates: left, ended: Some(ended) };
                }
                State::Left { updates, ended } => {
                    if let Some(update) = updates.pop_front() {
                        return Poll::Ready(Some(Ok(update)));
                    }
                    return Poll::Ready(match ended.take_if(|ended| ended.is_err()) {
                        Some(Err(error)) => Some(Err(error)),
                        _ => None,
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
    /// A response as a run that has ended, each message one update.
    fn from(response: Response) -> Self {
        let updates = response.messages.iter().flat_map(|message| {
            let message = Arc::unwrap_or_clone(Arc::clone(message));
            let reply = crate::Reply { messages: vec![message], ..crate::Reply::default() };
            reply.into_updates().into_iter().filter(|update| !update.deltas.is_empty())
        });
        Self::in_state(State::Left { updates: updates.collect(), ended: Some(Ok(response)) })
    }
}

impl std::fmt::Debug for RunStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunStream").finish_non_exhaustive()
    }
}
