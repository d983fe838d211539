//! Calls of a worker, from the offer until the result was received.
//!
//! An offer changes only in this order: open, running, ended; or open, withdrawn. Nothing leads
//! back, and nothing but an open offer can start, so that each offer starts at most once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::callers::CallerPermit;
use super::questions::OpenQuestions;
use crate::message::CallHeader;
use crate::subject::NodeName;

/// Maximum number of ended calls that are remembered.
const ENDED_MAX: usize = 4096;
/// Maximum total size of the results that are remembered, in bytes.
const ENDED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A call that the worker has offered to run.
pub(super) struct OpenOffer {
    pub(super) call: CallHeader,
    pub(super) arguments: Bytes,
    /// Permits of the worker and of the caller.
    pub(super) permits: (OwnedSemaphorePermit, CallerPermit),
    /// False if the call starts without a confirmation, and the offer is sent later.
    pub(super) is_sent: bool,
}

/// A running call, which gateways can reach.
pub(super) struct ActiveCall {
    pub(super) cancellation: CancellationToken,
    pub(super) questions: Arc<OpenQuestions>,
    /// True if no gateway received the last heartbeat.
    pub(super) unheard: AtomicBool,
    owner: Mutex<CallOwner>,
}

/// Gateway that a call belongs to.
struct CallOwner {
    /// Subject for everything that the call sends.
    inbox: String,
    /// Revision with which the gateway has taken the call over; 0 if no other gateway can.
    revision: u64,
}

impl ActiveCall {
    fn new(inbox: String) -> Self {
        Self {
            cancellation: CancellationToken::new(),
            questions: Arc::default(),
            unheard: AtomicBool::new(false),
            owner: Mutex::new(CallOwner { inbox, revision: 0 }),
        }
    }

    /// Returns the subject for everything that the call sends.
    pub(super) fn inbox(&self) -> String {
        self.owner.lock().inbox.clone()
    }

    /// Returns whether other gateways can take the call over.
    pub(super) fn is_shared(&self) -> bool {
        self.owner.lock().revision > 0
    }
}

/// Returns whether two inboxes are those of one call at one gateway.
fn are_of_one_call(inbox: &str, other: &str) -> bool {
    let call = |inbox: &'_ str| inbox.rsplit_once('.').map(|(call, _)| call.to_owned());
    call(inbox) == call(other)
}

/// State of an offer, for a gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum OfferStatus {
    /// It was withdrawn, and its call will never run.
    NotStarted,
    /// Its call runs.
    Running,
    /// Its call has ended with this result.
    Ended(Bytes),
    /// Its call belongs to another gateway.
    Moved,
    /// It is not remembered.
    #[default]
    Unknown,
}

/// Answer to a gateway that takes a call over.
#[derive(Default)]
pub(super) struct Attachment {
    pub(super) status: OfferStatus,
    /// Inbox of the gateway that had the call, if it is another one.
    pub(super) previous: Option<String>,
    /// Questions of the call, if the gateway has it now.
    pub(super) questions: Option<Arc<OpenQuestions>>,
}

enum OfferState {
    Open(Box<OpenOffer>),
    Withdrawn,
    Running {
        call: Arc<ActiveCall>,
        is_abandoned: bool,
    },
    Ended {
        result: Bytes,
        /// Time at which the result is forgotten.
        until: Instant,
    },
}

/// Offers by number.
pub(super) struct CallTable {
    retention: Duration,
    /// Retention of calls that other gateways can take over.
    shared_retention: Duration,
    state: Mutex<TableState>,
}

#[derive(Default)]
struct TableState {
    offers: BTreeMap<u64, OfferState>,
    next: u64,
    /// True if no more offers are added.
    is_closed: bool,
    /// Offers in the order in which they were opened, until they are old.
    opened: VecDeque<(Instant, u64)>,
    /// Offers that can be forgotten, by the time at which they are.
    ended: BTreeSet<(Instant, u64)>,
    ended_bytes: usize,
}

impl CallTable {
    /// Returns a table whose offers have numbers of a range of this worker, so that a message of
    /// one worker is not taken for that of another.
    pub(super) fn new(worker: &NodeName, retention: Duration, shared_retention: Duration) -> Self {
        let mut hasher = DefaultHasher::new();
        worker.to_string().hash(&mut hasher);
        let state = TableState { next: hasher.finish() << 32, ..TableState::default() };
        Self { retention, shared_retention, state: Mutex::new(state) }
    }

    /// Adds an offer and returns its number; `None` if the table is closed.
    pub(super) fn open(&self, offer: OpenOffer) -> Option<u64> {
        let mut state = self.state.lock();
        if state.is_closed {
            return None;
        }
        state.forget_old();
        let number = state.next;
        state.next += 1;
        state.offers.insert(number, OfferState::Open(Box::new(offer)));
        state.opened.push_back((Instant::now(), number));
        Some(number)
    }

    /// Adds no more offers: from now on, the number of [active](Self::active) calls only falls.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
    }

    /// Takes the call of an open offer, which reports to `inbox` from now on.
    ///
    /// # Errors
    /// The state of an offer that is not open.
    pub(super) fn start(
        &self,
        number: u64,
        inbox: &str,
    ) -> Result<(Box<OpenOffer>, Arc<ActiveCall>), OfferStatus> {
        let mut state = self.state.lock();
        let Some(offer) = state.offers.get_mut(&number) else { return Err(OfferStatus::Unknown) };
        let call = Arc::new(ActiveCall::new(inbox.to_owned()));
        let running = OfferState::Running { call: Arc::clone(&call), is_abandoned: false };
        match std::mem::replace(offer, running) {
            OfferState::Open(open) => Ok((open, call)),
            other => {
                *offer = other;
                Err(offer.status(inbox))
            }
        }
    }

    /// Lets the gateway of `inbox` have a call, unless one with a higher revision has it. An offer
    /// that is open is withdrawn, as by [`ask`](Self::ask).
    pub(super) fn attach(&self, number: u64, revision: u64, inbox: &str) -> Attachment {
        let mut state = self.state.lock();
        state.withdraw(number, self.retention);
        let mut attachment = Attachment::default();
        let Some(offer) = state.offers.get(&number) else { return attachment };
        if let OfferState::Running { call, .. } = offer {
            let mut owner = call.owner.lock();
            if revision > owner.revision {
                owner.revision = revision;
                let previous = std::mem::replace(&mut owner.inbox, inbox.to_owned());
                attachment.previous =
                    Some(previous).filter(|previous| !are_of_one_call(previous, inbox));
                attachment.questions = Some(Arc::clone(&call.questions));
            }
        }
        attachment.status = offer.status(inbox);
        attachment
    }

    /// Withdraws the open offers that are older than `offer_life`.
    pub(super) fn withdraw_old(&self, offer_life: Duration) {
        let mut state = self.state.lock();
        while let Some((opened, number)) = state.opened.front().copied() {
            if opened.elapsed() < offer_life {
                break;
            }
            state.opened.pop_front();
            state.withdraw(number, self.retention);
        }
    }

    /// Returns the state of an offer for the gateway of `inbox`. One that is open is withdrawn, so
    /// that the answer stays true.
    pub(super) fn ask(&self, number: u64, inbox: &str) -> OfferStatus {
        let mut state = self.state.lock();
        state.withdraw(number, self.retention);
        state.offers.get(&number).map_or(OfferStatus::Unknown, |offer| offer.status(inbox))
    }

    /// Withdraws an open offer, or stops a running call, whose result is then not remembered.
    pub(super) fn cancel(&self, number: u64) {
        let mut state = self.state.lock();
        state.withdraw(number, self.retention);
        if let Some(OfferState::Running { call, is_abandoned }) = state.offers.get_mut(&number) {
            *is_abandoned = true;
            call.cancellation.cancel();
        }
    }

    /// Stops a running call that belongs to the gateway of `inbox`, which does not wait for it. One
    /// that other gateways can take over goes on, as if its gateway was lost.
    pub(super) fn abandoned(&self, number: u64, inbox: &str) {
        let mut state = self.state.lock();
        let Some(OfferState::Running { call, is_abandoned }) = state.offers.get_mut(&number) else {
            return;
        };
        if !are_of_one_call(&call.owner.lock().inbox, inbox) {
            return;
        }
        if call.is_shared() {
            call.unheard.store(true, Ordering::Relaxed);
        } else {
            *is_abandoned = true;
            call.cancellation.cancel();
        }
    }

    /// Notes that no gateway received the last heartbeat of a running call.
    pub(super) fn unheard(&self, number: u64) {
        if let Some(OfferState::Running { call, .. }) = self.state.lock().offers.get(&number) {
            call.unheard.store(true, Ordering::Relaxed);
        }
    }

    /// Passes the answer to a question of a running call on.
    pub(super) fn answer(&self, number: u64, question: u32, answer: Bytes) {
        if let Some(OfferState::Running { call, .. }) = self.state.lock().offers.get(&number) {
            call.questions.answer(question, answer);
        }
    }

    pub(super) fn cancel_all(&self) {
        for offer in self.state.lock().offers.values() {
            if let OfferState::Running { call, .. } = offer {
                call.cancellation.cancel();
            }
        }
    }

    /// Stores the result of a running call until it is acknowledged. Returns whether a gateway
    /// waits for it.
    pub(super) fn end(&self, number: u64, result: &Bytes) -> bool {
        let mut state = self.state.lock();
        let retention = match state.offers.get(&number) {
            Some(OfferState::Running { call, is_abandoned: false }) => match call.is_shared() {
                true => self.shared_retention,
                false => self.retention,
            },
            _ => {
                state.offers.remove(&number);
                return false;
            }
        };
        let until = Instant::now() + retention;
        state.offers.insert(number, OfferState::Ended { result: result.clone(), until });
        state.ended_bytes = state.ended_bytes.saturating_add(result.len());
        state.ended.insert((until, number));
        state.forget_old();
        true
    }

    /// Forgets a result that was received.
    pub(super) fn forget(&self, number: u64) {
        let mut state = self.state.lock();
        if let Some(OfferState::Ended { until, .. }) = state.offers.get(&number) {
            let ended = (*until, number);
            state.remove(ended);
        }
    }

    /// Returns the number of open offers and running calls.
    pub(super) fn active(&self) -> usize {
        let is_active =
            |offer: &&OfferState| matches!(offer, OfferState::Open(_) | OfferState::Running { .. });
        self.state.lock().offers.values().filter(is_active).count()
    }

    /// Returns whether there are results that no gateway has acknowledged.
    pub(super) fn has_results(&self) -> bool {
        self.state.lock().offers.values().any(|offer| matches!(offer, OfferState::Ended { .. }))
    }
}

impl TableState {
    fn withdraw(&mut self, number: u64, retention: Duration) {
        if let Some(offer @ OfferState::Open(_)) = self.offers.get_mut(&number) {
            *offer = OfferState::Withdrawn;
            self.ended.insert((Instant::now() + retention, number));
        }
    }

    fn remove(&mut self, ended: (Instant, u64)) {
        self.ended.remove(&ended);
        if let Some(OfferState::Ended { result, .. }) = self.offers.remove(&ended.1) {
            self.ended_bytes = self.ended_bytes.saturating_sub(result.len());
        }
    }

    /// Forgets what has ended long ago. Of too much, it forgets what would be forgotten first.
    fn forget_old(&mut self) {
        while let Some((until, number)) = self.ended.first().copied() {
            let is_full = self.ended.len() > ENDED_MAX || self.ended_bytes > ENDED_BYTES_MAX;
            if !is_full && Instant::now() < until {
                break;
            }
            self.remove((until, number));
        }
    }
}

impl OfferState {
    /// Returns the state for the gateway of `inbox`.
    fn status(&self, inbox: &str) -> OfferStatus {
        match self {
            Self::Withdrawn | Self::Open(_) => OfferStatus::NotStarted,
            Self::Running { call, .. } if !are_of_one_call(&call.owner.lock().inbox, inbox) => {
                OfferStatus::Moved
            }
            Self::Running { .. } => OfferStatus::Running,
            Self::Ended { result, .. } => OfferStatus::Ended(result.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
