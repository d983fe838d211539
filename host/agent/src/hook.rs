//! The callback after each iteration (`LOOP-30` to `LOOP-34`).

use std::sync::Arc;

use async_trait::async_trait;

use crate::{BoxError, Message, Reply, TokenUsage};

/// Called once per iteration, after all of its functions have finished and their results are among
/// the messages; not when nothing was run (`LOOP-30`). A closure that does not wait for anything is
/// a hook as well.
#[async_trait]
pub trait IterationHook: Send + Sync {
    /// Looks at the iteration, and may end the run.
    ///
    /// # Errors
    /// Any; it is raised to the caller of the run.
    async fn completed(&self, context: &mut IterationContext<'_>) -> Result<(), BoxError>;
}

/// An iteration that has ended (`LOOP-31`).
#[derive(Debug)]
pub struct IterationContext<'a> {
    /// Which iteration it is, from 0.
    pub iteration: u32,
    /// What was used so far, if a provider said. A copy: changing it has no effect (`LOOP-33`).
    pub total_usage: Option<TokenUsage>,
    /// Everything that the model is to see next, the calls and results of this iteration included.
    ///
    /// What the hook makes of it is what the model is sent from now on, so that a long run can be
    /// made shorter; the response of the run keeps every message either way. Calls and their
    /// results have to stay together.
    pub messages: &'a mut Vec<Arc<Message>>,
    /// The model's latest reply.
    pub response: &'a Reply,
    /// Whether the caller takes the run piece by piece.
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
