//! Everything that a run knows between two supersteps.

use std::collections::BTreeMap;

use cofferdam_tool::label::Label;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::builder::Graph;
use super::error::WorkflowError;
use super::message::{MessageType, Payload};
use super::size;

/// The format of snapshots that this program writes and reads.
pub(super) const VERSION: u32 = 1;

/// Everything that a run knows between two supersteps, as plain JSON: the messages that wait, the
/// state, what is asked (`WF-12`).
///
/// It holds what was said in plain text. A writer of one decides what a workflow does next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub(super) version: u32,
    /// The name of the workflow.
    pub(super) workflow: String,
    /// The digest of its structure.
    pub(super) structure: String,
    /// The supersteps that are done.
    pub(super) superstep: u64,
    /// The superstep from which on those of `max_iterations` are counted.
    pub(super) counted_from: u64,
    /// State that all executors see.
    #[serde(default)]
    pub(super) state: Map<String, Value>,
    /// Private state of each executor.
    #[serde(default)]
    pub(super) own: BTreeMap<String, Value>,
    /// Number of requests of each executor.
    #[serde(default)]
    pub(super) asked: BTreeMap<String, u64>,
    /// Deliveries of the next superstep, in the order in which they were sent.
    #[serde(default)]
    pub(super) queue: Vec<Delivery>,
    /// Deliveries that fan-ins hold until every source has delivered: by the index of the edges,
    /// then by source.
    #[serde(default)]
    pub(super) joins: BTreeMap<usize, BTreeMap<String, Vec<Payload>>>,
    /// Requests to the user.
    #[serde(default)]
    pub(super) requests: Vec<UserRequest>,
    /// Of everything that executors have learned.
    #[serde(default)]
    pub(super) label: Label,
}

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Delivery {
    pub(super) to: String,
    /// Senders; empty for the input of a run.
    #[serde(default)]
    pub(super) from: Vec<String>,
    pub(super) message: Payload,
    /// The request that it answers, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<UserRequest>,
}

/// The user is asked for something (`WF-12`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserRequest {
    /// Id of the answer. Ids are counted per executor and the same in every run; nothing is secret
    /// about them, for only the caller of a run gives answers.
    pub id: String,
    /// Executor that asks.
    pub executor: String,
    /// Question.
    pub prompt: Payload,
    /// Type of the answer.
    pub answer: MessageType,
}

impl Snapshot {
    /// The beginning of a run.
    pub(super) fn beginning(graph: &Graph, input: Payload) -> Self {
        let input =
            Delivery { to: graph.start.clone(), from: Vec::new(), message: input, request: None };
        Self {
            version: VERSION,
            workflow: graph.name.clone(),
            structure: graph.structure.clone(),
            superstep: 0,
            counted_from: 0,
            state: Map::new(),
            own: BTreeMap::new(),
            asked: BTreeMap::new(),
            queue: vec![input],
            joins: BTreeMap::new(),
            requests: Vec::new(),
            label: Label::default(),
        }
    }

    /// Returns whether this workflow can go on from here (`WF-12`).
    pub(super) fn check(&self, graph: &Graph) -> Result<(), WorkflowError> {
        if self.version != VERSION {
            return Err(WorkflowError::Version { version: self.version });
        }
        if self.structure != graph.structure {
            return Err(WorkflowError::Structure);
        }
        // The digest is no secret: what a file names has to be there all the same.
        let named = self.queue.iter().map(|delivery| &delivery.to);
        let asked = self.requests.iter().map(|request| &request.executor);
        if named.chain(asked).any(|id| graph.executor(id).is_none()) {
            return Err(WorkflowError::Structure);
        }
        self.check_limits(graph)
    }

    /// Returns whether it is within the limits.
    pub(super) fn check_limits(&self, graph: &Graph) -> Result<(), WorkflowError> {
        let joined = || self.joins.values().flat_map(BTreeMap::values).flatten();
        let messages = self.queue.len() + self.requests.len() + joined().count();
        if messages > graph.limits.messages_max {
            return Err(WorkflowError::TooMuch {
                what: "messages",
                max: graph.limits.messages_max,
            });
        }
        let waiting = self.queue.iter().map(|delivery| &delivery.message.value);
        let asked = self.requests.iter().map(|request| &request.prompt.value);
        let kept = self.state.values().chain(self.own.values());
        let all = waiting.chain(asked).chain(kept).chain(joined().map(|payload| &payload.value));
        if all.map(size::bytes).fold(0, usize::saturating_add) > graph.limits.bytes_max {
            return Err(WorkflowError::TooMuch { what: "bytes", max: graph.limits.bytes_max });
        }
        Ok(())
    }

    /// The name of the workflow.
    #[must_use]
    pub fn workflow(&self) -> &str {
        &self.workflow
    }

    /// The supersteps that are done.
    #[must_use]
    pub fn superstep(&self) -> u64 {
        self.superstep
    }

    /// Returns the requests to the user, in order.
    #[must_use]
    pub fn requests(&self) -> &[UserRequest] {
        &self.requests
    }

    /// Returns whether the run is complete: nothing waits, and no request is open.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.queue.is_empty() && self.requests.is_empty()
    }

    /// Returns the shared state under a key; null if there is none.
    #[must_use]
    pub fn state(&self, key: &str) -> Value {
        self.state.get(key).cloned().unwrap_or_default()
    }

    /// The label of everything that the run has learned.
    #[must_use]
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// Takes an answer: it arrives in the next superstep.
    pub(super) fn answer(&mut self, id: &str, answer: Payload) -> Result<(), WorkflowError> {
        let Some(place) = self.requests.iter().position(|request| request.id == id) else {
            let open = self.requests.iter().map(|request| request.id.clone()).collect();
            return Err(WorkflowError::UnknownRequest { id: id.to_owned(), open });
        };
        if let Some(request) = self.requests.get(place)
            && !answer.is_taken_as(&request.answer)
        {
            let (expected, given) = (request.answer.clone(), answer.message_type);
            return Err(WorkflowError::Answer { id: id.to_owned(), expected, given });
        }
        let request = self.requests.remove(place);
        let (to, from) = (request.executor.clone(), Vec::new());
        self.queue.push(Delivery { to, from, message: answer, request: Some(request) });
        self.counted_from = self.superstep;
        Ok(())
    }
}
