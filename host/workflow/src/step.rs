//! Actions of an executor while it handles a message.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cofferdam_agent::BoxError;
use cofferdam_tool::label::Label;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::event::{ProducedOutput, WorkflowEvent};
use super::limits::WorkflowLimits;
use super::message::{MessageType, Payload, TypedMessage};
use super::outputs::YieldUse;
use super::size;
use super::snapshot::UserRequest;

/// One executor's part of one superstep. Clones are the same.
///
/// What is done through it is published when the executor is done; what is done after that has no
/// effect.
#[derive(Clone)]
pub struct Step {
    inner: Arc<StepContext>,
}

struct StepContext {
    executor: String,
    superstep: u64,
    sends: Vec<MessageType>,
    yields: Vec<MessageType>,
    /// Executors that it has edges to.
    targets: Vec<String>,
    shown: YieldUse,
    limits: WorkflowLimits,
    cancellation: CancellationToken,
    /// The state as it was when the superstep began.
    state: Arc<Map<String, Value>>,
    /// That of the run when the superstep began.
    label: Label,
    work: Mutex<StepState>,
}

/// State that changes while the executor works.
struct StepState {
    from: Vec<String>,
    /// `None` when the executor is done.
    events: Option<mpsc::UnboundedSender<WorkflowEvent>>,
    effects: Effects,
    bytes: usize,
}

/// Effects of an executor in a superstep.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// Messages, with their target if it is not that of the edges.
    pub(super) sent: Vec<(Payload, Option<String>)>,
    /// Changes of the shared state; null removes a key.
    pub(super) state: BTreeMap<String, Value>,
    /// Private state.
    pub(super) own: Value,
    pub(super) asked: u64,
    pub(super) requests: Vec<UserRequest>,
    /// Of what it has learned.
    pub(super) label: Label,
}

/// Start of a step.
pub(super) struct StepStart {
    pub(super) executor: String,
    pub(super) superstep: u64,
    pub(super) sends: Vec<MessageType>,
    pub(super) yields: Vec<MessageType>,
    pub(super) targets: Vec<String>,
    pub(super) shown: YieldUse,
    pub(super) limits: WorkflowLimits,
    pub(super) cancellation: CancellationToken,
    pub(super) state: Arc<Map<String, Value>>,
    pub(super) label: Label,
    pub(super) own: Value,
    pub(super) asked: u64,
    pub(super) events: mpsc::UnboundedSender<WorkflowEvent>,
}

/// Error of an action.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The executor did not say that it sends or yields such values.
    #[error("`{executor}` {does} {given}, and declares no such type")]
    Undeclared {
        /// The executor.
        executor: String,
        /// `sends` or `yields`.
        does: &'static str,
        /// The type.
        given: MessageType,
    },
    /// There is no edge to whom a message was to go.
    #[error("`{executor}` has no edge to `{target}`")]
    NoEdge {
        /// The executor.
        executor: String,
        /// Target.
        target: String,
    },
    /// A value cannot be written as JSON.
    #[error("`{executor}` has a value that cannot be written as JSON: {source}")]
    Json {
        /// The executor.
        executor: String,
        /// Cause.
        source: serde_json::Error,
    },
    /// More than a run may hold between two steps.
    #[error("more than {max} {what} in one superstep")]
    TooMuch {
        /// Subject.
        what: &'static str,
        /// Maximum.
        max: usize,
    },
    /// The executor is done, or the run is cancelled.
    #[error("the superstep is over")]
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
        let work =
            StepState { from: Vec::new(), events: Some(beginning.events), effects, bytes: 0 };
        Self {
            inner: Arc::new(StepContext {
                executor: beginning.executor,
                superstep: beginning.superstep,
                sends: beginning.sends,
                yields: beginning.yields,
                targets: beginning.targets,
                shown: beginning.shown,
                limits: beginning.limits,
                cancellation: beginning.cancellation,
                state: beginning.state,
                label: beginning.label,
                work: Mutex::new(work),
            }),
        }
    }

    /// The executor whose step it is.
    #[must_use]
    pub fn executor(&self) -> &str {
        &self.inner.executor
    }

    /// The number of the superstep, from 1.
    #[must_use]
    pub fn superstep(&self) -> u64 {
        self.inner.superstep
    }

    /// Returns the senders of the message; empty for the input of the run and for answers of users.
    #[must_use]
    pub fn sources(&self) -> Vec<String> {
        self.work().from.clone()
    }

    /// Returns the executors that the executor has edges to.
    #[must_use]
    pub fn targets(&self) -> &[String] {
        &self.inner.targets
    }

    /// Canceled when the run was abandoned.
    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.inner.cancellation
    }

    /// Sends a message along the executor's edges. It arrives in the next superstep.
    ///
    /// # Errors
    /// The type is not declared, or there is too much.
    pub fn send<T: TypedMessage>(&self, message: &T) -> Result<(), StepError> {
        self.send_payload(self.payload(message)?, None)
    }

    /// Sends a message to one of those whom the executor has edges to.
    ///
    /// # Errors
    /// Also if there is no such edge.
    pub fn send_to<T: TypedMessage>(&self, target: &str, message: &T) -> Result<(), StepError> {
        self.send_payload(self.payload(message)?, Some(target))
    }

    /// Sends a value whose type is known when the program runs.
    ///
    /// # Errors
    /// As [`send`](Self::send) and [`send_to`](Self::send_to).
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

    /// Yields output. Whether it is shown is up to the workflow (`WF-9`).
    ///
    /// # Errors
    /// The type is not declared, or there is too much.
    pub fn output<T: TypedMessage>(&self, value: &T) -> Result<(), StepError> {
        self.output_payload(self.payload(value)?)
    }

    /// Yields a value whose type is known when the program runs.
    ///
    /// # Errors
    /// As [`output`](Self::output).
    pub fn output_payload(&self, value: Payload) -> Result<(), StepError> {
        self.check_declared("yields", &self.inner.yields, &value)?;
        let mut work = self.open()?;
        work.count(&value.value, &self.inner.limits)?;
        let produced = ProducedOutput { executor: self.inner.executor.clone(), value };
        work.tell(match self.inner.shown {
            YieldUse::Output => WorkflowEvent::Output(produced),
            YieldUse::Intermediate => WorkflowEvent::Intermediate(produced),
            YieldUse::Hidden => return Ok(()),
        });
        Ok(())
    }

    /// Returns the shared state under a key: that of the start of the superstep, or what this
    /// executor has written since (`WF-5`). Null if nothing.
    #[must_use]
    pub fn state(&self, key: &str) -> Value {
        let work = self.work();
        work.effects
            .state
            .get(key)
            .or_else(|| self.inner.state.get(key))
            .cloned()
            .unwrap_or_default()
    }

    /// Writes into the state; others see it in the next superstep (`WF-5`). Of several who write,
    /// the last one in order counts. Null takes away.
    ///
    /// # Errors
    /// There is too much.
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
    pub fn own(&self) -> Value {
        self.work().effects.own.clone()
    }

    /// Keeps something for the executor itself.
    ///
    /// # Errors
    /// There is too much.
    pub fn set_own(&self, value: impl Into<Value>) -> Result<(), StepError> {
        let value = value.into();
        let mut work = self.open()?;
        work.count(&value, &self.inner.limits)?;
        work.effects.own = value;
        Ok(())
    }

    /// Reads what the executor keeps for itself; the default at first.
    pub(super) fn read_own<T: Default + DeserializeOwned>(&self) -> Result<T, BoxError> {
        match self.own() {
            Value::Null => Ok(T::default()),
            own => Ok(serde_json::from_value(own)?),
        }
    }

    /// Keeps something for the executor itself.
    pub(super) fn write_own(&self, own: &impl Serialize) -> Result<(), BoxError> {
        Ok(self.set_own(serde_json::to_value(own)?)?)
    }

    /// Asks the user for a value of type `answer`; the run pauses when nothing else is left to do
    /// (`WF-12`). Gives the id of the request.
    ///
    /// # Errors
    /// There is too much.
    pub fn request(&self, prompt: Payload, answer: MessageType) -> Result<String, StepError> {
        let mut work = self.open()?;
        work.count(&prompt.value, &self.inner.limits)?;
        work.effects.asked = work.effects.asked.saturating_add(1);
        let id = format!("{}-{}", self.inner.executor, work.effects.asked);
        let request =
            UserRequest { id: id.clone(), executor: self.inner.executor.clone(), prompt, answer };
        work.tell(WorkflowEvent::Request(request.clone()));
        work.effects.requests.push(request);
        Ok(id)
    }

    /// The label of everything that the run has learned ([labels](cofferdam_labels)): of all
    /// executors until this superstep, and of this one. What comes from one of them may be in any
    /// message, so the whole run has one.
    #[must_use]
    pub fn label(&self) -> Label {
        Label::combine([&self.inner.label, &self.work().effects.label])
    }

    /// Says that the executor has learned something with this label. An agent's context counts by
    /// itself; this is for executors that read something elsewhere.
    pub fn taint(&self, label: &Label) {
        self.work().effects.label.add(label);
    }

    /// Begins with the next message.
    pub(super) fn begin(&self, from: &[String]) {
        self.work().from = from.to_vec();
    }

    /// Tells of something.
    pub(super) fn tell(&self, event: WorkflowEvent) {
        self.work().tell(event);
    }

    /// Ends the step: nothing more is told or done.
    pub(super) fn end(&self) -> Effects {
        let mut work = self.work();
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
        if declared.iter().any(|declared| value.is_taken_as(declared)) {
            return Ok(());
        }
        let (executor, given) = (self.inner.executor.clone(), value.message_type.clone());
        Err(StepError::Undeclared { executor, does, given })
    }

    fn open(&self) -> Result<MutexGuard<'_, StepState>, StepError> {
        let work = self.work();
        if work.events.is_none() { Err(StepError::Cancelled) } else { Ok(work) }
    }

    fn work(&self) -> MutexGuard<'_, StepState> {
        // Lists that are only ever added to: what a panicking thread left is whole.
        self.inner.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StepState {
    fn tell(&self, event: WorkflowEvent) {
        if let Some(events) = &self.events {
            // Who reads them may have gone away, and the run with it.
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
