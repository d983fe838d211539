//! State of a run between two supersteps.

use std::collections::BTreeMap;

use cofferdam_tool::label::Label;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::builder::Graph;
use super::error::WorkflowError;
use super::message::{MessageType, Payload};
use super::size;

/// Version of the snapshot format that this program writes and reads.
pub(super) const VERSION: u32 = 1;

/// State of a run between two supersteps, as plain JSON: waiting messages, state, open requests
/// (`WF-12`).
///
/// It contains conversations in plain text. Write access to a snapshot gives control over what the
/// workflow does next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    pub(super) version: u32,
    /// Name of the workflow.
    pub(super) workflow: String,
    /// Digest of the workflow's structure.
    pub(super) structure: String,
    /// Number of completed supersteps.
    pub(super) superstep: u64,
    /// Number of completed supersteps from which `max_iterations` is counted.
    pub(super) counted_from: u64,
    /// State that all executors share.
    #[serde(default)]
    pub(super) state: Map<String, Value>,
    /// Private state of each executor.
    #[serde(default)]
    pub(super) own: BTreeMap<String, Value>,
    /// Number of requests that each executor has made.
    #[serde(default)]
    pub(super) asked: BTreeMap<String, u64>,
    /// Deliveries of the next superstep, in the order in which they were sent.
    #[serde(default)]
    pub(super) queue: Vec<Delivery>,
    /// Messages that fan-ins hold until every source has sent one: by index of the edge group, then
    /// by source.
    #[serde(default)]
    pub(super) joins: BTreeMap<usize, BTreeMap<String, Vec<Payload>>>,
    /// Open requests to the user.
    #[serde(default)]
    pub(super) requests: Vec<UserRequest>,
    /// Label of everything that executors have read.
    #[serde(default)]
    pub(super) label: Label,
    /// True if a label policy applies to the agents.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_labelled: bool,
}

/// Message that waits for the next superstep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Delivery {
    pub(super) to: String,
    /// Senders; empty for the input of a run.
    #[serde(default)]
    pub(super) from: Vec<String>,
    pub(super) message: Payload,
    /// Request that the message answers, if it is an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<UserRequest>,
}

/// Request to the user (`WF-12`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserRequest {
    /// Id for the answer. Ids are counted per executor and are the same in every run. They need not
    /// be secret, because only the caller of a run answers requests.
    pub id: String,
    /// Executor that made the request.
    pub executor: String,
    /// Question.
    pub prompt: Payload,
    /// Type of the answer.
    pub answer: MessageType,
}

impl Snapshot {
    /// Creates the snapshot at the start of a run.
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
            is_labelled: false,
        }
    }

    /// Checks that a run of this workflow can continue from the snapshot (`WF-12`).
    pub(super) fn check(&self, graph: &Graph) -> Result<(), WorkflowError> {
        if self.version != VERSION {
            return Err(WorkflowError::Version { version: self.version });
        }
        if self.structure != graph.structure {
            return Err(WorkflowError::Structure);
        }
        // The digest is not secret, so a forged file can contain it. Check the executors that it
        // names.
        let named = self.queue.iter().map(|delivery| &delivery.to);
        let asked = self.requests.iter().map(|request| &request.executor);
        if named.chain(asked).any(|id| graph.executor(id).is_none()) {
            return Err(WorkflowError::Structure);
        }
        self.check_limits(graph)
    }

    /// Checks that the snapshot is within the limits.
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
        let states = self.state.values().chain(self.own.values());
        let all = waiting.chain(asked).chain(states).chain(joined().map(|payload| &payload.value));
        if all.map(size::bytes).fold(0, usize::saturating_add) > graph.limits.bytes_max {
            return Err(WorkflowError::TooMuch { what: "bytes", max: graph.limits.bytes_max });
        }
        Ok(())
    }

    /// Returns the name of the workflow.
    #[must_use]
    pub fn workflow(&self) -> &str {
        &self.workflow
    }

    /// Returns the number of completed supersteps.
    #[must_use]
    pub fn superstep(&self) -> u64 {
        self.superstep
    }

    /// Returns the open requests to the user, in order.
    #[must_use]
    pub fn requests(&self) -> &[UserRequest] {
        &self.requests
    }

    /// Returns the ids of the executors that run in the next superstep, in order.
    #[must_use]
    pub fn next_executors(&self) -> Vec<&str> {
        let mut next = Vec::new();
        for delivery in &self.queue {
            if !next.contains(&delivery.to.as_str()) {
                next.push(delivery.to.as_str());
            }
        }
        next
    }

    /// Returns whether the run is complete: no messages wait, and no requests are open.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.queue.is_empty() && self.requests.is_empty()
    }

    /// Returns the value of a key of the shared state; null if the key is missing.
    #[must_use]
    pub fn state(&self, key: &str) -> Value {
        self.state.get(key).cloned().unwrap_or_default()
    }

    /// Returns the label of everything that the run has read.
    #[must_use]
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// Returns whether a label policy has applied to the agents of the run so far.
    #[must_use]
    pub fn is_labelled(&self) -> bool {
        self.is_labelled
    }

    /// Accepts an answer; it arrives in the next superstep.
    pub(super) fn answer(&mut self, id: &str, answer: Payload) -> Result<(), WorkflowError> {
        let Some(index) = self.requests.iter().position(|request| request.id == id) else {
            let open = self.requests.iter().map(|request| request.id.clone()).collect();
            return Err(WorkflowError::UnknownRequest { id: id.to_owned(), open });
        };
        if let Some(request) = self.requests.get(index)
            && !answer.fits_type(&request.answer)
        {
            let (expected, given) = (request.answer.clone(), answer.message_type);
            return Err(WorkflowError::Answer { id: id.to_owned(), expected, given });
        }
        let request = self.requests.remove(index);
        let (to, from) = (request.executor.clone(), Vec::new());
        self.queue.push(Delivery { to, from, message: answer, request: Some(request) });
        self.counted_from = self.superstep;
        Ok(())
    }
}
