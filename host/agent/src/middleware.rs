//! Code around runs, model calls and function calls (`MW-1`).
//!
//! A middleware receives a context and the rest of the chain, and works before and after it runs
//! that rest. The kind of a middleware is part of its type: `Middleware<AgentContext>`,
//! `Middleware<ChatContext>` or `Middleware<FunctionContext>`.

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

/// Code around a step of a run: the run itself, a model call or a function call.
#[async_trait]
pub trait Middleware<C: MiddlewareStage>: Send + Sync {
    /// Does its work before and after `next`, which it may run once, several times or never.
    ///
    /// # Errors
    /// The error of the rest of the chain, unless the middleware handles it, and signals of the
    /// middleware itself.
    async fn process(&self, context: &mut C, next: Next<'_, C>) -> Result<(), C::Signal>;

    /// Returns the position of this middleware in the required order (`MW-19`).
    fn order(&self) -> MiddlewareOrder {
        MiddlewareOrder::Anywhere
    }
}

/// Step that middleware can wrap.
pub trait MiddlewareStage: Send {
    /// Value that stops the chain.
    type Signal: Send;
}

/// Position of a function middleware in the required order (`MW-19`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MiddlewareOrder {
    /// No required position.
    Anywhere,
    /// Turns failures into results. Middleware outside of it sees no failure that it could retry.
    Conversion,
    /// Retries failures, so it must see them.
    Retry,
}

/// Rest of a chain.
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

/// Innermost step of a chain.
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
    /// The error of the chain.
    pub async fn run(self, context: &mut C) -> Result<(), C::Signal> {
        match self.rest.split_first() {
            Some((first, rest)) => first.process(context, Next { rest, end: self.end }).await,
            None => self.end.run(context).await,
        }
    }
}

/// Middleware of any kind.
#[derive(Clone)]
#[non_exhaustive]
pub enum Layer {
    /// Wraps a run.
    Agent(Arc<dyn Middleware<AgentContext>>),
    /// Wraps each model call.
    Chat(Arc<dyn Middleware<ChatContext>>),
    /// Wraps each function call.
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

/// Error returned when middleware cannot be installed. In this case none of its bundle is
/// installed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MiddlewareRefused {
    /// A context provider adds agent middleware, which is impossible because it runs inside of it
    /// (`MW-18`).
    #[error(
        "the context provider `{source_id}` adds agent middleware; it may add chat and function \
         middleware only"
    )]
    AgentKind {
        /// Source id of the provider.
        source_id: String,
    },
    /// The declared kind of an entry differs from its actual kind (`MW-18`).
    #[error("middleware declared as {declared} is {actual} middleware")]
    OtherKind {
        /// Declared kind.
        declared: LayerKind,
        /// Actual kind.
        actual: LayerKind,
    },
    /// Retry middleware is outside of the conversion of failures, where it sees no failures
    /// (`MW-19`).
    #[error(
        "retry middleware is registered before failure conversion, and so outside of it: every failure is a result by then; \
         register it after the conversion"
    )]
    RetryOutsideConversion,
}

impl Layer {
    /// Wraps agent middleware in a layer.
    pub fn agent(middleware: impl Middleware<AgentContext> + 'static) -> Self {
        Self::Agent(Arc::new(middleware))
    }

    /// Wraps chat middleware in a layer.
    pub fn chat(middleware: impl Middleware<ChatContext> + 'static) -> Self {
        Self::Chat(Arc::new(middleware))
    }

    /// Wraps function middleware in a layer.
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

    /// Creates a bundle from entries with declared kinds, all of them or none (`MW-18`).
    ///
    /// # Errors
    /// Returns an error for the first entry whose declared kind is wrong.
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

/// Middleware of all kinds, each kind from the outermost to the innermost (`MW-2`, `MW-3`).
#[derive(Clone, Default)]
pub(crate) struct Chains {
    pub(crate) agent: Vec<Arc<dyn Middleware<AgentContext>>>,
    pub(crate) chat: Vec<Arc<dyn Middleware<ChatContext>>>,
    pub(crate) function: Vec<Arc<dyn Middleware<FunctionContext>>>,
}

impl Chains {
    /// Adds layers inside of the existing ones.
    pub(crate) fn extend(&mut self, layers: impl IntoIterator<Item = Layer>) {
        for layer in layers {
            match layer {
                Layer::Agent(middleware) => self.agent.push(middleware),
                Layer::Chat(middleware) => self.chat.push(middleware),
                Layer::Function(middleware) => self.function.push(middleware),
            }
        }
    }

    /// Rejects orders in which middleware cannot work (`MW-19`).
    pub(crate) fn check(&self) -> Result<(), MiddlewareRefused> {
        let order: Vec<_> = self.function.iter().map(|middleware| middleware.order()).collect();
        let retry = order.iter().position(|order| *order == MiddlewareOrder::Retry);
        let conversion = order.iter().rposition(|order| *order == MiddlewareOrder::Conversion);
        match (retry, conversion) {
            (Some(retry), Some(conversion)) if retry < conversion => {
                Err(MiddlewareRefused::RetryOutsideConversion)
            }
            _ => Ok(()),
        }
    }
}
