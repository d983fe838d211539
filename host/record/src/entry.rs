//! Calls, as they stand in lines and are returned by queries.

use std::time::Duration;

use cofferdam_tool::record::{FileChange, HostContact, Refusal, ServerRequest};
use cofferdam_tool::trace::TraceContext;
use serde::{Deserialize, Serialize};

use crate::UtcTime;

/// Version of the format of lines.
pub(crate) const LINE_VERSION: u32 = 1;
/// Outcome of a call that has begun in a process that is gone.
pub const LOST: &str = "lost";
/// Outcome of a call that has begun in a process that is alive.
pub const RUNNING: &str = "running";
/// Outcome of a call that did not start.
pub const REFUSED: &str = "refused";

/// Kind of a line about a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CallLineKind {
    /// Start and outcome.
    #[default]
    Call,
    /// Start of a call that was running when its batch was written.
    Begin,
    /// Outcome of such a call, with everything that its `begin` line has.
    End,
    /// A call that did not start.
    Refused,
}

/// Digest and length of a payload. The digest is keyed with the log's key, so that only who has the
/// key can check a guess.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadDigest {
    /// BLAKE3 digest of the redacted payload: 64 hexadecimal digits.
    pub hash: String,
    /// Length of the redacted payload in bytes.
    pub bytes: u64,
    /// True if the payload was longer than the limit and is cut.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_cut: bool,
}

/// Ids of a span in a trace, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanIds {
    /// Id of the trace.
    pub trace: String,
    /// Id of the span.
    pub span: String,
    /// Id of the span that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
}

impl From<&TraceContext> for SpanIds {
    fn from(context: &TraceContext) -> Self {
        Self { trace: context.trace_id(), span: context.span_id(), parent: context.parent_id() }
    }
}

/// Everything that a log has of one call.
///
/// The order of the fields is that of a line: readers search for the first ones as bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEntry {
    pub(crate) v: u32,
    pub(crate) kind: CallLineKind,
    /// Name of the tool.
    pub tool: String,
    /// Configured name of the plugin, if the tool is a plugin's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// `ok`, `failure`, `error`, `cancelled`, `refused`, `lost` or `running`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
    /// Session that the call belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    pub(crate) n: u64,
    /// Time at which the call began.
    pub at: UtcTime,
    /// Id of the call in the log: eight digits of the process, a hyphen and a number.
    pub id: String,
    /// Id that the caller gave to the call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call: String,
    /// Id that the outer call's caller gave to it, if a tool made this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outer: Option<String>,
    /// Name of the source, unless it is the plugin's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Digest of the plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Position in a trace, if the caller took part in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<SpanIds>,
    /// Principal of the MCP request that made the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// Name and version that the MCP client states about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Revision of MCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Transport of the MCP request: `pipe` or `tcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Microseconds from start to end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub us: u64,
    /// Type of the error, or reason of the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Capabilities that the guest requested and was refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refusal>,
    /// Changes of files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileChange>,
    /// Number of changes beyond those.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub files_left_out: u64,
    /// True if the call was a dry run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_dry_run: bool,
    /// Hosts that the call contacted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostContact>,
    /// Bytes sent in HTTP requests.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub http_sent_bytes: u64,
    /// Bytes received in HTTP responses.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub http_received_bytes: u64,
    /// Request to the MCP server that has the tool, if one has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_request: Option<Box<ServerRequest>>,
    /// Number of calls that the call made of other tools.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inner_calls: u64,
    /// Number of attempts beyond the first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u64,
    /// Number of questions to the caller.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub questions: u64,
    /// Microseconds in the queue for a permit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wait_us: u64,
    /// Microseconds in the guest.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run_us: u64,
    /// Microseconds of CPU time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cpu_us: u64,
    /// Instructions of the guest, if they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Peak size of memory in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_peak_bytes: u64,
    /// Integrity and confidentiality of the result, if a label policy holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Decoded arguments as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<PayloadDigest>,
    /// Output or error value as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<PayloadDigest>,
    /// Tail of the standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<PayloadDigest>,
    /// Tail of the standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<PayloadDigest>,
    /// Message about the error, for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<PayloadDigest>,
    /// Call stack of the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backtrace: Option<PayloadDigest>,
    /// Diffs of the changed files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<PayloadDigest>,
    /// Recording with which the call can run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<PayloadDigest>,
}

/// Kind of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PayloadKind {
    /// Decoded arguments as JSON.
    Arguments,
    /// Output or error value as JSON.
    Result,
    /// Tail of the standard output.
    Stdout,
    /// Tail of the standard error.
    Stderr,
    /// Message about the error.
    Detail,
    /// Call stack of the guest.
    Backtrace,
    /// Diffs of the changed files.
    Diff,
}

impl PayloadKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Arguments,
        Self::Result,
        Self::Stdout,
        Self::Stderr,
        Self::Detail,
        Self::Backtrace,
        Self::Diff,
    ];
}

impl CallEntry {
    /// Returns the time from start to end.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_micros(self.us)
    }

    /// Returns digest and length of a payload, if the call has one.
    #[must_use]
    pub fn payload(&self, kind: PayloadKind) -> Option<&PayloadDigest> {
        match kind {
            PayloadKind::Arguments => self.arguments.as_ref(),
            PayloadKind::Result => self.result.as_ref(),
            PayloadKind::Stdout => self.stdout.as_ref(),
            PayloadKind::Stderr => self.stderr.as_ref(),
            PayloadKind::Detail => self.detail.as_ref(),
            PayloadKind::Backtrace => self.backtrace.as_ref(),
            PayloadKind::Diff => self.diff.as_ref(),
        }
    }

    /// Parses a line about a call. Returns `None` for other lines and torn ones.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}
