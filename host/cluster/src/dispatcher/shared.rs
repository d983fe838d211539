//! Running calls that other gateways can take over.
//!
//! The store has an entry for each such call: the call itself until a worker is about to start it,
//! then the worker and its offer, and at the end the result. A gateway takes a call over by
//! changing the entry. If a worker runs the call, the gateway attaches itself with the new
//! revision: of several gateways, the worker obeys the last one. A call that waits is confirmed
//! after the entry names its worker, so that one gateway starts it.

use std::sync::Arc;

use bytes::Bytes;
use cofferdam_tool::ToolName;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::Dispatcher;
use super::call::{CallRequest, RemoteCall, WorkerOffer};
use crate::frame;
use crate::keyed::{KeyedResults, StoreUnavailable, task_entry};
use crate::subject::NodeName;

/// Number of times that a gateway tries to change an entry that other gateways change as well.
const ATTEMPTS_MAX: u32 = 8;

/// Header of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedEntry {
    tool: ToolName,
    /// Gateway that has the call, so that two gateways do not write the same entry.
    gateway: String,
    state: SharedState,
}

/// State of a shared call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
enum SharedState {
    /// No worker has started the call. The body of the entry has its arguments.
    Waiting { call: Box<CallRequest> },
    /// A worker runs the call, under the number of its offer.
    Running { worker: String, offer: u64 },
    /// The body of the entry has the result.
    Ended {},
}

impl SharedState {
    fn running(offer: &WorkerOffer) -> Self {
        Self::Running { worker: offer.worker.to_string(), offer: offer.number }
    }
}

/// A call that this gateway has, as long as no other one takes it over.
pub(super) struct SharedCall {
    dispatcher: Arc<Dispatcher>,
    name: String,
    tool: ToolName,
    /// Revision of the entry; `None` if there is no entry yet.
    revision: Option<u64>,
    /// Entry that was written without a confirmation of the store.
    unconfirmed: Option<Bytes>,
}

/// A shared call that was found.
pub(super) enum FoundCall {
    Waiting(SharedCall, Box<CallRequest>, Bytes),
    Running(SharedCall, WorkerOffer),
    Ended(ToolName, Bytes),
}

impl SharedCall {
    fn new(dispatcher: Arc<Dispatcher>, name: String, tool: ToolName) -> Self {
        Self { dispatcher, name, tool, revision: None, unconfirmed: None }
    }

    /// Creates the entry of a call that a worker runs. Returns `None` if the entry exists.
    pub(super) async fn create(
        dispatcher: Arc<Dispatcher>,
        (session, id): (&str, &str),
        tool: &ToolName,
        offer: &WorkerOffer,
    ) -> Result<Option<Self>, StoreUnavailable> {
        let mut shared = Self::new(dispatcher, task_entry(session, id), tool.clone());
        let is_new = shared.write(SharedState::running(offer), b"").await?;
        Ok(is_new.then_some(shared))
    }

    /// Creates the entry of a call that no worker has started. Returns `None` if the entry exists,
    /// or the store does not take such a large one. Without an answer of the store, the entry may
    /// exist, and another gateway may have the call: [`started`](Self::started) finds out. The
    /// deadline of the call is not a part of it.
    pub(super) async fn create_waiting(
        dispatcher: Arc<Dispatcher>,
        (session, id): (&str, &str),
        tool: &ToolName,
        call: &RemoteCall<'_>,
    ) -> Option<Self> {
        let mut shared = Self::new(dispatcher, task_entry(session, id), tool.clone());
        let state = SharedState::Waiting { call: Box::new(call.request.clone()) };
        if !shared.fits(&state, call.arguments) {
            return None;
        }
        let give_up = Instant::now() + shared.dispatcher.options.timing.store_wait_max;
        let mut may_exist = false;
        loop {
            match shared.write(state.clone(), call.arguments).await {
                // An entry that this gateway may have written was changed by another one.
                Ok(is_new) => return (is_new || may_exist).then_some(shared),
                Err(error) if Instant::now() >= give_up => {
                    tracing::warn!(%error, "the store did not confirm that it has a task");
                    return Some(shared);
                }
                Err(_) => {
                    may_exist = true;
                    sleep(shared.dispatcher.options.timing.claim_poll).await;
                }
            }
        }
    }

    /// Returns whether the store has confirmed that it has the entry.
    pub(super) fn has_entry(&self) -> bool {
        self.revision.is_some()
    }

    /// Finds a call and takes it over. Returns `None` if no such call is known.
    pub(super) async fn take_over(
        dispatcher: &Arc<Dispatcher>,
        session: &str,
        id: &str,
    ) -> Result<Option<FoundCall>, StoreUnavailable> {
        let name = task_entry(session, id);
        for _ in 0..ATTEMPTS_MAX {
            let Some(entry) = dispatcher.options.results.read(&name).await? else {
                return Ok(None);
            };
            let invalid = |cause: &str| StoreUnavailable(format!("an invalid entry: {cause}"));
            let (header, body) = frame::decode::<SharedEntry>(&entry.value)
                .map_err(|error| invalid(&error.to_string()))?;
            let SharedEntry { tool, state, .. } = header;
            let mut shared = Self::new(Arc::clone(dispatcher), name.clone(), tool.clone());
            shared.revision = Some(entry.revision);
            if !matches!(state, SharedState::Ended {})
                && !shared.write(state.clone(), &body).await?
            {
                continue;
            }
            return Ok(Some(match state {
                SharedState::Ended {} => FoundCall::Ended(tool, body),
                SharedState::Waiting { call } => FoundCall::Waiting(shared, call, body),
                SharedState::Running { worker, offer } => {
                    let worker =
                        NodeName::new(worker).map_err(|error| invalid(&error.to_string()))?;
                    FoundCall::Running(shared, WorkerOffer { number: offer, worker, started: None })
                }
            }));
        }
        Err(StoreUnavailable(
            "other gateways changed the entry at the same time; try again".to_owned(),
        ))
    }

    /// Returns the revision with which the gateway attaches itself to the worker.
    pub(super) fn revision(&self) -> u64 {
        self.revision.unwrap_or_default()
    }

    pub(super) fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// Returns false if another gateway has the call. If the store does not answer, the entry is
    /// compared when it is written.
    pub(super) async fn is_current(&self) -> bool {
        let Ok(Some(entry)) = self.results().read(&self.name).await else { return true };
        Some(entry.revision) == self.revision || self.unconfirmed.is_some()
    }

    /// Notes that a worker is about to run the call. Returns false if another gateway has the call.
    pub(super) async fn started(&mut self, offer: &WorkerOffer) -> Result<bool, StoreUnavailable> {
        self.write(SharedState::running(offer), b"").await
    }

    /// Notes that no worker runs the call. Returns false if another gateway has the call.
    pub(super) async fn waits(
        &mut self,
        call: &CallRequest,
        arguments: &[u8],
    ) -> Result<bool, StoreUnavailable> {
        self.write(SharedState::Waiting { call: Box::new(call.clone()) }, arguments).await
    }

    /// Stores the result of the call. Returns false if it is too large, another gateway has the
    /// call, or the store does not answer: the worker must not forget the result then.
    pub(super) async fn end(mut self, result: &[u8]) -> bool {
        let give_up = Instant::now() + self.dispatcher.options.timing.store_wait_max;
        if !self.fits(&SharedState::Ended {}, result) {
            return false;
        }
        loop {
            match self.write(SharedState::Ended {}, result).await {
                Ok(is_stored) => return is_stored,
                Err(error) if Instant::now() >= give_up => {
                    tracing::warn!(%error, "the result of a task was not stored");
                    return false;
                }
                Err(_) => sleep(self.dispatcher.options.timing.claim_poll).await,
            }
        }
    }

    fn fits(&self, state: &SharedState, body: &[u8]) -> bool {
        self.entry(state.clone(), body).len() <= self.results().value_bytes_max()
    }

    fn entry(&self, state: SharedState, body: &[u8]) -> Bytes {
        let gateway = self.dispatcher.options.name.to_string();
        frame::encode(&SharedEntry { tool: self.tool.clone(), gateway, state }, body)
    }

    fn results(&self) -> &dyn KeyedResults {
        &*self.dispatcher.options.results
    }

    /// Writes the entry if no other gateway has changed it.
    async fn write(&mut self, state: SharedState, body: &[u8]) -> Result<bool, StoreUnavailable> {
        // The store may have the last entry although it did not say so.
        if let Some(unconfirmed) = &self.unconfirmed
            && let Some(entry) = self.results().read(&self.name).await?
            && entry.value == *unconfirmed
        {
            self.revision = Some(entry.revision);
        }
        let value = self.entry(state, body);
        let written = self.results().write(&self.name, self.revision, value.clone()).await;
        self.unconfirmed = written.is_err().then_some(value);
        let written = written?;
        self.revision = written.or(self.revision);
        Ok(written.is_some())
    }
}
