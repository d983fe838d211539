//! Hooks for code that decides about the calls of an agent.
//!
//! A guard sees everything that the model sees and every call that is made for it. It can object to
//! a call before the user is asked, change the arguments that a tool receives, and replace or mark
//! a result before middleware, hooks or the model see it. Middleware cannot do this, because other
//! middleware may be inside of it.
//!
//! An agent has one [`Guard`], set with [`AgentBuilder::guard`](crate::AgentBuilder::guard). It
//! creates a [`RunGuard`] for each run, which creates a [`BatchGuard`] for the calls of each reply,
//! which creates a [`CallGuard`] for each call. Every optional method has a default that does
//! nothing. Information-flow labels (`cofferdam-labels`) are such a guard.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::declaration::DeclarationError;
use cofferdam_tool::invoke::InnerCalls;
use cofferdam_tool::{ToolDefinition, ToolSource, Toolset};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::middleware::{FunctionContext, FunctionSignal, Middleware, Next};
use crate::{
    ChatClient, FunctionCall, FunctionResult, Message, Reply, RunError, Session, TokenBudget,
    TokenUsage,
};

/// Name of the part of a session's state that has the name of its guard.
const PART: &str = "guard";

/// Decides about the calls of an agent.
pub trait Guard: Send + Sync {
    /// Returns the name under which sessions remember the guard, or `None` if they do not. Further
    /// runs of such a session need a guard of this name: without it, nothing would check what
    /// earlier runs were protected from.
    fn name(&self) -> Option<&'static str> {
        None
    }

    /// Returns the definitions of the tools that [`RunGuard::tools`] adds to each run. Called once,
    /// when the agent is built.
    ///
    /// # Errors
    /// Any; building the agent fails.
    fn definitions(&self) -> Result<Arc<[Arc<ToolDefinition>]>, DeclarationError> {
        Ok(Arc::from([]))
    }

    /// Begins a run.
    fn begin(&self, run: GuardedRun<'_>) -> Arc<dyn RunGuard>;

    /// Returns whether untrusted content is hidden from the model. Context providers then add none,
    /// because the guard labels results of tools and nothing else.
    fn hides_untrusted(&self) -> bool {
        false
    }

    /// Makes the session `to` as restricted as `from`, because it gets content of it without being
    /// its continuation.
    fn carry_over(&self, from: &Session, to: &Session) {
        let _ = (from, to);
    }
}

/// A run that is about to begin.
#[non_exhaustive]
pub struct GuardedRun<'r> {
    /// The session, if there is one.
    pub session: Option<&'r Session>,
    /// Client of the run's model.
    pub client: &'r Arc<dyn ChatClient>,
    /// Budgets to which the run counts.
    pub budgets: Vec<TokenBudget>,
    /// The guard's [definitions](Guard::definitions).
    pub definitions: &'r Arc<[Arc<ToolDefinition>]>,
}

impl<'r> GuardedRun<'r> {
    /// Describes a run without a session and without budgets, for tests of a guard.
    #[must_use]
    pub fn new(
        client: &'r Arc<dyn ChatClient>,
        definitions: &'r Arc<[Arc<ToolDefinition>]>,
    ) -> Self {
        Self { session: None, client, budgets: Vec::new(), definitions }
    }
}

/// Decides about the calls of one run.
pub trait RunGuard: Send + Sync {
    /// Returns tools that are added to those of the run.
    fn tools(self: Arc<Self>) -> Option<Arc<dyn ToolSource>> {
        None
    }

    /// Receives the messages that the run begins with, before the model does.
    fn begins_with(&self, messages: &[Arc<Message>]) {
        let _ = messages;
    }

    /// Receives a reply of the model, before it is processed.
    fn replied(&self, reply: &Reply) {
        let _ = reply;
    }

    /// Returns whether there may be [objections](Self::objections) in this run.
    fn can_block(&self) -> bool {
        false
    }

    /// Returns the objections to a call that has not begun. If there are any, the user is asked,
    /// and nothing of the batch runs until then. A guard that blocks a call without asking does so
    /// in [`CallGuard`].
    fn objections(
        &self,
        call: &FunctionCall,
        tool: &ToolDefinition,
        toolset: &Toolset,
    ) -> Vec<Objection> {
        let _ = (call, tool, toolset);
        Vec::new()
    }

    /// Begins a batch, which is the calls of one reply.
    fn begin_batch(self: Arc<Self>) -> Box<dyn BatchGuard>;

    /// Returns the tokens that the guard has used since the last call, for the usage of the run.
    fn take_usage(&self) -> Option<TokenUsage> {
        None
    }

    /// Returns whether details of errors are hidden from the model, whatever the settings say.
    fn hides_details(&self) -> bool {
        false
    }
}

/// Decides about the calls of one batch.
pub trait BatchGuard: Send + Sync {
    /// Begins a call. `toolset` is `None` if no tool has the name that the model called. `waived`
    /// contains the objections that the user has seen and approved.
    fn begin_call(&self, toolset: Option<&Toolset>, waived: Vec<Objection>) -> Box<dyn CallGuard>;
}

/// Decides about one call. As middleware it is inside of all other middleware except an
/// [invoker](crate::LoopSettings::invoker), so it sees the arguments that the tool receives and the
/// result that it returns.
pub trait CallGuard: Middleware<FunctionContext> {
    /// Returns the checks of calls that the tool makes to other tools.
    fn inner_calls(&self) -> Option<Arc<dyn InnerCalls>> {
        None
    }

    /// Marks the finished result of the call, whatever produced it.
    fn finish(&self, result: &mut FunctionResult) {
        let _ = result;
    }
}

/// An objection to a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Objection {
    /// The reason, for the user.
    pub message: String,
    /// Machine-readable form, by which the guard recognizes the objection.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// Guard of an agent that has none set.
pub(crate) struct NoGuard;

/// Records in a session the guard of its runs.
///
/// # Errors
/// [`RunError::GuardMissing`] if earlier runs of the session had another guard.
pub(crate) fn remember(guard: &dyn Guard, session: &Session) -> Result<(), RunError> {
    match (session.part(PART), guard.name()) {
        (Value::Null, None) => Ok(()),
        (Value::Null, Some(name)) => {
            session.set_part(PART, name.into());
            Ok(())
        }
        (Value::String(earlier), Some(name)) if earlier == name => Ok(()),
        (Value::String(guard), _) => Err(RunError::GuardMissing { guard }),
        (_, _) => Err(RunError::GuardMissing { guard: "unknown".to_owned() }),
    }
}

impl Guard for NoGuard {
    fn begin(&self, _: GuardedRun<'_>) -> Arc<dyn RunGuard> {
        Arc::new(Self)
    }
}

impl RunGuard for NoGuard {
    fn begin_batch(self: Arc<Self>) -> Box<dyn BatchGuard> {
        Box::new(Self)
    }
}

impl BatchGuard for NoGuard {
    fn begin_call(&self, _: Option<&Toolset>, _: Vec<Objection>) -> Box<dyn CallGuard> {
        Box::new(Self)
    }
}

impl CallGuard for NoGuard {}

#[async_trait]
impl Middleware<FunctionContext> for NoGuard {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        next.run(context).await
    }
}
