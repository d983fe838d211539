//! Running calls that other gateways can take over.
//!
//! The store has an entry for each such call, which names its worker and its offer, and at the end
//! its result. A gateway takes a call over by changing the entry, and attaches itself to the worker
//! with the new revision: of several gateways, the worker obeys the last one. Taking a call over
//! starts nothing.

use std::sync::Arc;

use bytes::Bytes;
use cofferdam_tool::ToolName;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

use super::Dispatcher;
use super::call::WorkerOffer;
use crate::frame;
use crate::keyed::{StoreUnavailable, task_entry};
use crate::subject::NodeName;

/// Number of times that a gateway tries to change an entry that other gateways change as well.
const ATTEMPTS_MAX: u32 = 8;

/// Header of an entry. The body of one that has ended has the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedEntry {
    tool: ToolName,
    /// Worker that runs the call, and the number of its offer; `None` if the call has ended.
    running: Option<(String, u64)>,
}

/// A call that this gateway has, as long as no other one takes it over.
pub(super) struct SharedCall {
    dispatcher: Arc<Dispatcher>,
    name: String,
    tool: ToolName,
    revision: u64,
}

/// A shared call that was found.
pub(super) enum FoundCall {
    Running(SharedCall, WorkerOffer),
    Ended(ToolName, Bytes),
}

impl SharedCall {
    /// Creates the entry of a call. Returns `None` if the entry exists.
    pub(super) async fn create(
        dispatcher: Arc<Dispatcher>,
        (session, id): (&str, &str),
        tool: &ToolName,
        offer: &WorkerOffer,
    ) -> Result<Option<Self>, StoreUnavailable> {
        let name = task_entry(session, id);
        let mut shared = Self { dispatcher, name, tool: tool.clone(), revision: 0 };
        let is_new = shared.write(None, Some(offer), b"").await?;
        Ok(is_new.then_some(shared))
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
            let SharedEntry { tool, running } = header;
            let Some((worker, number)) = running else {
                return Ok(Some(FoundCall::Ended(tool, body)));
            };
            let worker = NodeName::new(worker).map_err(|error| invalid(&error.to_string()))?;
            let offer = WorkerOffer { number, worker, started: None };
            let (dispatcher, name) = (Arc::clone(dispatcher), name.clone());
            let mut shared = Self { dispatcher, name, tool, revision: 0 };
            if shared.write(Some(entry.revision), Some(&offer), b"").await? {
                return Ok(Some(FoundCall::Running(shared, offer)));
            }
        }
        Err(StoreUnavailable(
            "other gateways changed the entry at the same time; try again".to_owned(),
        ))
    }

    /// Returns the revision with which the gateway attaches itself to the worker.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// Notes that the call was started again. Returns false if another gateway has the call.
    pub(super) async fn restarted(
        &mut self,
        offer: &WorkerOffer,
    ) -> Result<bool, StoreUnavailable> {
        self.write(Some(self.revision), Some(offer), b"").await
    }

    /// Stores the result of the call. Returns false if it is too large, another gateway has the
    /// call, or the store does not answer: the worker must not forget the result then.
    pub(super) async fn end(mut self, result: &[u8]) -> bool {
        let give_up = Instant::now() + self.dispatcher.options.timing.store_wait_max;
        if frame::encode(&self.entry(None), result).len() > self.results_bytes_max() {
            return false;
        }
        loop {
            match self.write(Some(self.revision), None, result).await {
                Ok(is_stored) => return is_stored,
                Err(error) if Instant::now() >= give_up => {
                    tracing::warn!(%error, "the result of a task was not stored");
                    return false;
                }
                Err(_) => sleep(self.dispatcher.options.timing.claim_poll).await,
            }
        }
    }

    fn results_bytes_max(&self) -> usize {
        self.dispatcher.options.results.value_bytes_max()
    }

    fn entry(&self, offer: Option<&WorkerOffer>) -> SharedEntry {
        let running = offer.map(|offer| (offer.worker.to_string(), offer.number));
        SharedEntry { tool: self.tool.clone(), running }
    }

    /// Writes the entry if it has not changed since `expected`.
    async fn write(
        &mut self,
        expected: Option<u64>,
        offer: Option<&WorkerOffer>,
        result: &[u8],
    ) -> Result<bool, StoreUnavailable> {
        let value = frame::encode(&self.entry(offer), result);
        let written = self.dispatcher.options.results.write(&self.name, expected, value).await?;
        self.revision = written.unwrap_or(self.revision);
        Ok(written.is_some())
    }
}
