//! What a call leaves behind on the host side.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::label::Label;
use crate::{CallContext, Outcome, PluginName, ToolName};

/// Hosts that a record lists.
const HOSTS_MAX: usize = 64;
/// Inner calls that a record lists.
const INNER_MAX: usize = 32;

/// The record of one call (`RES-13`, `RES-14`). It states the true outcome and may hold guest
/// output, engine messages and call stacks: it is for the person who runs the host and never for a
/// model.
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
    /// The label of the result: what its source said of it, and what a label policy has made of
    /// that where one is on (`LBL-6`, `LBL-12`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// Paths of arguments that the schema does not declare and that were not forwarded (`ARG-24`).
    pub dropped: Vec<String>,
    /// Capabilities that the guest asked for and did not get (`RES-10`).
    pub refused: Vec<Refusal>,
    /// Files and directories that the call created, changed and deleted, once that was made for
    /// good; in a dry run, those that it would have.
    pub files: Vec<FileChange>,
    /// True if the call was a dry run, so that none of the changes was made.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
    /// Failures of the systems behind file stores, for the operator. A model is told less.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub store_failures: Vec<String>,
    /// How many more there were than `files` has room for.
    pub files_left_out: u64,
    /// Hosts that requests and connections of the call were let out to, in order of the first one;
    /// at most 64.
    pub hosts: Vec<HostContact>,
    /// Requests and connections to hosts beyond those.
    pub hosts_unlisted: u32,
    /// What the call sent in HTTP requests, heads and bodies together, in bytes.
    pub http_sent_bytes: u64,
    /// What came back.
    pub http_received_bytes: u64,
    /// Calls of other tools that this one has made, in their order; at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inner: Vec<CallRecord>,
    /// Inner calls beyond those.
    #[serde(skip_serializing_if = "is_zero")]
    pub inner_left_out: u64,
    /// Questions that the call has put to the one who made it.
    #[serde(skip_serializing_if = "is_none_asked")]
    pub questions: u32,
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
    /// By what a growth of memory was refused last, if one was; the guest may have lived with it
    /// (`RES-11`).
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
    pub digest: Arc<str>,
}

/// Most lines about files in one record.
pub const FILE_CHANGES_MAX: usize = 1000;

/// A file or a directory that a call has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileChange {
    /// The name of the mount.
    pub mount: String,
    /// The path in it, with `/` at the end for a directory. A directory that was moved is one
    /// deletion and one creation, without a line for everything in it.
    pub path: String,
    /// What happened to it.
    pub what: FileChangeKind,
    /// The length that a file has by now, in bytes.
    pub bytes: u64,
    /// What is different in it, as a unified diff, where the caller asked for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FileChangeKind {
    /// It was not there before.
    Created,
    /// It has another content.
    Changed,
    /// It is gone.
    Deleted,
}

/// A capability that was not granted when the guest asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The import that the guest used, for example `wasi:sockets/tcp`, or the permission that would
    /// grant what it wanted, for example `http:GET https://example.com/`.
    pub capability: String,
    /// How often it did.
    pub times: u32,
    /// What was missing, and what would grant it, where the capability alone does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Refusal {
    /// The first time that `capability` is refused.
    #[must_use]
    pub fn new(capability: impl Into<String>) -> Self {
        Self { capability: capability.into(), times: 1, reason: None }
    }
}

/// A host that was let out to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostContact {
    /// The name or address as the guest wrote it, in its one spelling.
    pub host: String,
    /// The port.
    pub port: u16,
    /// How many requests or connections went there, or were about to.
    pub requests: u32,
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
    /// Waiting for answers of the one who made the call.
    #[serde(
        serialize_with = "as_micros",
        rename = "asking_us",
        skip_serializing_if = "Duration::is_zero"
    )]
    pub asking: Duration,
}

// serde hands the field by reference.
fn as_micros<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

// serde hands the field by reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_none_asked(number: &u32) -> bool {
    *number == 0
}

impl Phases {
    /// The whole duration.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.decode + self.wait + self.instantiate + self.run + self.asking
    }
}

impl CallRecord {
    /// Adds what an earlier attempt of the same call took: times and instructions are summed, the
    /// larger peak of memory and every refusal are kept. What was printed stays that of the last
    /// attempt.
    pub(crate) fn add_earlier(&mut self, earlier: &Self) {
        self.attempts = self.attempts.saturating_add(earlier.attempts);
        self.phases.wait += earlier.phases.wait;
        self.phases.instantiate += earlier.phases.instantiate;
        self.phases.run += earlier.phases.run;
        self.phases.asking += earlier.phases.asking;
        self.questions = self.questions.saturating_add(earlier.questions);
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
        self.hosts_unlisted = self.hosts_unlisted.saturating_add(earlier.hosts_unlisted);
        for host in &earlier.hosts {
            self.add_host(host.clone());
        }
        self.http_sent_bytes = self.http_sent_bytes.saturating_add(earlier.http_sent_bytes);
        self.http_received_bytes =
            self.http_received_bytes.saturating_add(earlier.http_received_bytes);
    }

    /// Returns whether a call that has changed no files can be made again as if it had never been
    /// made: it sent nothing to a host, asked nobody anything, and made no calls but those of
    /// plugins of which the same is true.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        let has_asked = self.questions > 0;
        let has_sent = !self.hosts.is_empty() || self.hosts_unlisted > 0;
        // What a remote server or a function of the program has done is not known.
        let is_known = |inner: &Self| inner.plugin.is_some() && inner.is_repeatable();
        !has_asked && !has_sent && self.inner_left_out == 0 && self.inner.iter().all(is_known)
    }

    /// Notes that the call was let out to a host.
    pub fn add_host(&mut self, contact: HostContact) {
        let has_room = self.hosts.len() < HOSTS_MAX;
        let known = self
            .hosts
            .iter_mut()
            .find(|mine| mine.host == contact.host && mine.port == contact.port);
        match known {
            Some(mine) => mine.requests = mine.requests.saturating_add(contact.requests),
            None if has_room => self.hosts.push(contact),
            None => self.hosts_unlisted = self.hosts_unlisted.saturating_add(contact.requests),
        }
    }

    /// Notes a call that this one has made.
    pub fn add_inner(&mut self, record: CallRecord) {
        if self.inner.len() < INNER_MAX {
            self.inner.push(record);
        } else {
            self.inner_left_out = self.inner_left_out.saturating_add(1);
        }
    }

    /// Writes what became of files into the record, up to [`FILE_CHANGES_MAX`] of them.
    pub fn set_files(&mut self, mut changes: Vec<FileChange>) {
        let left_out = changes.len().saturating_sub(FILE_CHANGES_MAX);
        changes.truncate(FILE_CHANGES_MAX);
        self.files = changes;
        self.files_left_out = u64::try_from(left_out).unwrap_or(u64::MAX);
    }

    /// The record of a call's first attempt, with nothing in it yet but who has made the call.
    #[must_use]
    pub fn begun(context: &CallContext) -> Self {
        let (call_id, session) = (context.call_id.clone(), context.session.clone());
        Self { call_id, session, attempts: 1, ..Self::default() }
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
