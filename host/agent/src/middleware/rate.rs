//! Rate limit on calls of tools.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam_tool::ToolFailure;
use parking_lot::Mutex;

use super::{FunctionContext, FunctionError, FunctionSignal, Middleware, Next};

/// Rejects calls of a tool that is called too often. The failure tells the model how long to wait.
#[derive(Debug)]
pub struct RateLimit {
    calls_max: usize,
    within: Duration,
    /// Times of recent calls by tool, oldest first; at most `calls_max` each.
    calls: Mutex<HashMap<String, VecDeque<Instant>>>,
}

impl RateLimit {
    /// Allows at most `calls_max` calls of each tool within any period of this length.
    #[must_use]
    pub fn new(calls_max: usize, within: Duration) -> Self {
        Self { calls_max, within, calls: Mutex::default() }
    }

    /// Counts a call, or returns how long it has to wait.
    fn admit(&self, tool: &str, now: Instant) -> Result<(), Duration> {
        let mut calls = self.calls.lock();
        let calls = calls.entry(tool.to_owned()).or_default();
        while calls.front().is_some_and(|call| now.saturating_duration_since(*call) >= self.within)
        {
            calls.pop_front();
        }
        if calls.len() >= self.calls_max {
            let oldest =
                calls.front().map_or(Duration::ZERO, |call| now.saturating_duration_since(*call));
            return Err(self.within.saturating_sub(oldest));
        }
        calls.push_back(now);
        Ok(())
    }
}

#[async_trait]
impl Middleware<FunctionContext> for RateLimit {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        let name = context.tool.name.clone();
        if let Err(wait) = self.admit(name.as_str(), Instant::now()) {
            let mut failure = ToolFailure::new(format!("'{name}' was called too often."));
            let seconds = wait.as_secs().saturating_add(1);
            failure.suggestion =
                Some(format!("Call it again in {seconds} s, or go on without it."));
            failure.transient = Some(true);
            return Err(FunctionError::Failure(failure).into());
        }
        next.run(context).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_admitted_when_an_earlier_one_is_long_ago() {
        let limit = RateLimit::new(2, Duration::from_secs(10));
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        assert_eq!(limit.admit("a", start), Ok(()));
        assert_eq!(limit.admit("a", start + second), Ok(()));
        assert_eq!(limit.admit("a", start + 4 * second), Err(6 * second));
        assert_eq!(limit.admit("b", start + 4 * second), Ok(()));
        assert_eq!(limit.admit("a", start + 10 * second), Ok(()));
        assert_eq!(limit.admit("a", start + 10 * second), Err(second));
    }
}
