//! Calls that a program has made, so that it can run again without making them again.
//!
//! A question about an approval can outlive the run: a client that answers in a new request makes
//! the host run the program again. The second run gets the seed, the clock and the results of the
//! first one, and makes only the calls that are missing. An agent without a user who can be asked
//! keeps the ledger in its session, where [`record`] is its form.

pub(crate) mod record;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use cofferdam_files::{Budget, Transaction};
use cofferdam_tool::{Completion, ToolName};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::runtime::Handle;
use tokio::time::Instant;

use self::record::UnkeepableLedger;
use crate::memory::{Owner, SessionValues};

/// Time after which a suspended program starts from the beginning.
const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Maximum time to wait for the end of a run whose question was answered in a new call.
const END_WAIT_MAX: Duration = Duration::from_secs(2);
/// Interval in which a new call looks whether that run has ended.
const END_POLL: Duration = Duration::from_millis(2);
/// Maximum number of suspended programs.
const SUSPENDED_MAX: usize = 64;
/// Maximum bytes of all suspended programs, with their file changes in memory.
const SUSPENDED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum bytes of the file changes of a program that are held in memory.
const CHANGED_BYTES_MAX: u64 = 80 * 1024 * 1024;

/// Program that a ledger belongs to. Another program, caller, interpreter or set of tools has
/// another key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LedgerKey {
    pub(crate) owner: Owner,
    pub(crate) code: String,
    /// Digest of the interpreter.
    pub(crate) interpreter: String,
    /// Declarations of the tools, as JSON.
    pub(crate) tools: Arc<str>,
}

/// State of a program that is run again.
#[derive(Clone)]
pub(crate) struct Ledger {
    pub(crate) seed: u64,
    /// Milliseconds since 1970.
    pub(crate) now: u64,
    /// Stored values of the session when the program started.
    pub(crate) values: SessionValues,
    /// Completed calls by number.
    pub(crate) calls: HashMap<u64, CompletedCall>,
    /// File changes of the completed calls.
    pub(crate) files: Transaction,
    /// Budget of the file changes.
    pub(crate) budget: Budget,
}

impl Ledger {
    /// Returns the ledger of a program that has made no call, inside of the call with the
    /// transaction `outer`, if there is one.
    pub(crate) fn new(
        (seed, now): (u64, u64),
        values: SessionValues,
        outer: Option<&Transaction>,
    ) -> Self {
        let budget = Budget::new(CHANGED_BYTES_MAX);
        let files = Transaction::over(outer, budget.clone(), None);
        Self { seed, now, values, calls: HashMap::new(), files, budget }
    }
}

/// A call of a program that has ended.
#[derive(Debug, Clone)]
pub(crate) struct CompletedCall {
    pub(crate) tool: ToolName,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) completion: Completion,
}

/// A call of a program that waits for a user's decision.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingCall {
    pub(crate) number: u64,
    pub(crate) tool: ToolName,
    pub(crate) arguments: Map<String, Value>,
}

/// Suspended programs of a host.
#[derive(Default)]
pub(crate) struct SuspendedPrograms {
    programs: Mutex<VecDeque<WaitingProgram>>,
}

struct WaitingProgram {
    key: LedgerKey,
    /// Run of the program. While it goes on, the ledger is its own: its client may answer without a
    /// new request.
    run: Weak<()>,
    since: Instant,
    /// Bytes of the ledger.
    bytes: u64,
    ledger: Ledger,
}

impl WaitingProgram {
    fn is_running(&self) -> bool {
        self.run.strong_count() > 0
    }

    fn remains(&self) -> bool {
        self.is_running() || self.since.elapsed() < LIFETIME
    }
}

impl SuspendedPrograms {
    /// Keeps the ledger of a run that waits for an answer. If the run is dropped without one,
    /// another run of the same program can continue from it.
    ///
    /// # Errors
    /// [`UnkeepableLedger`] if the ledger is too large, or there is no space for it.
    pub(crate) fn keep(
        self: &Arc<Self>,
        key: LedgerKey,
        run: Weak<()>,
        ledger: Ledger,
    ) -> Result<(), UnkeepableLedger> {
        let bytes = record::bytes(&ledger)?.saturating_add(ledger.budget.bytes_taken());
        let mut programs = self.programs.lock();
        programs.retain(WaitingProgram::remains);
        while programs.len() >= SUSPENDED_MAX {
            let ended = programs.iter().position(|program| !program.is_running());
            programs.remove(ended.unwrap_or_default());
        }
        let others = programs.iter().map(|program| program.bytes);
        if others.fold(bytes, u64::saturating_add) > SUSPENDED_BYTES_MAX {
            return Err(UnkeepableLedger::NoSpace);
        }
        programs.push_back(WaitingProgram { key, run, since: Instant::now(), bytes, ledger });
        drop(programs);
        if let Ok(runtime) = Handle::try_current() {
            let programs = Arc::downgrade(self);
            runtime.spawn(async move {
                tokio::time::sleep(LIFETIME).await;
                if let Some(programs) = programs.upgrade() {
                    programs.programs.lock().retain(WaitingProgram::remains);
                }
            });
        }
        Ok(())
    }

    /// Removes the ledger of a run that no longer waits.
    pub(crate) fn forget(&self, run: &Weak<()>) {
        self.programs.lock().retain(|program| !program.run.ptr_eq(run));
    }

    /// Removes and returns the ledger of a program whose run was dropped while it waited.
    pub(crate) fn take(&self, key: &LedgerKey) -> Option<Ledger> {
        let mut programs = self.programs.lock();
        programs.retain(WaitingProgram::remains);
        let fits = |program: &WaitingProgram| program.key == *key && !program.is_running();
        let position = programs.iter().position(fits)?;
        programs.remove(position).map(|program| program.ledger)
    }

    /// Like [`take`](Self::take), for a client that has answered the question of a run. Its end may
    /// still be on the way: a gateway cancels the run at a worker with one message and sends the
    /// new call with another.
    pub(crate) async fn take_ended(&self, key: &LedgerKey) -> Option<Ledger> {
        let give_up = Instant::now() + END_WAIT_MAX;
        loop {
            let ledger = self.take(key);
            if ledger.is_some() || !self.is_running(key) || Instant::now() >= give_up {
                return ledger;
            }
            tokio::time::sleep(END_POLL).await;
        }
    }

    /// Returns whether a run of the program waits for an answer.
    fn is_running(&self, key: &LedgerKey) -> bool {
        self.programs.lock().iter().any(|program| program.key == *key && program.is_running())
    }
}

#[cfg(test)]
mod tests;
