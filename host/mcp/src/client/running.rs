//! Requests in flight on one connection, and limits for the messages that the server sends
//! meanwhile.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use cofferdam_tool::CallContext;
use cofferdam_tool::ask::LogLevel;
use parking_lot::Mutex;
use rmcp::model::{ProgressToken, RequestId};
use rmcp::service::InboundStreamOrigin;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use super::limits::{
    LOG_LINES_MAX, LOG_LINES_PER_SECOND_MAX, QUESTIONS_PER_CALL_MAX, REPORTS_PER_SECOND_MAX,
    REQUEST_INTERVAL, REQUESTS_IN_FLIGHT_MAX, REQUESTS_MAX,
};

/// Unanswered requests of the host, and the server's own requests while it works on them.
#[derive(Default)]
pub(crate) struct ActiveRequests {
    state: Mutex<RequestState>,
    /// Fires when the server has sent too much: the connection ends.
    closed: CancellationToken,
}

#[derive(Default)]
struct RequestState {
    calls: HashMap<RequestId, PendingRequest>,
    /// Requests of the server that belong to no single call.
    shared: Requests,
    /// Unanswered requests of the server, each with the host's request that it is counted for.
    unanswered: HashMap<RequestId, Option<RequestId>>,
    /// Requests of the host during which the server has sent too much.
    flooded: HashSet<RequestId>,
}

/// Unanswered request of the host.
struct PendingRequest {
    token: ProgressToken,
    call: CallContext,
    /// Canceled when the request has ended.
    ended: CancellationToken,
    /// Number of questions so far.
    asked: u32,
    requests: Requests,
    lines: LogLines,
    reports: SecondCount,
}

/// Call during which a server asks a question.
pub(super) struct AskingCall {
    pub(super) call: CallContext,
    /// Number of earlier questions of the call.
    pub(super) number: u32,
    /// Canceled when the call has ended, whose questions nothing answers from then on.
    pub(super) ended: CancellationToken,
}

/// Requests of a server that are counted together, with a token bucket that refills slowly.
struct Requests {
    in_flight: u32,
    left: u32,
    filled: Instant,
}

impl Default for Requests {
    fn default() -> Self {
        Self { in_flight: 0, left: REQUESTS_MAX, filled: Instant::now() }
    }
}

impl Requests {
    /// Takes a token. The bucket holds `REQUESTS_MAX` tokens for each of `calls`.
    fn take(&mut self, calls: u32, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.filled);
        let intervals =
            elapsed.as_millis().checked_div(REQUEST_INTERVAL.as_millis()).unwrap_or_default();
        let new = u32::try_from(intervals).unwrap_or(u32::MAX);
        if new > 0 {
            self.filled = now;
        }
        self.left = self.left.saturating_add(new).min(REQUESTS_MAX.saturating_mul(calls.max(1)));
        let has_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_left
    }
}

/// Number of messages in the current second.
#[derive(Default)]
struct SecondCount {
    since: Option<Instant>,
    count: u32,
}

impl SecondCount {
    /// Returns whether one more message is one of the first `count_max` of its second.
    fn take(&mut self, now: Instant, count_max: u32) -> bool {
        let is_same =
            |since: &Instant| now.saturating_duration_since(*since) < Duration::from_secs(1);
        if !self.since.as_ref().is_some_and(is_same) {
            *self = Self { since: Some(now), count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= count_max
    }
}

/// Counters for the log lines of one call.
#[derive(Default)]
struct LogLines {
    second: SecondCount,
    shown: u32,
    left_out: u64,
}

impl LogLines {
    /// Returns whether one more line is shown.
    fn take(&mut self, now: Instant) -> bool {
        let is_shown =
            self.shown < LOG_LINES_MAX && self.second.take(now, LOG_LINES_PER_SECOND_MAX);
        if is_shown {
            self.shown = self.shown.saturating_add(1);
        } else {
            self.left_out = self.left_out.saturating_add(1);
        }
        is_shown
    }
}

/// Verdict about a request of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The request is handled.
    Admitted,
    /// The request gets an error response, because too many are unanswered.
    Busy,
    /// The server has exhausted its limit: the connection ends.
    Closed,
}

impl ActiveRequests {
    /// Registers a request of the host, and the call that it belongs to.
    pub(super) fn add(&self, id: RequestId, token: ProgressToken, call: CallContext) {
        let waiting = PendingRequest {
            token,
            call,
            ended: CancellationToken::new(),
            asked: 0,
            requests: Requests::default(),
            lines: LogLines::default(),
            reports: SecondCount::default(),
        };
        let mut state = self.state.lock();
        // Each call also adds tokens for requests that belong to no single call.
        state.shared.left = state.shared.left.saturating_add(REQUESTS_MAX);
        state.calls.insert(id, waiting);
    }

    /// Removes a request of the host, and reports to its caller how many log lines were left out.
    pub(super) fn remove(&self, id: &RequestId) {
        let removed = self.state.lock().calls.remove(id);
        if let Some(waiting) = removed {
            waiting.ended.cancel();
            note_omitted(&waiting.call, waiting.lines.left_out);
        }
    }

    /// Returns whether the server has sent too much while it worked on this request.
    pub(super) fn is_flooded(&self, id: &RequestId) -> bool {
        self.state.lock().flooded.remove(id)
    }

    /// Returns whether the connection has ended because the server has sent too much.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }

    /// Waits until [`ActiveRequests::is_closed`].
    pub(super) fn closed(&self) -> WaitForCancellationFuture<'_> {
        self.closed.cancelled()
    }

    /// Returns the only unanswered request of the host, if there is exactly one.
    pub(super) fn only(&self) -> Option<RequestId> {
        let state = self.state.lock();
        let mut ids = state.calls.keys();
        let only = ids.next().cloned();
        only.filter(|_| ids.next().is_none())
    }

    /// Counts a request of the server.
    pub(super) fn admit(&self, id: &RequestId, origin: Option<&InboundStreamOrigin>) -> Verdict {
        let mut state = self.state.lock();
        let RequestState { calls, shared, unanswered, flooded } = &mut *state;
        let now = Instant::now();
        let of_call = match origin {
            Some(InboundStreamOrigin::OutboundRequest(of)) if calls.contains_key(of) => {
                Some(of.clone())
            }
            _ => None,
        };
        let running = u32::try_from(calls.len()).unwrap_or(u32::MAX).max(1);
        let waiting = of_call.as_ref().and_then(|of| calls.get_mut(of));
        let (requests, counts_for) = match waiting {
            Some(waiting) => (&mut waiting.requests, 1),
            None => (shared, running),
        };
        if !requests.take(counts_for, now) {
            match of_call {
                Some(of) => drop(flooded.insert(of)),
                // The request cannot be attributed to a single call.
                None => flooded.extend(calls.keys().cloned()),
            }
            drop(state);
            self.closed.cancel();
            return Verdict::Closed;
        }
        let in_flight_max = REQUESTS_IN_FLIGHT_MAX.saturating_mul(counts_for);
        if requests.in_flight >= in_flight_max || unanswered.contains_key(id) {
            return Verdict::Busy;
        }
        requests.in_flight = requests.in_flight.saturating_add(1);
        unanswered.insert(id.clone(), of_call);
        Verdict::Admitted
    }

    /// Records that a request of the server was answered or withdrawn.
    pub(super) fn answered(&self, id: &RequestId) {
        let mut state = self.state.lock();
        let RequestState { calls, shared, unanswered, .. } = &mut *state;
        let requests = match unanswered.remove(id) {
            None => return,
            Some(None) => shared,
            Some(Some(of)) => match calls.get_mut(&of) {
                Some(waiting) => &mut waiting.requests,
                None => return,
            },
        };
        requests.in_flight = requests.in_flight.saturating_sub(1);
    }

    /// Returns the call that a progress report belongs to. `Some(None)` means that the report is
    /// left out.
    pub(super) fn reporting(&self, token: &ProgressToken) -> Option<Option<CallContext>> {
        let mut state = self.state.lock();
        let waiting = state.calls.values_mut().find(|waiting| waiting.token == *token)?;
        let is_shown = waiting.reports.take(Instant::now(), REPORTS_PER_SECOND_MAX);
        Some(is_shown.then(|| waiting.call.clone()))
    }

    /// Returns the call that a question belongs to. A transport that separates streams knows the
    /// call; otherwise there must be a single call, or several of one session. A question never
    /// goes to another caller.
    pub(super) fn asking(&self, origin: Option<&InboundStreamOrigin>) -> Option<AskingCall> {
        let mut state = self.state.lock();
        let waiting = if let Some(InboundStreamOrigin::OutboundRequest(id)) = origin {
            state.calls.get_mut(id)?
        } else {
            // Requests that belong to no call have an empty call id.
            let mut running =
                state.calls.values_mut().filter(|waiting| !waiting.call.call_id.is_empty());
            let first = running.next()?;
            let session = first.call.session.clone();
            if !running.all(|other| session.is_some() && other.call.session == session) {
                return None;
            }
            first
        };
        let number = waiting.asked;
        waiting.asked = number.saturating_add(1);
        (number < QUESTIONS_PER_CALL_MAX).then(|| AskingCall {
            call: waiting.call.clone(),
            number,
            ended: waiting.ended.clone(),
        })
    }

    /// Returns the call that a log line belongs to: the call of the stream, or the only call.
    /// `Some(None)` means that the line is left out.
    pub(super) fn logging(
        &self,
        origin: Option<&InboundStreamOrigin>,
    ) -> Option<Option<CallContext>> {
        let mut state = self.state.lock();
        let is_only = state.calls.len() == 1;
        let waiting = match origin {
            Some(InboundStreamOrigin::OutboundRequest(id)) => state.calls.get_mut(id),
            _ if is_only => state.calls.values_mut().next(),
            _ => None,
        }?;
        if !waiting.lines.take(Instant::now()) {
            return Some(None);
        }
        let left_out = std::mem::take(&mut waiting.lines.left_out);
        let call = waiting.call.clone();
        drop(state);
        note_omitted(&call, left_out);
        Some(Some(call))
    }
}

fn note_omitted(call: &CallContext, count: u64) {
    if let Some(sink) = call.log.as_ref().filter(|_| count > 0) {
        let lines = if count == 1 { "line" } else { "lines" };
        sink.log(
            &call.call_id,
            LogLevel::Warning,
            &format!("{count} log {lines} of the server left out"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: i64) -> RequestId {
        RequestId::Number(number)
    }

    fn running(calls: &[i64]) -> ActiveRequests {
        let running = ActiveRequests::default();
        for call in calls {
            running.add(id(*call), ProgressToken(id(*call)), CallContext::new("c"));
        }
        running
    }

    #[test]
    fn requests_of_a_server_are_counted_for_the_call_whose_stream_they_come_on() {
        let running = running(&[1, 2]);
        let first = InboundStreamOrigin::OutboundRequest(id(1));
        let mut verdicts = Vec::new();
        for number in 0..200 {
            verdicts.push(running.admit(&id(number), Some(&first)));
        }
        let count = |verdict| verdicts.iter().filter(|found| **found == verdict).count();
        assert_eq!(count(Verdict::Admitted), usize::try_from(REQUESTS_IN_FLIGHT_MAX).unwrap());
        assert_eq!(
            count(Verdict::Busy),
            usize::try_from(REQUESTS_MAX - REQUESTS_IN_FLIGHT_MAX).unwrap()
        );
        assert!(running.is_closed() && running.is_flooded(&id(1)) && !running.is_flooded(&id(2)));
    }

    #[test]
    fn an_answer_makes_room_and_an_id_is_used_once_at_a_time() {
        let running = running(&[1]);
        for number in 0..i64::from(REQUESTS_IN_FLIGHT_MAX) {
            assert_eq!(running.admit(&id(number), None), Verdict::Admitted);
        }
        assert_eq!(running.admit(&id(100), None), Verdict::Busy);
        running.answered(&id(0));
        assert_eq!(running.admit(&id(1), None), Verdict::Busy, "it waits for its answer");
        assert_eq!(running.admit(&id(0), None), Verdict::Admitted);
    }

    #[test]
    fn questions_end_with_their_call() {
        let running = running(&[1, 2]);
        let of_call = |number| Some(InboundStreamOrigin::OutboundRequest(id(number)));
        let asking = [1, 2].map(|call| running.asking(of_call(call).as_ref()).unwrap());
        running.remove(&id(1));
        assert!(asking[0].ended.is_cancelled() && !asking[1].ended.is_cancelled());
        assert!(running.asking(of_call(1).as_ref()).is_none());
    }

    #[test]
    fn requests_of_no_call_have_room_for_each_call() {
        let running = running(&[1, 2, 3]);
        let admitted = (0..1000).filter(|number| {
            let verdict = running.admit(&id(*number), None);
            running.answered(&id(*number));
            verdict == Verdict::Admitted
        });
        let admitted = u32::try_from(admitted.count()).unwrap();
        assert_eq!(admitted, 3 * REQUESTS_MAX);
        assert!([1, 2, 3].iter().all(|call| running.is_flooded(&id(*call))));
    }

    #[test]
    fn the_room_for_requests_comes_back_slowly() {
        let (mut requests, start) = (Requests::default(), Instant::now());
        assert!((0..REQUESTS_MAX).all(|_| requests.take(1, start)) && !requests.take(1, start));
        assert!(requests.take(1, start + 2 * REQUEST_INTERVAL));
        let later = start + 1_000_000 * REQUEST_INTERVAL;
        assert!((0..REQUESTS_MAX).all(|_| requests.take(1, later)) && !requests.take(1, later));
    }

    #[test]
    fn log_lines_are_limited_per_second_and_per_call() {
        let (mut lines, start) = (LogLines::default(), Instant::now());
        let shown = |lines: &mut LogLines, now| (0..1000).filter(|_| lines.take(now)).count();
        assert_eq!(shown(&mut lines, start), usize::try_from(LOG_LINES_PER_SECOND_MAX).unwrap());
        assert_eq!(lines.left_out, 1000 - u64::from(LOG_LINES_PER_SECOND_MAX));
        for second in 1..100 {
            shown(&mut lines, start + Duration::from_secs(second));
        }
        assert_eq!(lines.shown, LOG_LINES_MAX);
    }

    #[test]
    fn progress_is_limited_per_second() {
        let requests = ActiveRequests::default();
        let token = ProgressToken(id(1));
        requests.add(id(1), token.clone(), CallContext::default());
        let shown = (0..1000).filter(|_| requests.reporting(&token).unwrap().is_some()).count();
        // Another second may begin meanwhile.
        let max = usize::try_from(REPORTS_PER_SECOND_MAX).unwrap();
        assert!((max..=2 * max).contains(&shown), "{shown}");
        assert!(requests.reporting(&ProgressToken(id(2))).is_none());
    }
}
