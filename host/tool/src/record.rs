//! Record of a call on the host.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::label::Label;
use crate::recording::CallRecording;
use crate::{CallContext, Outcome, PluginName, ToolName};

/// Maximum number of hosts that a record lists.
const HOSTS_MAX: usize = 64;
/// Maximum number of inner calls that a record lists.
const INNER_MAX: usize = 32;

/// Record of one call (`RES-13`, `RES-14`). It states the true outcome and may contain guest
/// output, engine messages and call stacks: it is for the operator and never for a model.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// Identifier that the caller or the host gave to the call.
    pub call_id: String,
    /// Number that the toolset's sink gave to the call ([`CallSink::begin`](crate::sink::CallSink::begin)).
    /// `None` if there is no sink, or if it does not keep the call.
    #[serde(skip)]
    pub number: Option<u64>,
    /// Session that the call belongs to, if any.
    pub session: Option<String>,
    /// Plugin that ran, if the tool is a plugin's.
    pub plugin: Option<PluginIdentity>,
    /// Tool that was called.
    pub tool: Option<ToolName>,
    /// `ok`, `failure`, `error` or `cancelled`.
    pub outcome: &'static str,
    /// Type name of the error, if the outcome is one.
    pub error_type: Option<String>,
    /// The engine's or the host's message about the error.
    pub detail: Option<String>,
    /// Call stack of the guest at a trap.
    pub backtrace: Option<String>,
    /// Label of the result: stated by its source, and adjusted by the label policy if there is one
    /// (`LBL-6`, `LBL-12`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<Label>,
    /// True if a policy refused the inner call, so that nothing ran ([`InnerCalls`](crate::invoke::InnerCalls)).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_denied: bool,
    /// Paths of undeclared arguments that were dropped (`ARG-24`).
    pub dropped: Vec<String>,
    /// Capabilities that the guest requested and was refused (`RES-10`).
    pub refused: Vec<Refusal>,
    /// Files and directories that the call created, changed and deleted, once the changes are
    /// permanent; in a dry run, those that it would have. A call that ended with an error has some
    /// only if one of its stores failed after others had changed.
    pub files: Vec<FileChange>,
    /// True if the call was a dry run, so that no change was made.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_dry_run: bool,
    /// Failures of the systems behind file stores, for the operator. A model sees less.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub store_failures: Vec<String>,
    /// Number of changes beyond those that `files` has room for.
    pub files_left_out: u64,
    /// Hosts that requests and connections of the call were admitted to, in order of first contact;
    /// at most 64.
    pub hosts: Vec<HostContact>,
    /// Number of requests and connections to further hosts.
    pub hosts_unlisted: u32,
    /// Bytes that the call sent in HTTP requests, heads and bodies together.
    pub http_sent_bytes: u64,
    /// Bytes that the call received in HTTP responses, heads and bodies together.
    pub http_received_bytes: u64,
    /// Request to the MCP server that has the tool, if one has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_request: Option<Box<ServerRequest>>,
    /// Calls of other tools that this call made, in order; at most 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inner: Vec<CallRecord>,
    /// Number of inner calls beyond those.
    #[serde(skip_serializing_if = "is_zero")]
    pub inner_left_out: u64,
    /// Number of questions that the call asked its caller.
    #[serde(skip_serializing_if = "is_zero_count")]
    pub questions: u32,
    /// Number of attempts.
    pub attempts: u32,
    /// Duration of each phase.
    pub phases: Phases,
    /// CPU time of the guest and of the host functions that ran on its thread.
    #[serde(serialize_with = "as_micros", rename = "cpu_us")]
    pub cpu: Duration,
    /// Instructions that the guest executed; known only if they are limited (`Limits::fuel_max`).
    pub instructions: Option<u64>,
    /// Peak size of the call's memories and tables together, in bytes.
    pub memory_peak_bytes: u64,
    /// Limit that last refused a growth of memory, if one did. The guest may have continued
    /// regardless (`RES-11`).
    pub memory_refused_by: Option<MemoryRefusal>,
    /// Tail of the guest's standard output, control characters included.
    pub stdout_tail: String,
    /// Tail of the guest's standard error.
    pub stderr_tail: String,
    /// Inputs of the guest, if the plugin's calls are recorded so that they can run again.
    #[serde(skip)]
    pub recording: Option<Arc<CallRecording>>,
}

/// Request to an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRequest {
    /// Method, such as `tools/call`.
    pub method: Cow<'static, str>,
    /// Revision of the protocol, if a connection was open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// `pipe` for standard input and output, `tcp` for HTTP.
    pub transport: Cow<'static, str>,
}

impl std::fmt::Display for ServerRequest {
    /// Formats the request for an operator, such as `tools/call (pipe, 2026-07-28)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}", self.method, self.transport)?;
        self.protocol.iter().try_for_each(|protocol| write!(f, ", {protocol}"))?;
        f.write_str(")")
    }
}

/// Identity of a plugin: its configured name and the digest of its component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PluginIdentity {
    /// Configured name of the plugin.
    pub name: PluginName,
    /// Digest: `sha256:` and 64 hexadecimal digits.
    pub digest: Arc<str>,
}

/// Maximum number of file changes in one record.
pub const FILE_CHANGES_MAX: usize = 1000;

/// A file or directory that a call has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Name of the mount.
    pub mount: String,
    /// Path in the mount, with a trailing `/` for a directory. A moved directory is one deletion
    /// and one creation, without entries for its content.
    pub path: String,
    /// Kind of the change.
    pub what: FileChangeKind,
    /// Length of the file after the change, in bytes.
    pub bytes: u64,
    /// Unified diff of the content, if the caller requested it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// Kind of a file change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum FileChangeKind {
    /// The file did not exist before.
    Created,
    /// The content is different.
    Changed,
    /// The file no longer exists.
    Deleted,
}

/// A capability that the guest requested without a grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// Import that the guest used, such as `wasi:sockets/tcp`, or permission that would grant the
    /// request, such as `http:GET https://example.com/`.
    pub capability: String,
    /// Number of requests.
    pub times: u32,
    /// Missing permission and the grant for it, if the capability does not already say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Refusal {
    /// Returns the first refusal of `capability`.
    #[must_use]
    pub fn new(capability: impl Into<String>) -> Self {
        Self { capability: capability.into(), times: 1, reason: None }
    }
}

/// A host that requests or connections were admitted to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostContact {
    /// Name or address as the guest wrote it, in normalized form.
    pub host: String,
    /// Port on the host.
    pub port: u16,
    /// Number of requests or connections sent there, including those about to be.
    pub requests: u32,
}

/// Limit that refused a growth of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryRefusal {
    /// Limit of the call.
    Limit,
    /// Memory budget of all calls of the process, or the plugin's share of it.
    Process,
}

/// Duration of a call, split into phases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Phases {
    /// Time to read and validate the arguments.
    #[serde(serialize_with = "as_micros", rename = "decode_us")]
    pub decode: Duration,
    /// Time in the queue for a permit of the host for concurrent calls.
    #[serde(serialize_with = "as_micros", rename = "wait_us")]
    pub wait: Duration,
    /// Time to create the instance.
    #[serde(serialize_with = "as_micros", rename = "instantiate_us")]
    pub instantiate: Duration,
    /// Time to run the guest and the host functions that it calls.
    #[serde(serialize_with = "as_micros", rename = "run_us")]
    pub run: Duration,
    /// Time to wait for answers of the caller.
    #[serde(
        serialize_with = "as_micros",
        rename = "asking_us",
        skip_serializing_if = "Duration::is_zero"
    )]
    pub asking: Duration,
}

// Serde passes the field by reference.
fn as_micros<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

// Serde passes the field by reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero_count(number: &u32) -> bool {
    *number == 0
}

impl Phases {
    /// Returns the total duration.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.decode + self.wait + self.instantiate + self.run + self.asking
    }
}

/// Records of inner calls that are collected while their outer call runs: as many as its record
/// keeps, and the number of the others.
#[derive(Debug, Default)]
pub struct InnerRecords {
    kept: Vec<CallRecord>,
    left_out: u64,
}

impl Extend<CallRecord> for InnerRecords {
    fn extend<R: IntoIterator<Item = CallRecord>>(&mut self, records: R) {
        for record in records {
            if self.kept.len() < INNER_MAX {
                self.kept.push(record);
            } else {
                self.left_out = self.left_out.saturating_add(1);
            }
        }
    }
}

impl CallRecord {
    /// Adds an earlier attempt of the same call: sums times and instructions, and keeps the larger
    /// memory peak and every refusal. Output remains that of the last attempt.
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
        for inner in &earlier.inner {
            self.add_inner(inner.clone());
        }
        self.inner_left_out = self.inner_left_out.saturating_add(earlier.inner_left_out);
        self.store_failures.extend(earlier.store_failures.iter().cloned());
        self.hosts_unlisted = self.hosts_unlisted.saturating_add(earlier.hosts_unlisted);
        for host in &earlier.hosts {
            self.add_host(host.clone());
        }
        self.http_sent_bytes = self.http_sent_bytes.saturating_add(earlier.http_sent_bytes);
        self.http_received_bytes =
            self.http_received_bytes.saturating_add(earlier.http_received_bytes);
    }

    /// Returns whether a call can be repeated as if it had never been made: it changed no files,
    /// sent nothing to a host, asked no questions, and made no calls except of plugins for which
    /// the same holds. Changes that those made to files belong to this call.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        !self.has_changed_files() && self.has_only_changed_files()
    }

    /// Returns whether the call has made permanent changes to files.
    #[must_use]
    pub fn has_changed_files(&self) -> bool {
        !self.is_dry_run && (!self.files.is_empty() || self.files_left_out > 0)
    }

    fn has_only_changed_files(&self) -> bool {
        let has_asked = self.questions > 0;
        let has_sent = !self.hosts.is_empty() || self.hosts_unlisted > 0;
        // The effects of a remote server or a function of the program are unknown.
        let is_known = |inner: &Self| inner.plugin.is_some() && inner.has_only_changed_files();
        !has_asked && !has_sent && self.inner_left_out == 0 && self.inner.iter().all(is_known)
    }

    /// Records that the call was admitted to a host.
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

    /// Records a call that this one made.
    pub fn add_inner(&mut self, record: CallRecord) {
        if self.inner.len() < INNER_MAX {
            self.inner.push(record);
        } else {
            self.inner_left_out = self.inner_left_out.saturating_add(1);
        }
    }

    /// Records the calls that this one made.
    pub fn add_all_inner(&mut self, inner: InnerRecords) {
        inner.kept.into_iter().for_each(|record| self.add_inner(record));
        self.inner_left_out = self.inner_left_out.saturating_add(inner.left_out);
    }

    /// Records file changes, at most [`FILE_CHANGES_MAX`] of them.
    pub fn set_files(&mut self, mut changes: Vec<FileChange>) {
        let left_out = changes.len().saturating_sub(FILE_CHANGES_MAX);
        changes.truncate(FILE_CHANGES_MAX);
        self.files = changes;
        self.files_left_out = u64::try_from(left_out).unwrap_or(u64::MAX);
    }

    /// Returns an otherwise empty record of the first attempt of a call.
    #[must_use]
    pub fn begun(context: &CallContext) -> Self {
        let (call_id, session) = (context.call_id.clone(), context.session.clone());
        Self { call_id, session, attempts: 1, ..Self::default() }
    }

    /// Records the outcome of the call.
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
