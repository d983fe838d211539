//! Context providers, which add instructions, messages, tools and middleware to runs (`SES-2`,
//! `SES-3`).

mod announcement;
mod memory;
mod mode;
mod todos;
mod tools;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::{ToolDefinition, ToolSource};
use serde_json::Value;

use crate::compaction::CompactionSnapshot;
use crate::middleware::{Layer, MiddlewareRefused};
use crate::{Message, Response, RunError, Session};

pub use self::memory::MemoryFiles;
pub use self::mode::{InvalidMode, Mode, PlanMode};
pub use self::todos::{TodoItem, TodoList};

/// An error of third-party code.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Adds context to each run, and sees its result.
///
/// `before_run` is called in order of registration, `after_run` in reverse order (`SES-2`).
#[async_trait]
pub trait ContextProvider: Send + Sync {
    /// Returns the id that marks what the provider adds, and that is the key of its part of a
    /// session's state. Ids are unique within an agent.
    fn source_id(&self) -> &str;

    /// Returns whether this provider adds earlier messages of the session, so that no other needs
    /// to (`SES-4`).
    fn loads_history(&self) -> bool {
        false
    }

    /// Returns the definitions of all tools that the provider can add to a run.
    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::from([])
    }

    /// Adds to a run that is about to begin.
    ///
    /// # Errors
    /// Any; it ends the run before the model is called.
    async fn before_run(&self, run: &mut BeforeRun<'_>) -> Result<(), BoxError> {
        let _ = run;
        Ok(())
    }

    /// Receives the response of a run that has ended, or the partial response of a run that was cut
    /// short. Not called for a run that fails before it has any output.
    ///
    /// # Errors
    /// Any; it becomes the result of the run, and the caller loses the response.
    async fn after_run(&self, run: &mut AfterRun<'_>) -> Result<(), BoxError> {
        let _ = run;
        Ok(())
    }
}

/// A run that is about to begin, as one provider sees it.
pub struct BeforeRun<'a> {
    /// The provider's own part of the session's state; null at first. Without a session it is
    /// dropped after the run.
    pub state: &'a mut Value,
    /// The session, if there is one.
    pub session: Option<&'a Session>,
    /// New messages of the caller.
    pub input: &'a [Arc<Message>],
    /// Session of the outermost tool call that the run is inside of
    /// ([`RunContext::caller`](crate::RunContext::caller)).
    pub caller: Option<&'a str>,
    /// True if the agent's guard hides untrusted content from the model. A provider must not add
    /// any then: no content whose author is not known.
    pub hides_untrusted: bool,
    pub(crate) source: &'a str,
    pub(crate) added: &'a mut ContextAdditions,
}

/// A run that has ended, as one provider sees it.
pub struct AfterRun<'a> {
    /// Like [`BeforeRun::state`].
    pub state: &'a mut Value,
    /// Like [`BeforeRun::session`].
    pub session: Option<&'a Session>,
    /// New messages of the caller, without answers to approval requests, after the announcements of
    /// providers.
    pub input: &'a [Arc<Message>],
    /// Like [`BeforeRun::caller`].
    pub caller: Option<&'a str>,
    /// Like [`BeforeRun::hides_untrusted`].
    pub hides_untrusted: bool,
    /// Messages that all providers added, in order and marked with their source.
    pub context: &'a [Arc<Message>],
    /// Response of the run, or its partial response if there is an error.
    pub response: &'a Response,
    /// Error that cut the run short, if any.
    pub error: Option<&'a RunError>,
    /// Number of messages that each history has loaded, by source id.
    pub(crate) loaded: &'a [(String, usize)],
    /// Last compaction of the run.
    pub(crate) compaction: Option<&'a CompactionSnapshot>,
}

impl AfterRun<'_> {
    /// Returns whether the conversation was shortened during the run, so that the model may no
    /// longer see what was announced earlier.
    #[must_use]
    pub fn is_compacted(&self) -> bool {
        self.compaction.is_some()
    }
}

/// Decision about a tool that may not be called: the message for the model.
pub(crate) type Denial = Arc<dyn Fn(&ToolDefinition) -> Option<String> + Send + Sync>;

/// Additions of all providers to one run.
#[derive(Default)]
pub(crate) struct ContextAdditions {
    pub(crate) instructions: Vec<String>,
    pub(crate) messages: Vec<Arc<Message>>,
    /// Messages that become part of the conversation, before the input.
    pub(crate) announced: Vec<Arc<Message>>,
    /// Decisions about tools that may not be called.
    pub(crate) denials: Vec<Denial>,
    pub(crate) sources: Vec<Arc<dyn ToolSource>>,
    pub(crate) middleware: Vec<Layer>,
    /// Number of lines that each history has loaded, by source id.
    pub(crate) loaded: Vec<(String, usize)>,
    /// Messages of the history that an earlier compaction has replaced.
    pub(crate) replaced: Vec<Arc<Message>>,
}

impl BeforeRun<'_> {
    /// Adds instructions. Those of several providers are joined by a line feed, in order (`SES-3`).
    pub fn add_instructions(&mut self, text: impl Into<String>) {
        self.added.instructions.push(text.into());
    }

    /// Adds messages before the input, marked with the source (`SES-3`).
    pub fn add_messages(&mut self, messages: impl IntoIterator<Item = Message>) {
        let marked = messages.into_iter().map(|message| Arc::new(message.from_source(self.source)));
        self.added.messages.extend(marked);
    }

    /// Adds a user message that becomes part of the conversation, directly before the input: a
    /// history stores it, and later runs see it where it was said (`SES-23`). Use it for what has
    /// changed since the last announcement. A message that [`add_messages`](Self::add_messages)
    /// adds with other words in each run changes what earlier replies have followed, which makes
    /// caches useless and some providers reject the conversation.
    pub fn announce(&mut self, text: impl Into<String>) {
        let message = Message::user(text).from_source(self.source);
        self.added.announced.push(Arc::new(message));
    }

    /// Denies calls of the tools for which `denial` returns a message for the model (`LOOP-60`).
    /// It is called before the user would be asked for approval and again before each call, so it
    /// may depend on state that changes, and it must not block.
    pub fn deny_tools(
        &mut self,
        denial: impl Fn(&ToolDefinition) -> Option<String> + Send + Sync + 'static,
    ) {
        self.added.denials.push(Arc::new(denial));
    }

    /// Adds the tools of a source to those of the run.
    pub fn add_tools(&mut self, source: Arc<dyn ToolSource>) {
        self.added.sources.push(source);
    }

    /// Adds middleware around the run's model and function calls, all of it or none (`MW-18`).
    ///
    /// # Errors
    /// [`MiddlewareRefused`] for agent middleware, which wraps the run and therefore the provider
    /// itself.
    pub fn add_middleware(&mut self, bundle: Vec<Layer>) -> Result<(), MiddlewareRefused> {
        if bundle.iter().any(|layer| matches!(layer, Layer::Agent(_))) {
            return Err(MiddlewareRefused::AgentKind { source_id: self.source.to_owned() });
        }
        self.added.middleware.extend(bundle);
        Ok(())
    }
}
