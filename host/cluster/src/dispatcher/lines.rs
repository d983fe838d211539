//! Lines of tasks that wait for a worker.
//!
//! The first of a line asks workers, and the others wait for their turn, so that tasks start in the
//! order in which they began to wait, and a gateway asks once for all of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

/// State of a line that one task passes to the next.
#[derive(Debug, Default)]
pub(super) struct WaitingLine {
    /// Time since which no worker has the tool. If the first of a line gives up for that reason,
    /// the others need not wait as long once more.
    pub(super) absent_since: Option<Instant>,
}

/// Turn of a task to ask workers. Dropping it passes it to the next of the line.
pub(super) type LineTurn = OwnedMutexGuard<WaitingLine>;

/// Lines by the route of their calls.
#[derive(Debug, Default)]
pub(super) struct WaitingLines {
    lines: Mutex<BTreeMap<String, Weak<tokio::sync::Mutex<WaitingLine>>>>,
}

impl WaitingLines {
    /// Joins a line at its end. Returns whether the call had to wait as well.
    pub(super) async fn join(&self, route: &str) -> (LineTurn, bool) {
        let line = self.line(route);
        match Arc::clone(&line).try_lock_owned() {
            Ok(turn) => (turn, false),
            Err(_) => (line.lock_owned().await, true),
        }
    }

    fn line(&self, route: &str) -> Arc<tokio::sync::Mutex<WaitingLine>> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = lines.get(route).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::default();
        lines.insert(route.to_owned(), Arc::downgrade(&line));
        line
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn turns_pass_in_order_and_lines_of_no_one_are_forgotten() {
        let lines = WaitingLines::default();
        let (mut first, waited) = lines.join("a").await;
        assert!(!waited && lines.join("b").now_or_never().is_some());
        let mut second = Box::pin(lines.join("a"));
        assert!(second.as_mut().now_or_never().is_none());
        let mut canceled = Box::pin(lines.join("a"));
        assert!(canceled.as_mut().now_or_never().is_none());
        let mut third = Box::pin(lines.join("a"));
        assert!(third.as_mut().now_or_never().is_none());
        drop(canceled);
        let now = Instant::now();
        first.absent_since = Some(now);
        drop(first);
        assert!(third.as_mut().now_or_never().is_none());
        let (turn, waited) = second.await;
        assert_eq!((turn.absent_since, waited), (Some(now), true));
        drop(turn);
        drop(third.await);
        drop(lines.line("c"));
        assert_eq!(lines.lines.lock().unwrap().len(), 1);
    }
}
