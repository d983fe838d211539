//! Calls that a program has made, so that it can run again without making them again.
//!
//! A question about an approval can outlive the run: a client that answers in a new request makes
//! the host run the program again. The second run gets the seed, the clock and the results of the
//! first one, and makes only the calls that are missing. An agent without a user who can be asked
//! keeps the ledger in its session, where [`record`] is its form.

pub(crate) mod record;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cofferdam_files::Transaction;
use cofferdam_tool::{Completion, ToolName};
use serde_json::{Map, Value};

use crate::memory::{Owner, SessionValues};

/// Time after which a suspended program starts from the beginning.
const LIFETIME: Duration = Duration::from_secs(15 * 60);
/// Maximum number of suspended programs.
const SUSPENDED_MAX: usize = 64;

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
    programs: Mutex<VecDeque<(LedgerKey, Instant, Ledger)>>,
}

impl SuspendedPrograms {
    /// Keeps the ledger of a program that waits for an answer.
    pub(crate) fn keep(&self, key: LedgerKey, ledger: Ledger) {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        programs.retain(|(other, at, _)| *other != key && at.elapsed() < LIFETIME);
        programs.push_back((key, Instant::now(), ledger));
        while programs.len() > SUSPENDED_MAX {
            programs.pop_front();
        }
    }

    /// Removes and returns the ledger of a program.
    pub(crate) fn take(&self, key: &LedgerKey) -> Option<Ledger> {
        let mut programs = self.programs.lock().unwrap_or_else(PoisonError::into_inner);
        programs.retain(|(_, at, _)| at.elapsed() < LIFETIME);
        let position = programs.iter().position(|(other, ..)| other == key)?;
        programs.remove(position).map(|(_, _, ledger)| ledger)
    }
}
