//! File format of scripts.

use std::io::Read;
use std::time::Duration;

use cofferdam_tool::text::without_byte_order_mark;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::ScriptedReply;
use crate::{
    ChatError, ChatErrorKind, FinishReason, FunctionCall, Message, MessageContent, Reply, Role,
    TokenUsage,
};

/// Maximum size of a script in bytes. Scripts are written by users, so a larger file is probably
/// not a script.
pub const SCRIPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Error returned when reading a script.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The script cannot be read.
    #[error("the script {name}: {source}")]
    Unreadable {
        /// Name of the script.
        name: String,
        /// Cause; `InvalidData` for bytes that are not UTF-8.
        source: std::io::Error,
    },
    /// The script is too large.
    #[error("the script {name} has more than {SCRIPT_BYTES_MAX} bytes")]
    TooLarge {
        /// Name of the script.
        name: String,
    },
    /// A line is not a valid reply.
    #[error("{name}:{line}: not a reply of a scripted model: {source}")]
    Line {
        /// Name of the script.
        name: String,
        /// Line number, from 1.
        line: usize,
        /// Cause.
        source: serde_json::Error,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Line {
    text: Option<String>,
    calls: Vec<ScriptCall>,
    usage: Option<TokenUsage>,
    delay_ms: u64,
    pause_ms: u64,
    error: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptCall {
    tool: String,
    /// JSON, passed on as written.
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
    #[serde(default)]
    arguments_text: Option<String>,
    #[serde(default)]
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    kind: ChatErrorKind,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    retry_after_ms: Option<u64>,
}

pub(super) fn read(name: &str, reader: impl Read) -> Result<Vec<ScriptedReply>, ScriptError> {
    let mut text = String::new();
    let read = reader.take(SCRIPT_BYTES_MAX + 1).read_to_string(&mut text);
    let read = read.map_err(|source| ScriptError::Unreadable { name: name.to_owned(), source })?;
    if u64::try_from(read).unwrap_or(u64::MAX) > SCRIPT_BYTES_MAX {
        return Err(ScriptError::TooLarge { name: name.to_owned() });
    }
    let lines = without_byte_order_mark(&text)
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let replies = lines.map(|(index, line)| match line_of(line) {
        Ok(line) => Ok(line.into()),
        Err(source) => Err(ScriptError::Line { name: name.to_owned(), line: index + 1, source }),
    });
    replies.collect()
}

/// Parses a line. An array of the members' values is not a reply, although serde takes it.
fn line_of(line: &str) -> Result<Line, serde_json::Error> {
    if !line.trim_start().starts_with('{') {
        return Err(serde::de::Error::custom("expected a JSON object"));
    }
    serde_json::from_str(line)
}

impl From<Line> for ScriptedReply {
    fn from(line: Line) -> Self {
        let (delay, pause) =
            (Duration::from_millis(line.delay_ms), Duration::from_millis(line.pause_ms));
        let result = match line.error {
            Some(failure) => Err(failure.into()),
            None => Ok(reply(line)),
        };
        Self { result, delay, pause }
    }
}

fn reply(line: Line) -> Reply {
    let finish = if line.calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    let text = line.text.into_iter().map(MessageContent::text);
    let contents: Vec<_> = text.chain(line.calls.into_iter().map(MessageContent::from)).collect();
    let messages = if contents.is_empty() {
        Vec::new()
    } else {
        vec![Message::new(Role::Assistant, contents)]
    };
    let usage = line.usage.map(|mut usage| {
        if usage.total == 0 {
            usage.total = usage.input.saturating_add(usage.output);
        }
        usage
    });
    Reply { messages, usage, finish: Some(finish), ..Reply::default() }
}

impl From<ScriptCall> for MessageContent {
    fn from(call: ScriptCall) -> Self {
        let written = call.arguments.map(|raw| raw.get().to_owned());
        Self::FunctionCall(FunctionCall {
            call_id: call.id,
            name: call.tool,
            arguments: call.arguments_text.or(written).unwrap_or_default(),
            ..FunctionCall::default()
        })
    }
}

impl From<Failure> for ChatError {
    fn from(failure: Failure) -> Self {
        let message =
            failure.message.unwrap_or_else(|| "the script says that there is no reply".to_owned());
        Self {
            retry_after: failure.retry_after_ms.map(Duration::from_millis),
            ..Self::new(failure.kind, message)
        }
    }
}
