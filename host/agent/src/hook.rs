//! The callback after each iteration (`LOOP-30` to `LOOP-34`).

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::{BoxError, Message, Reply, TokenUsage};

/// Called once per iteration, after all of its functions have finished and their results are among
/// the messages; not called if no function ran (`LOOP-30`). A synchronous closure is a hook too.
#[async_trait]
pub trait IterationHook: Send + Sync {
    /// Inspects the iteration, and may end the run.
    ///
    /// # Errors
    /// Any; it is returned to the caller of the run.
    async fn completed(&self, context: &mut IterationContext<'_>) -> Result<(), BoxError>;
}

/// An iteration that has ended (`LOOP-31`).
#[derive(Debug)]
pub struct IterationContext<'a> {
    /// Index of the iteration, from 0.
    pub iteration: u32,
    /// Token usage so far, if a provider reports it. A copy: changing it has no effect (`LOOP-33`).
    pub total_usage: Option<TokenUsage>,
    /// All messages for the next model call, including the calls and results of this iteration.
    ///
    /// Changes by the hook affect all further model calls, so that it can shorten a long run; the
    /// response of the run keeps every message either way. Calls and their results have to stay
    /// together.
    pub messages: &'a mut Vec<Arc<Message>>,
    /// The model's latest reply.
    pub response: &'a Reply,
    /// Token that is canceled with the run. A hook that waits for something stops when it is, and
    /// passes it to the runs that it makes.
    pub cancellation: CancellationToken,
    /// True if the caller streams the run.
    pub is_streaming: bool,
    /// Set to end the run after this iteration without another model call (`LOOP-32`).
    pub terminate: bool,
}

#[async_trait]
impl<F> IterationHook for F
where
    F: Fn(&mut IterationContext<'_>) -> Result<(), BoxError> + Send + Sync,
{
    async fn completed(&self, context: &mut IterationContext<'_>) -> Result<(), BoxError> {
        self(context)
    }
}
