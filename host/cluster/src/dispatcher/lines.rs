//! Lines of calls that wait for a worker.
//!
//! The first of a line asks workers, and the others wait for their turn, so that calls start in the
//! order in which they began to wait, and a gateway asks once for all of them. Each caller has its
//! own lines: workers decline calls of a caller that has all of its permits and accept others.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

/// State of a line that one call passes to the next.
#[derive(Debug, Default)]
pub(super) struct WaitingLine {
    /// Time since which no worker has the tool. If the first of a line gives up for that reason,
    /// the others need not wait as long once more.
    pub(super) absent_since: Option<Instant>,
}

/// Turn of a call to ask workers. Dropping it passes it to the next of the line.
pub(super) type LineTurn = OwnedMutexGuard<WaitingLine>;

/// Route and session of the calls of a line.
type LineKey = (String, String);

/// All lines of a gateway.
#[derive(Debug, Default)]
pub(super) struct WaitingLines {
    lines: Mutex<BTreeMap<LineKey, Weak<tokio::sync::Mutex<WaitingLine>>>>,
}

impl WaitingLines {
    /// Returns whether calls wait in a line.
    pub(super) fn has(&self, route: &str, session: &str) -> bool {
        let lines = self.lines.lock();
        let line = lines.get(&(route.to_owned(), session.to_owned()));
        line.is_some_and(|line| line.strong_count() > 0)
    }

    /// Returns the number of lines for a route. The first call of each asks workers.
    pub(super) fn count(&self, route: &str) -> usize {
        let lines = self.lines.lock();
        let from = (route.to_owned(), String::new());
        let of_route = lines.range(from..).take_while(|((of, _), _)| of == route);
        of_route.filter(|(_, line)| line.strong_count() > 0).count()
    }

    /// Joins a line at its end. Returns whether the call had to wait as well.
    pub(super) async fn join(&self, route: &str, session: &str) -> (LineTurn, bool) {
        let line = self.line((route.to_owned(), session.to_owned()));
        match Arc::clone(&line).try_lock_owned() {
            Ok(turn) => (turn, false),
            Err(_) => (line.lock_owned().await, true),
        }
    }

    fn line(&self, key: LineKey) -> Arc<tokio::sync::Mutex<WaitingLine>> {
        let mut lines = self.lines.lock();
        if let Some(line) = lines.get(&key).and_then(Weak::upgrade) {
            return line;
        }
        lines.retain(|_, line| line.strong_count() > 0);
        let line = Arc::default();
        lines.insert(key, Arc::downgrade(&line));
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
        assert!(!lines.has("a", "s"));
        let (mut first, waited) = lines.join("a", "s").await;
        assert!(!waited && lines.has("a", "s") && !lines.has("a", "t"));
        assert!(lines.join("b", "s").now_or_never().is_some());
        assert!(lines.join("a", "t").now_or_never().is_some());
        assert_eq!((lines.count("a"), lines.count("b")), (1, 0));
        let mut second = Box::pin(lines.join("a", "s"));
        assert!(second.as_mut().now_or_never().is_none());
        let mut canceled = Box::pin(lines.join("a", "s"));
        assert!(canceled.as_mut().now_or_never().is_none());
        let mut third = Box::pin(lines.join("a", "s"));
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
        assert!(!lines.has("a", "s"));
        drop(lines.line(("c".to_owned(), "s".to_owned())));
        assert_eq!(lines.lines.lock().len(), 1);
    }
}
