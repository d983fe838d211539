//! Code around runs, model calls and function calls (`MW-1`).
//!
//! A middleware gets a context and the rest of the chain, and works before and after it runs that.
//! What kind it is, is a part of its type: `Middleware<AgentContext>`, `Middleware<ChatContext>`,
//! `Middleware<FunctionContext>`.

mod audit;
mod context;
mod conversion;
mod rate;
mod redaction;
mod retry;
mod signal;
mod timeout;

use std::sync::Arc;

use async_trait::async_trait;

pub use audit::{Audit, AuditEntry, AuditSink};
pub use context::{
    AgentContext, AgentResult, CallArguments, ChatContext, ChatResult, FunctionContext,
    FunctionValue,
};
pub use conversion::FailureConversion;
pub use rate::RateLimit;
pub use redaction::Redaction;
pub use retry::Retry;
pub use signal::{FunctionError, FunctionSignal, Signal};
pub use timeout::Timeout;

/// Code around something that happens in a run: the run itself, a model call or a function call.
#[async_trait]
pub trait Middleware<C: MiddlewareStage>: Send + Sync {
    /// Does what it does before and after `next`. `next` may be run once, several times or not at
    /// all.
    ///
    /// # Errors
    /// What the chain inside gave, unless the middleware deals with it, and signals of its own.
    async fn process(&self, context: &mut C, next: Next<'_, C>) -> Result<(), C::Signal>;

    /// Returns the position of this middleware in the required order (`MW-19`).
    fn place(&self) -> MiddlewareOrder {
        MiddlewareOrder::Anywhere
    }
}

/// Something that middleware can be around.
pub trait MiddlewareStage: Send {
    /// Value that stops the chain.
    type Signal: Send;
}

/// Position of a function middleware in the required order (`MW-19`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MiddlewareOrder {
    /// Nothing.
    Anywhere,
    /// It turns failures into results: what is outside of it sees no failure to try again.
    Conversion,
    /// It tries failures again, and has to see them.
    Retry,
}

/// The rest of a chain.
pub struct Next<'a, C: MiddlewareStage> {
    rest: &'a [Arc<dyn Middleware<C>>],
    end: &'a dyn Innermost<C>,
}

impl<C: MiddlewareStage> Clone for Next<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: MiddlewareStage> Copy for Next<'_, C> {}

/// The innermost step of a chain.
#[async_trait]
pub(crate) trait Innermost<C: MiddlewareStage>: Send + Sync {
    async fn run(&self, context: &mut C) -> Result<(), C::Signal>;
}

impl<'a, C: MiddlewareStage> Next<'a, C> {
    pub(crate) fn new(chain: &'a [Arc<dyn Middleware<C>>], end: &'a dyn Innermost<C>) -> Self {
        Self { rest: chain, end }
    }

    /// Runs the rest of the chain.
    ///
    /// # Errors
    /// What it gives.
    pub async fn run(self, context: &mut C) -> Result<(), C::Signal> {
        match self.rest.split_first() {
            Some((first, rest)) => first.process(context, Next { rest, end: self.end }).await,
            None => self.end.run(context).await,
        }
    }
}

/// A middleware of any kind.
#[derive(Clone)]
#[non_exhaustive]
pub enum Layer {
    /// Around a run.
    Agent(Arc<dyn Middleware<AgentContext>>),
    /// Around each model call.
    Chat(Arc<dyn Middleware<ChatContext>>),
    /// Around each function call.
    Function(Arc<dyn Middleware<FunctionContext>>),
}

/// Kind of step that a middleware wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerKind {
    /// A run.
    Agent,
    /// A model call.
    Chat,
    /// A function call.
    Function,
}

/// Error returned when middleware cannot be installed. None of its bundle is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MiddlewareRefused {
    /// A context provider runs inside the agent middleware and can add none (`MW-18`).
    #[error(
        "the context provider `{source_id}` adds agent middleware; it may add chat and function \
         middleware only"
    )]
    AgentKind {
        /// The provider.
        source_id: String,
    },
    /// An entry is said to be of a kind that it is not (`MW-18`).
    #[error("middleware declared as {declared} is {actual} middleware")]
    OtherKind {
        /// Declared kind.
        declared: LayerKind,
        /// Actual kind.
        actual: LayerKind,
    },
    /// Retrying is outside of the conversion of failures, where it sees none (`MW-19`).
    #[error(
        "retry middleware is registered before failure conversion, and so outside of it: every failure is a result by then; \
         register it after the conversion"
    )]
    RetryOutsideConversion,
}

impl Layer {
    /// Around a run.
    pub fn agent(middleware: impl Middleware<AgentContext> + 'static) -> Self {
        Self::Agent(Arc::new(middleware))
    }

    /// Around each model call.
    pub fn chat(middleware: impl Middleware<ChatContext> + 'static) -> Self {
        Self::Chat(Arc::new(middleware))
    }

    /// Around each function call.
    pub fn function(middleware: impl Middleware<FunctionContext> + 'static) -> Self {
        Self::Function(Arc::new(middleware))
    }

    /// Returns the kind of step that it wraps.
    #[must_use]
    pub fn kind(&self) -> LayerKind {
        match self {
            Self::Agent(_) => LayerKind::Agent,
            Self::Chat(_) => LayerKind::Chat,
            Self::Function(_) => LayerKind::Function,
        }
    }

    /// A bundle out of entries whose kind stands beside them, all of it or nothing (`MW-18`).
    ///
    /// # Errors
    /// The first entry that is not what it is said to be.
    pub fn bundle(
        entries: impl IntoIterator<Item = (LayerKind, Self)>,
    ) -> Result<Vec<Self>, MiddlewareRefused> {
        let checked = |(declared, layer): (LayerKind, Self)| match layer.kind() {
            actual if actual == declared => Ok(layer),
            actual => Err(MiddlewareRefused::OtherKind { declared, actual }),
        };
        entries.into_iter().map(checked).collect()
    }
}

impl std::fmt::Debug for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Layer({})", self.kind())
    }
}

impl std::fmt::Display for LayerKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Agent => "agent",
            Self::Chat => "chat",
            Self::Function => "function",
        })
    }
}

/// Middleware of all kinds, each kind from the outside in (`MW-2`, `MW-3`).
#[derive(Clone, Default)]
pub(crate) struct Chains {
    pub(crate) agent: Vec<Arc<dyn Middleware<AgentContext>>>,
    pub(crate) chat: Vec<Arc<dyn Middleware<ChatContext>>>,
    pub(crate) function: Vec<Arc<dyn Middleware<FunctionContext>>>,
}

impl Chains {
    /// Adds layers inside of those that are there.
    pub(crate) fn extend(&mut self, layers: impl IntoIterator<Item = Layer>) {
        for layer in layers {
            match layer {
                Layer::Agent(middleware) => self.agent.push(middleware),
                Layer::Chat(middleware) => self.chat.push(middleware),
                Layer::Function(middleware) => self.function.push(middleware),
            }
        }
    }

    /// Refuses orders in which middleware cannot work (`MW-19`).
    pub(crate) fn check(&self) -> Result<(), MiddlewareRefused> {
        let places: Vec<_> = self.function.iter().map(|middleware| middleware.place()).collect();
        let retry = places.iter().position(|place| *place == MiddlewareOrder::Retry);
        let conversion = places.iter().rposition(|place| *place == MiddlewareOrder::Conversion);
        match (retry, conversion) {
            (Some(retry), Some(conversion)) if retry < conversion => {
                Err(MiddlewareRefused::RetryOutsideConversion)
            }
            _ => Ok(()),
        }
    }
}
