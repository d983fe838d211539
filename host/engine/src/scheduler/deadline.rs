//! Wall-clock deadline of one call.
//!
//! The clock is paused while the call waits for an answer to a question: users take minutes, and no
//! tool can hurry them. It is paused for at most [`PAUSE_MAX`] in total, so that a call ends even
//! if there is no answer. The caller's own deadline and cancellation are never paused.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Maximum total time for which the clock of one call is paused.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(600);

/// Deadline that can be paused. Shared by a call's state, its epoch callback and its caller.
#[derive(Debug)]
pub(crate) struct Deadline {
    started: Instant,
    state: Mutex<DeadlineState>,
    /// Signalled when the clock resumes.
    resumed: Notify,
}

#[derive(Debug)]
struct DeadlineState {
    /// Deadline, without the pause in progress.
    at: Instant,
    paused_since: Option<Instant>,
    /// Duration of all completed pauses.
    paused_total: Duration,
}

/// Pauses a deadline until it is dropped.
struct Pause<'a>(&'a Deadline);

impl Deadline {
    /// Creates a deadline `limit` after `now`.
    pub(crate) fn start(now: Instant, limit: Duration) -> Self {
        // A limit that the clock cannot represent is replaced by a year.
        let at = now.checked_add(limit).unwrap_or(now + Duration::from_secs(365 * 86_400));
        let state = DeadlineState { at, paused_since: None, paused_total: Duration::ZERO };
        Self { started: now, state: Mutex::new(state), resumed: Notify::new() }
    }

    /// Returns the start of the call.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// Returns the remaining time.
    pub(crate) fn remaining(&self) -> Duration {
        let state = self.state.lock();
        state.at.saturating_duration_since(state.paused_since.unwrap_or_else(Instant::now))
    }

    /// Returns the duration of all completed pauses.
    pub(crate) fn paused_total(&self) -> Duration {
        self.state.lock().paused_total
    }

    /// Awaits `answer` with the clock paused. Returns `None` when it has been paused for
    /// [`PAUSE_MAX`].
    pub(crate) async fn pause_for<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let left = PAUSE_MAX.saturating_sub(self.paused_total());
        let _pause = self.pause();
        tokio::time::timeout(left, answer).await.ok()
    }

    fn pause(&self) -> Pause<'_> {
        self.state.lock().paused_since.get_or_insert_with(Instant::now);
        Pause(self)
    }

    /// Waits for the deadline.
    pub(crate) async fn passed(&self) {
        loop {
            let resumed = self.resumed.notified();
            let at = {
                let state = self.state.lock();
                state.paused_since.is_none().then_some(state.at)
            };
            match at {
                Some(at) if at <= Instant::now() => return,
                // A pause that begins meanwhile is detected after the sleep.
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => resumed.await,
            }
        }
    }
}

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        if let Some(since) = state.paused_since.take() {
            let paused = since.elapsed();
            state.at += paused;
            state.paused_total += paused;
        }
        drop(state);
        // A call has one waiter, which may just be about to wait.
        self.0.resumed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_paused_deadline_does_not_pass() {
        let deadline = Deadline::start(Instant::now(), LIMIT);
        let pause = deadline.pause();
        let remaining = deadline.remaining();
        assert!(tokio::time::timeout(LIMIT * 4, deadline.passed()).await.is_err());
        assert_eq!(deadline.remaining(), remaining);
        drop(pause);
        assert!(deadline.paused_total() >= LIMIT * 4);
        tokio::time::timeout(Duration::from_secs(20), deadline.passed())
            .await
            .expect("it passes in the end");
        assert_eq!(deadline.remaining(), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_deadline_is_not_paused_for_ever() {
        let deadline = Deadline::start(Instant::now(), LIMIT);
        deadline.state.lock().paused_total = PAUSE_MAX - LIMIT;
        assert_eq!(deadline.pause_for(std::future::ready(1)).await, Some(1));
        let never = deadline.pause_for(std::future::pending::<()>());
        assert_eq!(tokio::time::timeout(Duration::from_secs(20), never).await, Ok(None));
        assert!(deadline.paused_total() >= PAUSE_MAX);
        assert_eq!(deadline.pause_for(std::future::pending::<()>()).await, None);
    }

    #[tokio::test]
    async fn a_waiter_learns_that_the_clock_has_resumed() {
        let deadline = Deadline::start(Instant::now(), LIMIT);
        let ask = async {
            deadline.pause_for(tokio::time::sleep(LIMIT * 3)).await;
        };
        let both = async { tokio::join!(ask, deadline.passed()) };
        tokio::time::timeout(Duration::from_secs(20), both).await.expect("it passes");
    }

    #[test]
    fn the_bound_is_pinned() {
        assert_eq!(PAUSE_MAX, Duration::from_secs(600));
    }
}
