//! What is put around the messages of a run: instructions, messages, tools, middleware (`SES-2`,
//! `SES-3`).

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::ToolSource;
use serde_json::Value;

use crate::middleware::{Layer, MiddlewareRefused};
use crate::{Message, Response, RunError, Session};

/// An error of code that is not this crate's.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Adds to each run what its author thinks a model should have, and learns from what came of it.
///
/// `before_run` is called in the order of registration, `after_run` in the reverse (`SES-2`).
#[async_trait]
pub trait ContextProvider: Send + Sync {
    /// Marks what the provider adds, and is the key of its part of a session's state. Two providers
    /// of one agent have different ones.
    fn source_id(&self) -> &str;

    /// Whether earlier messages of the session are added, so that nobody else has to (`SES-4`).
    fn loads_history(&self) -> bool {
        false
    }

    /// Adds to a run that is about to begin.
    ///
    /// # Errors
    /// Any; it ends the run before a model is asked.
    async fn before_run(&self, run: &mut BeforeRun<'_>) -> Result<(), BoxError> {
        let _ = run;
        Ok(())
    }

    /// Sees the response of a run that has ended; of one that was cut short, as far as it had come.
    /// A run that ends with an error before anything was said or done is not seen.
    ///
    /// # Errors
    /// Any; the run ends with it, and its response is lost to the caller.
    async fn after_run(&self, run: &mut AfterRun<'_>) -> Result<(), BoxError> {
        let _ = run;
        Ok(())
    }
}

/// A run that is about to begin, as one provider sees it.
pub struct BeforeRun<'a> {
    /// The provider's own part of the session's state; null at first. Without a session it is
    /// forgotten after the run.
    pub state: &'a mut Value,
    /// The session, if there is one.
    pub session: Option<&'a Session>,
    /// The new messages of the caller.
    pub input: &'a [Arc<Message>],
    pub(crate) source: &'a str,
    pub(crate) added: &'a mut Added,
}

/// A run that has ended, as one provider sees it.
pub struct AfterRun<'a> {
    /// As in [`BeforeRun`].
    pub state: &'a mut Value,
    /// As in [`BeforeRun`].
    pub session: Option<&'a Session>,
    /// The new messages of the caller, without answers to approval requests.
    pub input: &'a [Arc<Message>],
    /// The messages that all providers added, in order and marked with their source.
    pub context: &'a [Arc<Message>],
    /// What came of the run; what came of it until then, where there is an error.
    pub response: &'a Response,
    /// Why the run was cut short, if it was.
    pub error: Option<&'a RunError>,
}

/// What providers have added to one run.
#[derive(Default)]
pub(crate) struct Added {
    pub(crate) instructions: Vec<String>,
    pub(crate) messages: Vec<Arc<Message>>,
    pub(crate) sources: Vec<Arc<dyn ToolSource>>,
    pub(crate) middleware: Vec<Layer>,
}

impl BeforeRun<'_> {
    /// Adds instructions; those of several providers are joined by a line feed, in order (`SES-3`).
    pub fn add_instructions(&mut self, text: impl Into<String>) {
        self.added.instructions.push(text.into());
    }

    /// Adds messages before the input, marked with the source (`SES-3`).
    pub fn add_messages(&mut self, messages: impl IntoIterator<Item = Message>) {
        let marked = messages.into_iter().map(|message| Arc::new(message.from_source(self.source)));
        self.added.messages.extend(marked);
    }

    /// Adds the tools of a source to those of the run.
    pub fn add_tools(&mut self, source: Arc<dyn ToolSource>) {
        self.added.sources.push(source);
    }

    /// Adds middleware around the run's model and function calls: all of it or nothing (`MW-18`).
    ///
    /// # Errors
    /// [`MiddlewareRefused`] for agent middleware, which is around the run and so around the
    /// provider itself.
    pub fn add_middleware(&mut self, bundle: Vec<Layer>) -> Result<(), MiddlewareRefused> {
        if bundle.iter().any(|layer| matches!(layer, Layer::Agent(_))) {
            return Err(MiddlewareRefused::AgentKind { source_id: self.source.to_owned() });
        }
        self.added.middleware.extend(bundle);
        Ok(())
    }
}
