//! Calls of a worker, from the offer until the result was received.
//!
//! An offer changes only in this order: open, running, ended; or open, withdrawn. Nothing leads
//! back, and nothing but an open offer can start, so that each offer starts at most once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::callers::CallerPermit;
use super::questions::OpenQuestions;
use crate::message::CallHeader;

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
}

/// A call that starts.
pub(super) struct StartedCall {
    pub(super) open: Box<OpenOffer>,
    pub(super) cancellation: CancellationToken,
    pub(super) questions: Arc<OpenQuestions>,
    /// True if no gateway received the last sign of life.
    pub(super) unheard: Arc<AtomicBool>,
}

/// State of an offer, for a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OfferStatus {
    /// It was withdrawn, and its call will never run.
    NotStarted,
    /// Its call runs.
    Running,
    /// Its call has ended with this result.
    Ended(Bytes),
    /// It is not remembered.
    Unknown,
}

enum OfferState {
    Open(Box<OpenOffer>),
    Withdrawn,
    Running {
        cancellation: CancellationToken,
        questions: Arc<OpenQuestions>,
        unheard: Arc<AtomicBool>,
        is_abandoned: bool,
    },
    Ended(Bytes),
}

/// Offers by number.
pub(super) struct CallTable {
    retention: Duration,
    state: Mutex<TableState>,
}

#[derive(Default)]
struct TableState {
    offers: BTreeMap<u64, OfferState>,
    next: u64,
    /// Offers in the order in which they were opened, until they are old.
    opened: VecDeque<(Instant, u64)>,
    /// Offers that can be forgotten, in the order in which they ended.
    ended: VecDeque<(Instant, u64)>,
    ended_bytes: usize,
}

impl CallTable {
    pub(super) fn new(retention: Duration) -> Self {
        Self { retention, state: Mutex::default() }
    }

    /// Adds an offer and returns its number.
    pub(super) fn open(&self, offer: OpenOffer) -> u64 {
        let mut state = self.lock();
        state.forget_old(self.retention);
        let number = state.next;
        state.next += 1;
        state.offers.insert(number, OfferState::Open(Box::new(offer)));
        state.opened.push_back((Instant::now(), number));
        number
    }

    /// Takes the call of an open offer.
    ///
    /// # Errors
    /// The state of an offer that is not open.
    pub(super) fn start(&self, number: u64) -> Result<StartedCall, OfferStatus> {
        let mut state = self.lock();
        let Some(offer) = state.offers.get_mut(&number) else { return Err(OfferStatus::Unknown) };
        let (cancellation, questions) = (CancellationToken::new(), Arc::<OpenQuestions>::default());
        let unheard = Arc::<AtomicBool>::default();
        let running = OfferState::Running {
            cancellation: cancellation.clone(),
            questions: Arc::clone(&questions),
            unheard: Arc::clone(&unheard),
            is_abandoned: false,
        };
        match std::mem::replace(offer, running) {
            OfferState::Open(open) => Ok(StartedCall { open, cancellation, questions, unheard }),
            other => {
                *offer = other;
                Err(offer.status())
            }
        }
    }

    /// Withdraws the open offers that are older than `offer_life`.
    pub(super) fn withdraw_old(&self, offer_life: Duration) {
        let mut state = self.lock();
        while let Some((opened, number)) = state.opened.front().copied() {
            if opened.elapsed() < offer_life {
                break;
            }
            state.opened.pop_front();
            state.withdraw(number);
        }
    }

    /// Returns the state of an offer. One that is open is withdrawn, so that the answer stays true.
    pub(super) fn ask(&self, number: u64) -> OfferStatus {
        let mut state = self.lock();
        state.withdraw(number);
        state.offers.get(&number).map_or(OfferStatus::Unknown, OfferState::status)
    }

    /// Withdraws an open offer, or stops a running call, whose result is then not remembered.
    pub(super) fn cancel(&self, number: u64) {
        let mut state = self.lock();
        state.withdraw(number);
        if let Some(OfferState::Running { cancellation, is_abandoned, .. }) =
            state.offers.get_mut(&number)
        {
            *is_abandoned = true;
            cancellation.cancel();
        }
    }

    /// Notes that no gateway received the last sign of life of a running call.
    pub(super) fn unheard(&self, number: u64) {
        if let Some(OfferState::Running { unheard, .. }) = self.lock().offers.get(&number) {
            unheard.store(true, Ordering::Relaxed);
        }
    }

    /// Passes the answer to a question of a running call on.
    pub(super) fn answer(&self, number: u64, question: u32, answer: Bytes) {
        if let Some(OfferState::Running { questions, .. }) = self.lock().offers.get(&number) {
            questions.answer(question, answer);
        }
    }

    pub(super) fn cancel_all(&self) {
        for offer in self.lock().offers.values() {
            if let OfferState::Running { cancellation, .. } = offer {
                cancellation.cancel();
            }
        }
    }

    /// Stores the result of a running call until it is acknowledged. Returns whether a gateway
    /// waits for it.
    pub(super) fn end(&self, number: u64, result: &Bytes) -> bool {
        let mut state = self.lock();
        let is_awaited = matches!(
            state.offers.get(&number),
            Some(OfferState::Running { is_abandoned: false, .. })
        );
        if is_awaited {
            state.offers.insert(number, OfferState::Ended(result.clone()));
            state.ended_bytes = state.ended_bytes.saturating_add(result.len());
            state.ended.push_back((Instant::now(), number));
            state.forget_old(self.retention);
        } else {
            state.offers.remove(&number);
        }
        is_awaited
    }

    /// Forgets a result that was received.
    pub(super) fn forget(&self, number: u64) {
        let mut state = self.lock();
        if matches!(state.offers.get(&number), Some(OfferState::Ended(_))) {
            state.remove(number);
        }
    }

    /// Returns the number of open offers and running calls.
    pub(super) fn active(&self) -> usize {
        let is_active =
            |offer: &&OfferState| matches!(offer, OfferState::Open(_) | OfferState::Running { .. });
        self.lock().offers.values().filter(is_active).count()
    }

    fn lock(&self) -> MutexGuard<'_, TableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TableState {
    fn withdraw(&mut self, number: u64) {
        if let Some(offer @ OfferState::Open(_)) = self.offers.get_mut(&number) {
            *offer = OfferState::Withdrawn;
            self.ended.push_back((Instant::now(), number));
        }
    }

    fn remove(&mut self, number: u64) {
        if let Some(OfferState::Ended(result)) = self.offers.remove(&number) {
            self.ended_bytes = self.ended_bytes.saturating_sub(result.len());
        }
    }

    /// Forgets what has ended long ago, and the oldest of too much.
    fn forget_old(&mut self, retention: Duration) {
        while let Some((ended, number)) = self.ended.front().copied() {
            let is_full = self.ended.len() > ENDED_MAX || self.ended_bytes > ENDED_BYTES_MAX;
            if !is_full && ended.elapsed() < retention {
                break;
            }
            self.ended.pop_front();
            self.remove(number);
        }
    }
}

impl OfferState {
    fn status(&self) -> OfferStatus {
        match self {
            Self::Withdrawn | Self::Open(_) => OfferStatus::NotStarted,
            Self::Running { .. } => OfferStatus::Running,
            Self::Ended(result) => OfferStatus::Ended(result.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
