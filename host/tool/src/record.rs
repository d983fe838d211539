//! What a call leaves behind on the host side.

use std::time::Duration;

use serde::Serialize;

use crate::{Outcome, PluginName, ToolName};

/// The record of one call (`RES-13`, `RES-14`). It states the true outcome and may hold guest output, engine
/// messages and call stacks: it is for the person who runs the host and never for a model.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// The id that the caller or the host gave to the call.
    pub call_id: String,
    /// The session that the call belongs to, if it belongs to one.
    pub session: Option<String>,
    /// The plugin that ran, if the tool is a plugin's.
    pub plugin: Option<PluginIdentity>,
    /// The tool that was called.
    pub tool: Option<ToolName>,
    /// `ok`, `failure`, `error` or `cancelled`.
    pub outcome: &'static str,
    /// The type name of an error.
    pub error_type: Option<String>,
    /// The engine's or the host's message about an error.
    pub detail: Option<String>,
    /// The guest's call stack at a trap.
    pub backtrace: Option<String>,
    /// Paths of arguments that the schema does not declare and that were not forwarded (`ARG-24`).
    pub dropped: Vec<String>,
    /// Capabilities that the guest asked for and did not get (`RES-10`).
    pub refused: Vec<Refusal>,
    /// How often the tool was tried.
    pub attempts: u32,
    /// Where the time went.
    pub phases: Phases,
    /// CPU time of the guest and of the host functions that ran on its thread.
    #[serde(serialize_with = "as_micros", rename = "cpu_us")]
    pub cpu: Duration,
    /// Instructions that the guest executed; known if they are limited (`Limits::fuel_max`).
    pub instructions: Option<u64>,
    /// The largest size that memories and tables of the call had together, in bytes.
    pub memory_peak_bytes: u64,
    /// By what a growth of memory was refused last, if one was; the guest may have lived with it (`RES-11`).
    pub memory_refused_by: Option<MemoryRefusal>,
    /// The end of the guest's standard output, control characters included.
    pub stdout_tail: String,
    /// The end of the guest's standard error.
    pub stderr_tail: String,
}

/// Which plugin ran: its configured name and the digest of its component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PluginIdentity {
    /// The name under which the plugin is configured.
    pub name: PluginName,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
}

/// A capability that was not granted when the guest asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The import that the guest used, for example `wasi:sockets/tcp`.
    pub capability: String,
    /// How often it did.
    pub times: u32,
}

/// What a growth of memory was refused by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryRefusal {
    /// The limit of the call.
    Limit,
    /// The budget of all calls of the process together, or the plugin's share of it.
    Process,
}

/// The duration of a call, split by what it was spent on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Phases {
    /// Reading and checking the arguments.
    #[serde(serialize_with = "as_micros", rename = "decode_us")]
    pub decode: Duration,
    /// Waiting for one of the host's places for concurrent calls.
    #[serde(serialize_with = "as_micros", rename = "wait_us")]
    pub wait: Duration,
    /// Creating the instance.
    #[serde(serialize_with = "as_micros", rename = "instantiate_us")]
    pub instantiate: Duration,
    /// Running the guest and the host functions that it calls.
    #[serde(serialize_with = "as_micros", rename = "run_us")]
    pub run: Duration,
}

// serde hands the field by reference.
fn as_micros<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

impl Phases {
    /// The whole duration.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.decode + self.wait + self.instantiate + self.run
    }
}

impl CallRecord {
    /// Adds what an earlier attempt of the same call took: times and instructions are summed, the larger peak of
    /// memory and every refusal are kept. What was printed stays that of the last attempt.
    pub(crate) fn add_earlier(&mut self, earlier: &Self) {
        self.attempts = self.attempts.saturating_add(earlier.attempts);
        self.phases.wait += earlier.phases.wait;
        self.phases.instantiate += earlier.phases.instantiate;
        self.phases.run += earlier.phases.run;
        self.cpu += earlier.cpu;
        self.memory_peak_bytes = self.memory_peak_bytes.max(earlier.memory_peak_bytes);
        let counted = self.instructions.into_iter().chain(earlier.instructions);
        self.instructions = counted.reduce(u64::saturating_add);
        for refusal in &earlier.refused {
            match self.refused.iter_mut().find(|mine| mine.capability == refusal.capability) {
                Some(mine) => mine.times = mine.times.saturating_add(refusal.times),
                None => self.refused.push(refusal.clone()),
            }
        }
    }

    /// Writes how the call ended into the record.
    pub fn set_outcome(&mut self, outcome: &Outcome) {
        self.outcome = outcome.word();
        let error = match outcome {
            Outcome::Error(error) => Some(error),
            _ => None,
        };
        self.error_type = error.map(|error| error.type_name().to_owned());
        self.detail = error.and_then(|error| error.detail.clone());
        self.backtrace = error.and_then(|error| error.backtrace.clone());
    }
}
