//! The wall clock of one call.
//!
//! It runs from the start of the call and ends it. While a question to the one who made the call is pending it stands
//! still: a person takes minutes, and no tool can hurry them. It does so for [`ASKING_MAX`] in all, so that no call stays
//! for ever because nobody answers. The caller's own deadline and cancellation never stand still.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// How long the clock of one call may stand still. A person who needs longer has gone away.
pub(crate) const ASKING_MAX: Duration = Duration::from_secs(600);

/// Shared by a call's state, its epoch callback, and the one who waits for it.
#[derive(Debug)]
pub(crate) struct WallClock {
    started: Instant,
    hand: Mutex<Hand>,
    /// Signalled when the clock goes on.
    went_on: Notify,
}

#[derive(Debug)]
struct Hand {
    /// When the time is up, had it not been for the standstill that there is.
    ends_at: Instant,
    /// Since when the clock stands still.
    still_since: Option<Instant>,
    /// How long it has stood still before.
    stood: Duration,
}

/// The clock stands still for as long as this is there.
struct Standstill<'a>(&'a WallClock);

impl WallClock {
    /// A clock that runs since `now`, with `limit` to go.
    pub(crate) fn start(now: Instant, limit: Duration) -> Self {
        // A limit beyond what the machine can count is none; a year is as good.
        let ends_at = now.checked_add(limit).unwrap_or(now + Duration::from_secs(365 * 86_400));
        let hand = Hand { ends_at, still_since: None, stood: Duration::ZERO };
        Self { started: now, hand: Mutex::new(hand), went_on: Notify::new() }
    }

    /// When the call began.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// What is left.
    pub(crate) fn left(&self) -> Duration {
        let hand = self.lock();
        hand.ends_at.saturating_duration_since(hand.still_since.unwrap_or_else(Instant::now))
    }

    /// How long it has stood still.
    pub(crate) fn stood(&self) -> Duration {
        self.lock().stood
    }

    /// Waits for `answers` while the clock stands still. `None` when it has stood still for long enough.
    pub(crate) async fn stand_still_for<T>(&self, answers: impl Future<Output = T>) -> Option<T> {
        let left = ASKING_MAX.saturating_sub(self.stood());
        let _standstill = self.stand_still();
        tokio::time::timeout(left, answers).await.ok()
    }

    fn stand_still(&self) -> Standstill<'_> {
        self.lock().still_since.get_or_insert_with(Instant::now);
        Standstill(self)
    }

    /// Returns when the time is up.
    pub(crate) async fn passed(&self) {
        loop {
            let went_on = self.went_on.notified();
            let ends_at = {
                let hand = self.lock();
                hand.still_since.is_none().then_some(hand.ends_at)
            };
            match ends_at {
                Some(ends_at) if ends_at <= Instant::now() => return,
                // It may stand still meanwhile, and then the next look shows it.
                Some(ends_at) => tokio::time::sleep_until(ends_at.into()).await,
                None => went_on.await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Hand> {
        self.hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Standstill<'_> {
    fn drop(&mut self) {
        let mut hand = self.0.lock();
        if let Some(since) = hand.still_since.take() {
            let stood = since.elapsed();
            hand.ends_at += stood;
            hand.stood += stood;
        }
        drop(hand);
        // One call has one waiter, which may be about to look.
        self.0.went_on.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_clock_that_stands_still_does_not_run_out() {
        let clock = WallClock::start(Instant::now(), LIMIT);
        let standstill = clock.stand_still();
        let left = clock.left();
        assert!(tokio::time::timeout(LIMIT * 4, clock.passed()).await.is_err());
        assert_eq!(clock.left(), left);
        drop(standstill);
        assert!(clock.stood() >= LIMIT * 4);
        tokio::time::timeout(Duration::from_secs(20), clock.passed()).await.expect("it runs out in the end");
        assert_eq!(clock.left(), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_clock_does_not_stand_still_for_ever() {
        let clock = WallClock::start(Instant::now(), LIMIT);
        clock.lock().stood = ASKING_MAX - LIMIT;
        assert_eq!(clock.stand_still_for(std::future::ready(1)).await, Some(1));
        let never = clock.stand_still_for(std::future::pending::<()>());
        assert_eq!(tokio::time::timeout(Duration::from_secs(20), never).await, Ok(None));
        assert!(clock.stood() >= ASKING_MAX);
        assert_eq!(clock.stand_still_for(std::future::pending::<()>()).await, None);
    }

    #[tokio::test]
    async fn one_who_waits_learns_that_the_clock_goes_on() {
        let clock = WallClock::start(Instant::now(), LIMIT);
        let ask = async {
            clock.stand_still_for(tokio::time::sleep(LIMIT * 3)).await;
        };
        let both = async { tokio::join!(ask, clock.passed()) };
        tokio::time::timeout(Duration::from_secs(20), both).await.expect("it passes");
    }

    #[test]
    fn the_bound_is_pinned() {
        assert_eq!(ASKING_MAX, Duration::from_secs(600));
    }
}
