//! Waiting times of the protocol.

use std::time::Duration;

/// Waiting times of calls. The defaults fit a network with delays of some milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallTiming {
    /// Time that a gateway waits for a worker to accept or to decline a call.
    pub accept_wait: Duration,
    /// Time after which an offer that the gateway has not confirmed expires.
    pub offer_life: Duration,
    /// Maximum time that a gateway looks for a worker that accepts the call.
    pub placement_wait_max: Duration,
    /// First pause after workers were busy; later pauses are longer.
    pub busy_pause: Duration,
    /// Interval of the heartbeats of a running call.
    pub alive_interval: Duration,
    /// Time after which a worker stops a call whose heartbeats no gateway receives.
    pub unheard_max: Duration,
    /// The same for a call that other gateways can take over, the time that a worker remembers its
    /// result, and the time that such a call waits for a worker.
    pub unattended_max: Duration,
    /// Time without a heartbeat after which a gateway asks the worker.
    pub silence_max: Duration,
    /// Time that a gateway waits for the answer to such a question.
    pub ask_wait: Duration,
    /// Number of unanswered questions after which the worker is lost.
    pub asks_max: u32,
    /// Time that a worker remembers ended calls, so that a gateway can ask for lost results.
    pub retention: Duration,
    /// Time that a gateway waits for the catalogs of workers.
    pub catalog_wait: Duration,
    /// Time that a worker still takes calls after it has announced its end, so that gateways find
    /// others with the same tools or with another version of them.
    pub leave_wait: Duration,
    /// Interval in which a gateway renews its claim of an idempotency key.
    pub claim_renewal: Duration,
    /// Time without a renewal after which another gateway takes a claim over.
    pub claim_life: Duration,
    /// Interval in which a gateway looks whether the call of another one has ended.
    pub claim_poll: Duration,
    /// Maximum time to store the result of a call with an idempotency key.
    pub store_wait_max: Duration,
}

impl Default for CallTiming {
    fn default() -> Self {
        Self {
            accept_wait: Duration::from_millis(250),
            // Longer than a pause of a garbage collector or a reconnection within a data center,
            // and short, because an open offer occupies a permit of the worker.
            offer_life: Duration::from_secs(1),
            placement_wait_max: Duration::from_secs(10),
            busy_pause: Duration::from_millis(20),
            alive_interval: Duration::from_secs(1),
            // Longer than the time after which the gateway gives up, if it lives.
            unheard_max: Duration::from_secs(5),
            // The lifetime of a task of MCP clients.
            unattended_max: Duration::from_hours(1),
            silence_max: Duration::from_secs(3),
            ask_wait: Duration::from_millis(500),
            asks_max: 2,
            retention: Duration::from_secs(60),
            catalog_wait: Duration::from_millis(300),
            // Several times as long as a gateway looks for tools.
            leave_wait: Duration::from_secs(2),
            claim_renewal: Duration::from_secs(1),
            claim_life: Duration::from_secs(5),
            claim_poll: Duration::from_millis(50),
            // JetStream was seen to be silent for seconds while it elects a new leader.
            store_wait_max: Duration::from_secs(15),
        }
    }
}

impl CallTiming {
    /// Returns the time after which a gateway counts a silent worker as lost.
    pub(crate) fn lost_after(&self) -> Duration {
        self.silence_max + self.ask_wait * self.asks_max
    }
}
