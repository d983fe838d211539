//! Messages of gateways and workers. Arguments, results and catalogs are bodies of frames.
//!
//! Unknown types and fields are rejected. A message names no grant, secret or path, and a worker
//! believes none of its strings: they are names for records.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::ask::{Asker, LogLevel, QuestionKind};
use cofferdam_tool::invoke::{FileEffects, McpRequest, Progress};
use cofferdam_tool::permission::RequestedLimits;
use cofferdam_tool::trace::TraceContext;
use cofferdam_tool::{CallContext, ToolName};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::inner::{self, InnerCallsHeader};
use crate::question::{self, QUESTIONS_MAX};

/// Longest string of a caller that a message carries, in characters.
const STRING_CHARS_MAX: usize = 256;
/// Longest message of a progress report or log line, in characters.
const REPORT_CHARS_MAX: usize = 2000;
/// Time for a call without a deadline. Limits of the worker end it sooner.
const REMAINING_MAX: Duration = Duration::from_hours(24);

/// Message of a gateway to a worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum GatewayMessage {
    /// Asks for an offer to run a call. The body has the arguments. A call with `remaining_ms` of a
    /// read-only tool may run more than once: the worker runs it without a confirmation.
    Call {
        call: Box<CallHeader>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remaining_ms: Option<u64>,
    },
    /// Confirms an offer: the worker runs the call.
    Start { offer: u64, remaining_ms: u64 },
    /// Asks about an offer. One that was not confirmed is withdrawn.
    Ask { offer: u64 },
    /// Takes a running call over: from now on, its worker sends everything to the inbox of this
    /// message, and runs the call even if no gateway listens. Of several gateways, the one with the
    /// highest revision has the call.
    Attach { offer: u64, revision: u64 },
    /// Stops a call.
    Cancel { offer: u64 },
    /// Declares that the gateway of this inbox does not wait for a call whose heartbeat it
    /// received. The worker stops the call if it belongs to this gateway and no other one can take
    /// it over.
    Abandoned { offer: u64 },
    /// Answers a question of a running call. The body has the answer.
    Answer { offer: u64, question: u32 },
    /// Acknowledges a result, which the worker may forget.
    Received { offer: u64 },
    /// Asks a worker for its routes.
    List {},
    /// Asks for the source of the route that the message is sent to.
    Describe {},
}

/// Message of a worker to a gateway.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum WorkerMessage {
    /// Offers to run the call.
    Accepted {
        offer: u64,
        worker: String,
    },
    /// Declines the call: all permits are taken, or the worker is about to end.
    Busy {},
    /// Declares that the call runs.
    Alive {
        offer: u64,
    },
    Progress {
        offer: u64,
        done: f64,
        total: Option<f64>,
        message: Option<String>,
    },
    Log {
        offer: u64,
        level: u8,
        message: String,
    },
    /// Question of the call to the client of the gateway, or a question about a call that it makes
    /// of another tool. The body has it. It is sent again until the gateway has answered.
    Question {
        offer: u64,
        question: u32,
    },
    /// One part of a result. The body has the bytes.
    Result {
        offer: u64,
        part: u32,
        parts: u32,
        bytes: u64,
    },
    /// Declares that the offer was withdrawn and its call will never run.
    NotStarted {
        offer: u64,
    },
    /// Declares that the worker does not remember the offer.
    Unknown {
        offer: u64,
    },
    /// Declares that another gateway has taken the call over.
    Moved {
        offer: u64,
    },
    /// Routes of a worker. The body has a list of strings.
    Routes {},
    /// A source of tools. The body has its entry in the catalog.
    Source {},
    /// Declares that gateways should look for tools, because the worker has come, has changed or is
    /// about to end.
    Changed {},
}

/// Call without its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallHeader {
    pub(crate) tool: ToolName,
    /// Identifier for records, which the client or model has chosen.
    pub(crate) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) caller: Option<CallerHeader>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) trace: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limits: Option<RequestedLimits>,
    /// Kinds of questions that the client of the gateway answers; none if it cannot be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asks: Option<Vec<String>>,
    /// Names of the questions of earlier runs of the call, if a question ends the call and the
    /// client makes it run again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked: Option<Vec<String>>,
    /// Demand that the gateway decides about calls that the call makes of other tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inner_calls: Option<InnerCallsHeader>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dry_run: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) diffs: bool,
}

/// Caller of a call, for records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CallerHeader {
    principal: String,
    client: Option<String>,
    protocol: Option<String>,
    is_http: bool,
}

impl CallHeader {
    pub(crate) fn new(tool: ToolName, context: &CallContext) -> Self {
        let caller = context.request.as_ref().map(|request| CallerHeader {
            principal: short(&request.principal, STRING_CHARS_MAX),
            client: request.client.as_ref().map(|client| short(client, STRING_CHARS_MAX)),
            protocol: request.protocol_version.as_ref().map(|it| short(it, STRING_CHARS_MAX)),
            is_http: request.transport == "tcp",
        });
        Self {
            tool,
            id: short(&context.call_id, STRING_CHARS_MAX),
            session: context.session.as_ref().map(|session| short(session, STRING_CHARS_MAX)),
            caller,
            trace: context.trace.as_ref().map(ToString::to_string),
            key: context.idempotency_key.as_ref().map(|key| short(key, STRING_CHARS_MAX)),
            limits: context.limits.as_deref().cloned(),
            asks: context.asker.as_ref().map(|asker| question::words(|kind| asker.can_ask(kind))),
            asked: context.asker.as_ref().and_then(|asker| earlier_questions(&**asker)),
            inner_calls: context
                .inner_calls
                .as_ref()
                .map(|calls| InnerCallsHeader { label: calls.label().map(inner::carried) }),
            dry_run: context.file_effects.is_dry_run,
            diffs: context.file_effects.shows_diffs,
        }
    }

    /// Returns the kinds of questions that can be asked; `None` if the client cannot be asked.
    pub(crate) fn questions(&self) -> Option<Vec<QuestionKind>> {
        let asks = self.asks.as_ref()?;
        Some(asks.iter().filter_map(|kind| kind.parse().ok()).collect())
    }

    /// Returns the context in which a worker runs the call.
    pub(crate) fn context(&self, remaining: Duration) -> CallContext {
        let request = self.caller.as_ref().map(|caller| {
            Arc::new(McpRequest {
                principal: short(&caller.principal, STRING_CHARS_MAX),
                client: caller.client.as_ref().map(|it| short(it, STRING_CHARS_MAX)),
                protocol_version: caller.protocol.as_ref().map(|it| short(it, STRING_CHARS_MAX)),
                transport: if caller.is_http { "tcp" } else { "pipe" },
            })
        });
        CallContext {
            session: self.session.as_ref().map(|session| short(session, STRING_CHARS_MAX)),
            deadline: Instant::now().checked_add(remaining.min(REMAINING_MAX)),
            limits: self.limits.clone().map(Arc::new),
            file_effects: FileEffects { is_dry_run: self.dry_run, shows_diffs: self.diffs },
            trace: self.trace.as_ref().and_then(|trace| trace.parse::<TraceContext>().ok()),
            request,
            idempotency_key: self.key.as_ref().map(|key| short(key, STRING_CHARS_MAX)),
            ..CallContext::new(short(&self.id, STRING_CHARS_MAX))
        }
    }
}

impl WorkerMessage {
    pub(crate) fn progress(offer: u64, progress: Progress) -> Self {
        let message = progress.message.map(|message| short(&message, REPORT_CHARS_MAX));
        // JSON has no infinity.
        let done = if progress.done.is_finite() { progress.done } else { 0.0 };
        let total = progress.total.filter(|total| total.is_finite());
        Self::Progress { offer, done, total, message }
    }

    pub(crate) fn log(offer: u64, level: LogLevel, message: &str) -> Self {
        let level = LEVELS.iter().position(|it| *it == level).unwrap_or_default();
        let level = u8::try_from(level).unwrap_or_default();
        Self::Log { offer, level, message: short(message, REPORT_CHARS_MAX) }
    }

    /// Returns the offer that the message is about.
    pub(crate) fn offer(&self) -> Option<u64> {
        match self {
            Self::Accepted { offer, .. }
            | Self::Alive { offer }
            | Self::Progress { offer, .. }
            | Self::Log { offer, .. }
            | Self::Question { offer, .. }
            | Self::Result { offer, .. }
            | Self::NotStarted { offer }
            | Self::Unknown { offer }
            | Self::Moved { offer } => Some(*offer),
            Self::Busy {} | Self::Routes {} | Self::Source {} | Self::Changed {} => None,
        }
    }
}

const LEVELS: [LogLevel; 8] = [
    LogLevel::Debug,
    LogLevel::Info,
    LogLevel::Notice,
    LogLevel::Warning,
    LogLevel::Error,
    LogLevel::Critical,
    LogLevel::Alert,
    LogLevel::Emergency,
];

/// Returns the level of a log message.
pub(crate) fn log_level(level: u8) -> LogLevel {
    LEVELS.get(usize::from(level)).copied().unwrap_or(LogLevel::Info)
}

/// Returns the remaining time of a call in milliseconds.
pub(crate) fn remaining_ms(deadline: Option<Instant>) -> u64 {
    let remaining = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    u64::try_from(remaining.unwrap_or(REMAINING_MAX).as_millis()).unwrap_or(u64::MAX)
}

/// Returns names of earlier questions, of which a call has as many as it may ask.
fn earlier_questions(asker: &dyn Asker) -> Option<Vec<String>> {
    let names = asker.earlier_questions()?.into_iter().take(QUESTIONS_MAX);
    Some(names.map(|name| short(&name, STRING_CHARS_MAX)).collect())
}

fn short(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).collect()
}
