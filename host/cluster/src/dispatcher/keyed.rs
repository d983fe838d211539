//! Calls with idempotency keys.
//!
//! A gateway claims the key, renews the claim while the call runs, and returns its result only when
//! the store has it. Another gateway that finds the claim waits for the result. If the claim does
//! not change for a while, its gateway is lost, and the other one takes it over and runs the call
//! again. A gateway that was only slow then finds that the entry has changed, and returns the
//! result that is stored. Each gateway measures the time by its own clock, from the moment at which
//! it saw the claim.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use super::Dispatcher;
use super::call::{PendingCall, RemoteCall};
use crate::keyed::{EntryHeader, EntryState, KeyedCall, KeyedResults, StoreUnavailable};
use crate::{DispatchError, result};

/// Claim of this gateway, or a result that is already there.
enum ClaimOutcome {
    Claim(Claim),
    Result(Bytes),
}

/// State of an entry that this gateway has not written.
enum FoundEntry {
    /// The call may run. The revision to replace, if there is an entry.
    Free(Option<u64>),
    /// The claim of this gateway, which received no confirmation of the write.
    Own(u64),
    Result(Bytes),
}

/// Claim of a key. Dropping it allows others to run the call.
struct Claim {
    dispatcher: Arc<Dispatcher>,
    keyed: KeyedCall,
    name: String,
    revision: u64,
    /// False if the entry has a result, or belongs to another gateway.
    is_held: bool,
}

/// Claim of another gateway that may be lost.
#[derive(Clone, Copy)]
struct WatchedClaim {
    revision: u64,
    /// Time since which it could have changed and has not.
    since: Instant,
}

impl PendingCall {
    /// Runs a call, or returns the result that is stored for its key.
    ///
    /// # Errors
    /// As [`run`](Self::run), if the key stands for another call, or if the store does not answer.
    pub(super) async fn run_keyed(
        &mut self,
        keyed: KeyedCall,
        call: &RemoteCall<'_>,
    ) -> Result<Bytes, DispatchError> {
        let dispatcher = Arc::clone(self.dispatcher());
        let name = format!("{}.{}", dispatcher.options.name, self.number());
        let mut claim = match Claim::take(dispatcher, keyed, name).await? {
            ClaimOutcome::Claim(claim) => claim,
            ClaimOutcome::Result(result) => return Ok(result),
        };
        let result = claim.renew_while(self.run(call)).await?;
        match result::is_final(&result) {
            true => claim.store(result).await,
            false => Ok(result),
        }
    }
}

impl Claim {
    /// Claims a key, or waits for the result of the gateway that has claimed it.
    async fn take(
        dispatcher: Arc<Dispatcher>,
        keyed: KeyedCall,
        name: String,
    ) -> Result<ClaimOutcome, DispatchError> {
        let mut claim = Self { dispatcher, keyed, name, revision: 0, is_held: false };
        let silence_max = claim.dispatcher.options.timing.placement_wait_max;
        let mut give_up = Instant::now() + silence_max;
        let mut expected = None;
        loop {
            let written = match claim.write(expected, EntryState::Running, b"").await {
                Ok(Some(revision)) => Some(revision),
                Ok(None) => match claim.watch(silence_max, &mut give_up).await? {
                    FoundEntry::Result(result) => return Ok(ClaimOutcome::Result(result)),
                    FoundEntry::Own(revision) => Some(revision),
                    FoundEntry::Free(revision) => {
                        expected = revision;
                        None
                    }
                },
                Err(error) => {
                    claim.pause(error, give_up).await?;
                    None
                }
            };
            if let Some(revision) = written {
                (claim.revision, claim.is_held) = (revision, true);
                return Ok(ClaimOutcome::Claim(claim));
            }
        }
    }

    /// Waits until the call may run, or has a result. Each answer of the store moves `give_up`.
    async fn watch(
        &self,
        silence_max: Duration,
        give_up: &mut Instant,
    ) -> Result<FoundEntry, DispatchError> {
        let timing = self.dispatcher.options.timing;
        let mut watched: Option<WatchedClaim> = None;
        let mut failing_since: Option<Instant> = None;
        loop {
            let asked = Instant::now();
            let entry = match self.results().read(&self.keyed.entry).await {
                Ok(entry) => entry,
                Err(error) => {
                    failing_since.get_or_insert(asked);
                    self.pause(error, *give_up).await?;
                    continue;
                }
            };
            // While a store is silent, no gateway can renew its claim.
            if failing_since.take().is_some_and(|since| since.elapsed() > 2 * timing.claim_renewal)
            {
                watched = None;
            }
            *give_up = Instant::now() + silence_max;
            let Some(entry) = entry else { return Ok(FoundEntry::Free(None)) };
            let (header, result) = EntryHeader::decode(&entry.value)
                .map_err(|error| DispatchError::KeysUnavailable(error.to_string()))?;
            if header.call != self.keyed.call {
                return Err(DispatchError::KeyConflict);
            }
            match header.state {
                EntryState::Ended => return Ok(FoundEntry::Result(result)),
                EntryState::TooLarge => return Err(DispatchError::ResultNotStored),
                EntryState::Free => return Ok(FoundEntry::Free(Some(entry.revision))),
                EntryState::Running if header.claim == self.name => {
                    return Ok(FoundEntry::Own(entry.revision));
                }
                EntryState::Running => {
                    let same = watched.filter(|claim| claim.revision == entry.revision);
                    let claim = same.unwrap_or_else(|| WatchedClaim {
                        revision: entry.revision,
                        since: Instant::now(),
                    });
                    if claim.since.elapsed() >= timing.claim_life {
                        return Ok(FoundEntry::Free(Some(entry.revision)));
                    }
                    watched = Some(claim);
                }
            }
            sleep(timing.claim_poll).await;
        }
    }

    /// Renews the claim until the future has ended. A claim that was lost is not renewed; the call
    /// goes on, and its result competes with that of the other gateway.
    async fn renew_while<T>(&mut self, running: impl Future<Output = T>) -> T {
        let mut running = std::pin::pin!(running);
        let period = self.dispatcher.options.timing.claim_renewal;
        let mut renewal = interval_at(Instant::now() + period, period);
        renewal.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                ended = &mut running => return ended,
                _ = renewal.tick(), if self.is_held => {}
            }
            // A store that does not answer must not delay the call.
            let renewed = self.write(Some(self.revision), EntryState::Running, b"");
            let renewed = tokio::select! {
                biased;
                ended = &mut running => return ended,
                renewed = renewed => renewed,
            };
            match renewed {
                Ok(Some(revision)) => self.revision = revision,
                Ok(None) => self.is_held = self.is_own().await,
                Err(error) => tracing::warn!(%error, "a claim of a key was not renewed"),
            }
        }
    }

    /// Stores the result of the call. Returns the result that the store has then.
    async fn store(&mut self, result: Bytes) -> Result<Bytes, DispatchError> {
        let silence_max = self.dispatcher.options.timing.store_wait_max;
        let mut give_up = Instant::now() + silence_max;
        let (state, body) = match self.fits(&result) {
            true => (EntryState::Ended, &result[..]),
            false => (EntryState::TooLarge, &b""[..]),
        };
        let mut expected = Some(self.revision);
        loop {
            match self.write(expected, state, body).await {
                Ok(Some(_)) => {
                    self.is_held = false;
                    return Ok(result);
                }
                Ok(None) => {}
                Err(error) => {
                    // The result is there, and repetitions of the call might not get it.
                    self.pause(error, give_up).await.map_err(|_| DispatchError::OutcomeUnknown)?;
                    continue;
                }
            }
            match self.watch(silence_max, &mut give_up).await {
                Ok(FoundEntry::Result(stored)) => {
                    self.is_held = false;
                    return Ok(stored);
                }
                Ok(FoundEntry::Own(revision)) => expected = Some(revision),
                Ok(FoundEntry::Free(revision)) => expected = revision,
                // Its own, whose write was not confirmed, or that of another gateway.
                Err(DispatchError::ResultNotStored) if state == EntryState::TooLarge => {
                    self.is_held = false;
                    return Ok(result);
                }
                Err(error @ DispatchError::ResultNotStored) => return Err(error),
                Err(_) => return Err(DispatchError::OutcomeUnknown),
            }
        }
    }

    /// Returns whether the entry is still the claim of this gateway, and notes its revision.
    async fn is_own(&mut self) -> bool {
        let Ok(Some(entry)) = self.results().read(&self.keyed.entry).await else { return true };
        let is_own = EntryHeader::decode(&entry.value).is_ok_and(|(header, _)| {
            header.claim == self.name && header.state == EntryState::Running
        });
        if is_own {
            self.revision = entry.revision;
        }
        is_own
    }

    /// Waits before the store is asked again.
    ///
    /// # Errors
    /// If it has not answered for too long.
    async fn pause(&self, error: StoreUnavailable, give_up: Instant) -> Result<(), DispatchError> {
        if Instant::now() >= give_up {
            return Err(DispatchError::KeysUnavailable(error.0));
        }
        sleep(self.dispatcher.options.timing.claim_poll).await;
        Ok(())
    }

    async fn write(
        &self,
        expected: Option<u64>,
        state: EntryState,
        result: &[u8],
    ) -> Result<Option<u64>, StoreUnavailable> {
        let value = self.header(state).encode(result);
        self.results().write(&self.keyed.entry, expected, value).await
    }

    fn header(&self, state: EntryState) -> EntryHeader {
        EntryHeader { state, call: self.keyed.call.clone(), claim: self.name.clone() }
    }

    fn fits(&self, result: &Bytes) -> bool {
        let header = self.header(EntryState::Ended).encode(b"").len();
        result.len().saturating_add(header) <= self.results().value_bytes_max()
    }

    fn results(&self) -> &Arc<dyn KeyedResults> {
        &self.dispatcher.options.results
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_held {
            return;
        }
        let results = Arc::clone(self.results());
        let (entry, revision) = (self.keyed.entry.clone(), self.revision);
        let value = self.header(EntryState::Free).encode(b"");
        // If this fails, the next gateway waits until the claim is old.
        self.dispatcher.bus.spawn(Box::pin(async move {
            let _ = results.write(&entry, Some(revision), value).await;
        }));
    }
}
