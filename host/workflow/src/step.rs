//! Actions of an executor while it handles messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use cofferdam_agent::{BoxError, RunContext};
use cofferdam_tool::label::Label;
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::event::{EventObserver, ProducedOutput, WorkflowEvent};
use super::limits::WorkflowLimits;
use super::message::{MessageType, Payload, TypedMessage};
use super::outputs::YieldUse;
use super::size;
use super::snapshot::UserRequest;

/// Context of one executor in one superstep. Clones share state.
///
/// Outputs and requests are reported as events at once. Messages, requests and state take effect at
/// the end of the superstep. Later actions have no effect; most of them return
/// [`StepError::Cancelled`].
#[derive(Clone)]
pub struct Step {
    inner: Arc<StepContext>,
}

struct StepContext {
    executor: String,
    superstep: u64,
    sends: Vec<MessageType>,
    yields: Vec<MessageType>,
    /// Executors that this one has edges to.
    targets: Vec<String>,
    shown: YieldUse,
    limits: WorkflowLimits,
    context: RunContext,
    /// Shared state at the start of the superstep.
    state: Arc<Map<String, Value>>,
    /// Label of the run at the start of the superstep.
    label: Label,
    work: Mutex<StepState>,
}

/// State that changes while the executor runs.
struct StepState {
    from: Vec<String>,
    /// `None` after the superstep has ended.
    events: Option<mpsc::UnboundedSender<WorkflowEvent>>,
    observer: Option<EventObserver>,
    effects: Effects,
    bytes: usize,
}

/// Effects of an executor in a superstep.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Messages, each with its target if it was sent to only one.
    pub(super) sent: Vec<(Payload, Option<String>)>,
    /// Changes of the shared state; null removes a key.
    pub(super) state: BTreeMap<String, Value>,
    /// Private state of the executor.
    pub(super) own: Value,
    pub(super) asked: u64,
    pub(super) requests: Vec<UserRequest>,
    /// Label of the data that the executor has read.
    pub(super) label: Label,
}

/// Input of [`Step::new`].
pub(super) struct StepStart {
    pub(super) executor: String,
    pub(super) superstep: u64,
    pub(super) sends: Vec<MessageType>,
    pub(super) yields: Vec<MessageType>,
    pub(super) targets: Vec<String>,
    pub(super) shown: YieldUse,
    pub(super) limits: WorkflowLimits,
    pub(super) context: RunContext,
    pub(super) state: Arc<Map<String, Value>>,
    pub(super) label: Label,
    pub(super) own: Value,
    pub(super) asked: u64,
    pub(super) events: mpsc::UnboundedSender<WorkflowEvent>,
    pub(super) observer: Option<EventObserver>,
}

/// Error of an action in a step.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The executor does not declare that it sends or yields values of this type.
    #[error("`{executor}` {does} {given}, and declares no such type")]
    Undeclared {
        /// Id of the executor.
        executor: String,
        /// `sends` or `yields`.
        does: &'static str,
        /// Type of the value.
        given: MessageType,
    },
    /// The executor has no edge to the target of a message.
    #[error("`{executor}` has no edge to `{target}`")]
    NoEdge {
        /// Id of the executor.
        executor: String,
        /// Id of the target.
        target: String,
    },
    /// A value cannot be written as JSON.
    #[error("`{executor}` has a value that cannot be written as JSON: {source}")]
    Json {
        /// Id of the executor.
        executor: String,
        /// Cause.
        source: serde_json::Error,
    },
    /// The executor exceeds a limit of the run.
    #[error("more than {max} {what} in one superstep")]
    TooMuch {
        /// Unit of the limit: `messages` or `bytes`.
        what: &'static str,
        /// Maximum.
        max: usize,
    },
    /// The superstep has ended, for example because the run was canceled.
    #[error("the superstep has ended")]
    Cancelled,
}

impl StepError {
    pub(super) fn executor(&self) -> &str {
        match self {
            Self::Undeclared { executor, .. }
            | Self::NoEdge { executor, .. }
            | Self::Json { executor, .. } => executor,
            Self::TooMuch { .. } | Self::Cancelled => "",
        }
    }
}

impl Step {
    pub(super) fn new(beginning: StepStart) -> Self {
        let effects = Effects { own: beginning.own, asked: beginning.asked, ..Effects::default() };
        let work = StepState {
            from: Vec::new(),
            events: Some(beginning.events),
            observer: beginning.observer,
            effects,
            bytes: 0,
        };
        Self {
            inner: Arc::new(StepContext {
                executor: beginning.executor,
                superstep: beginning.superstep,
                sends: beginning.sends,
                yields: beginning.yields,
                targets: beginning.targets,
                shown: beginning.shown,
                limits: beginning.limits,
                context: beginning.context,
                state: beginning.state,
                label: beginning.label,
                work: Mutex::new(work),
            }),
        }
    }

    /// Returns the id of the executor.
    #[must_use]
    pub fn executor(&self) -> &str {
        &self.inner.executor
    }

    /// Returns the number of the superstep, from 1.
    #[must_use]
    pub fn superstep(&self) -> u64 {
        self.inner.superstep
    }

    /// Returns the senders of the message; empty for the input of the run and for answers of users.
    #[must_use]
    pub fn sources(&self) -> Vec<String> {
        self.inner.work.lock().from.clone()
    }

    /// Returns the ids of the executors that this one has edges to.
    #[must_use]
    pub fn targets(&self) -> &[String] {
        &self.inner.targets
    }

    /// Returns the token that is canceled with the run.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.inner.context.cancellation
    }

    /// Returns the services and limits of the run's caller, for agents that the executor runs.
    #[must_use]
    pub fn context(&self) -> &RunContext {
        &self.inner.context
    }

    /// Sends a message along the executor's edges. It arrives in the next superstep.
    ///
    /// # Errors
    /// [`StepError::Undeclared`] if the executor does not declare the type, [`StepError::TooMuch`],
    /// [`StepError::Json`], [`StepError::Cancelled`].
    pub fn send<T: TypedMessage>(&self, message: &T) -> Result<(), StepError> {
        self.send_payload(self.payload(message)?, None)
    }

    /// Sends a message to only one of the [`targets`](Self::targets).
    ///
    /// # Errors
    /// [`StepError::NoEdge`], and those of [`send`](Self::send).
    pub fn send_to<T: TypedMessage>(&self, target: &str, message: &T) -> Result<(), StepError> {
        self.send_payload(self.payload(message)?, Some(target))
    }

    /// Sends a value whose type is known only at run time, to `target` or along all edges.
    ///
    /// # Errors
    /// Those of [`send`](Self::send) and [`send_to`](Self::send_to).
    pub fn send_payload(&self, message: Payload, target: Option<&str>) -> Result<(), StepError> {
        self.check_declared("sends", &self.inner.sends, &message)?;
        if let Some(target) =
            target.filter(|target| !self.inner.targets.iter().any(|known| known == target))
        {
            return Err(StepError::NoEdge {
                executor: self.inner.executor.clone(),
                target: target.to_owned(),
            });
        }
        let mut work = self.open()?;
        work.count(&message.value, &self.inner.limits)?;
        if work.effects.sent.len() >= self.inner.limits.messages_max {
            return Err(StepError::TooMuch {
                what: "messages",
                max: self.inner.limits.messages_max,
            });
        }
        work.effects.sent.push((message, target.map(str::to_owned)));
        Ok(())
    }

    /// Yields output. The output selection of the workflow decides whether it is shown (`WF-9`).
    ///
    /// # Errors
    /// [`StepError::Undeclared`] if the executor does not declare the type, [`StepError::TooMuch`],
    /// [`StepError::Json`], [`StepError::Cancelled`].
    pub fn output<T: TypedMessage>(&self, value: &T) -> Result<(), StepError> {
        self.output_payload(self.payload(value)?)
    }

    /// Yields a value whose type is known only at run time.
    ///
    /// # Errors
    /// Those of [`output`](Self::output).
    pub fn output_payload(&self, value: Payload) -> Result<(), StepError> {
        self.check_declared("yields", &self.inner.yields, &value)?;
        let mut work = self.open()?;
        work.count(&value.value, &self.inner.limits)?;
        let produced = ProducedOutput { executor: self.inner.executor.clone(), value };
        work.emit(match self.inner.shown {
            YieldUse::Output => WorkflowEvent::Output(produced),
            YieldUse::Intermediate => WorkflowEvent::Intermediate(produced),
            YieldUse::Hidden => return Ok(()),
        });
        Ok(())
    }

    /// Returns the value of a key of the shared state: the one that this executor has written in
    /// this superstep, or else the one at the start of the superstep (`WF-5`). Null if the key is
    /// missing.
    #[must_use]
    pub fn state(&self, key: &str) -> Value {
        let work = self.inner.work.lock();
        work.effects
            .state
            .get(key)
            .or_else(|| self.inner.state.get(key))
            .cloned()
            .unwrap_or_default()
    }

    /// Writes a value into the shared state. Other executors see it in the next superstep (`WF-5`).
    /// If several executors write a key, the last one in order wins. Null removes the key.
    ///
    /// # Errors
    /// [`StepError::TooMuch`], [`StepError::Cancelled`].
    pub fn set_state(
        &self,
        key: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<(), StepError> {
        let (key, value) = (key.into(), value.into());
        let mut work = self.open()?;
        work.count(&value, &self.inner.limits)?;
        work.effects.state.insert(key, value);
        Ok(())
    }

    /// Returns the private state of the executor; null at first.
    #[must_use]
    pub fn executor_state(&self) -> Value {
        self.inner.work.lock().effects.own.clone()
    }

    /// Sets the private state of the executor.
    ///
    /// # Errors
    /// [`StepError::TooMuch`], [`StepError::Cancelled`].
    pub fn set_executor_state(&self, value: impl Into<Value>) -> Result<(), StepError> {
        let value = value.into();
        let mut work = self.open()?;
        work.count(&value, &self.inner.limits)?;
        work.effects.own = value;
        Ok(())
    }

    /// Parses the private state of the executor; returns the default at first.
    pub(super) fn read_executor_state<T: Default + DeserializeOwned>(&self) -> Result<T, BoxError> {
        match self.executor_state() {
            Value::Null => Ok(T::default()),
            own => Ok(serde_json::from_value(own)?),
        }
    }

    /// Serializes a value into the private state of the executor.
    pub(super) fn write_executor_state(&self, own: &impl Serialize) -> Result<(), BoxError> {
        Ok(self.set_executor_state(serde_json::to_value(own)?)?)
    }

    /// Asks the user for a value of type `answer`, and returns the id of the request. The run
    /// pauses when no messages are left (`WF-12`).
    ///
    /// # Errors
    /// [`StepError::TooMuch`], [`StepError::Cancelled`].
    pub fn request(&self, prompt: Payload, answer: MessageType) -> Result<String, StepError> {
        let mut work = self.open()?;
        work.count(&prompt.value, &self.inner.limits)?;
        work.effects.asked = work.effects.asked.saturating_add(1);
        let id = format!("{}-{}", self.inner.executor, work.effects.asked);
        let request =
            UserRequest { id: id.clone(), executor: self.inner.executor.clone(), prompt, answer };
        work.emit(WorkflowEvent::Request(request.clone()));
        work.effects.requests.push(request);
        Ok(id)
    }

    /// Returns the label of everything that the run has read ([labels](cofferdam_labels)): all
    /// executors in earlier supersteps, and this one in this superstep. The whole run has one
    /// label, because any message may contain what any executor has read.
    #[must_use]
    pub fn label(&self) -> Label {
        Label::combine([&self.inner.label, &self.inner.work.lock().effects.label])
    }

    /// Adds the label of data that the executor has read. An agent's context is added
    /// automatically; this is for executors that read from other sources.
    pub fn taint(&self, label: &Label) {
        self.inner.work.lock().effects.label.add(label);
    }

    /// Sets the senders of the next message.
    pub(super) fn begin(&self, from: &[String]) {
        self.inner.work.lock().from = from.to_vec();
    }

    /// Reports an event.
    pub(super) fn emit(&self, event: WorkflowEvent) {
        self.inner.work.lock().emit(event);
    }

    /// Ends the step and returns its effects; later actions and events are dropped.
    pub(super) fn end(&self) -> Effects {
        let mut work = self.inner.work.lock();
        work.events = None;
        std::mem::take(&mut work.effects)
    }

    fn payload<T: TypedMessage>(&self, value: &T) -> Result<Payload, StepError> {
        let executor = || self.inner.executor.clone();
        Payload::of(value).map_err(|source| StepError::Json { executor: executor(), source })
    }

    fn check_declared(
        &self,
        does: &'static str,
        declared: &[MessageType],
        value: &Payload,
    ) -> Result<(), StepError> {
        if declared.iter().any(|declared| value.fits_type(declared)) {
            return Ok(());
        }
        let (executor, given) = (self.inner.executor.clone(), value.message_type.clone());
        Err(StepError::Undeclared { executor, does, given })
    }

    fn open(&self) -> Result<MutexGuard<'_, StepState>, StepError> {
        let work = self.inner.work.lock();
        if work.events.is_none() { Err(StepError::Cancelled) } else { Ok(work) }
    }
}

impl StepState {
    fn emit(&self, event: WorkflowEvent) {
        if let Some(events) = &self.events {
            if let Some(observer) = &self.observer {
                observer(&event);
            }
            // The receiver is gone if the run was dropped.
            let _ = events.send(event);
        }
    }

    fn count(&mut self, value: &Value, limits: &WorkflowLimits) -> Result<(), StepError> {
        self.bytes = self.bytes.saturating_add(size::bytes(value));
        if self.bytes <= limits.bytes_max {
            return Ok(());
        }
        Err(StepError::TooMuch { what: "bytes", max: limits.bytes_max })
    }
}
