//! Time limits that do not count the time in which the user logs in.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Shortest time between two looks whether the user is still logging in.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Time in which the user has been logging in.
#[derive(Debug, Default)]
pub(crate) struct LoginTime {
    state: Mutex<LoginState>,
}

#[derive(Debug, Default)]
struct LoginState {
    earlier: Duration,
    /// Number of logins that take place now.
    running: usize,
    /// Time since which at least one login takes place.
    since: Option<Instant>,
}

/// A login that takes place now. Dropping it ends the login.
pub(super) struct RunningLogin<'t>(&'t LoginTime);

impl LoginTime {
    /// Begins a login. Time in which several take place counts once.
    pub(super) fn begin(&self) -> RunningLogin<'_> {
        let mut state = self.state.lock();
        state.running += 1;
        state.since.get_or_insert_with(Instant::now);
        RunningLogin(self)
    }

    /// Waits for `work`, at most for `wait` and the time of logins. Returns `None` if it was too
    /// late.
    pub(crate) async fn within<T>(
        &self,
        wait: Duration,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        let (started, before) = (Instant::now(), self.total());
        let mut work = std::pin::pin!(work);
        loop {
            let logins = self.total().saturating_sub(before);
            let left = wait.saturating_sub(started.elapsed().saturating_sub(logins));
            if left.is_zero() {
                return None;
            }
            let looks = tokio::time::timeout(left.max(LOOK_AGAIN), &mut work).await;
            if let Ok(done) = looks {
                return Some(done);
            }
        }
    }

    fn total(&self) -> Duration {
        let state = self.state.lock();
        state.earlier + state.since.map(|since| since.elapsed()).unwrap_or_default()
    }
}

impl Drop for RunningLogin<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.running = state.running.saturating_sub(1);
        if state.running == 0 {
            let spent = state.since.take().map(|since| since.elapsed());
            state.earlier += spent.unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test]
    async fn only_the_time_of_logins_does_not_count() {
        let time = LoginTime::default();
        let wait = Duration::from_millis(300);
        let started = Instant::now();
        assert_eq!(time.within(wait, std::future::pending::<()>()).await, None);
        assert!(started.elapsed() >= wait);
        let slow_login = async {
            let login = time.begin();
            sleep(wait * 3).await;
            drop(login);
        };
        assert_eq!(time.within(wait, slow_login).await, Some(()));
        let late = async {
            drop(time.begin());
            sleep(wait * 20).await;
        };
        assert_eq!(time.within(wait, late).await, None);
    }
    #[tokio::test]
    async fn logins_that_overlap_count_from_the_first_to_the_last() {
        let (time, wait) = (LoginTime::default(), Duration::from_millis(20));
        let started = Instant::now();
        for _ in 0..2 {
            let before = time.total();
            let first = time.begin();
            sleep(wait).await;
            let other = time.begin();
            sleep(wait).await;
            drop(first);
            sleep(wait).await;
            assert!(time.total() - before >= wait * 3);
            drop(other);
            let after = time.total();
            assert!(after <= started.elapsed());
            sleep(wait).await;
            assert_eq!(time.total(), after);
        }
        assert!(time.total() <= started.elapsed() - wait * 2);
    }
}
