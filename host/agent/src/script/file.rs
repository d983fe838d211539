//! How a script is written.

use std::io::Read;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ScriptedReply;
use crate::{
    ChatError, ChatErrorKind, Content, FinishReason, FunctionCall, Message, Reply, Role, TokenUsage,
};

/// Largest script in bytes. Scripts are written by hand; one that is larger is some other file.
pub const SCRIPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Why a script is none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// It cannot be read.
    #[error("the script {name}: {source}")]
    Unreadable {
        /// The script.
        name: String,
        /// Why not; `InvalidData` for bytes that are not UTF-8.
        source: std::io::Error,
    },
    /// It is too large.
    #[error("the script {name} has more than {SCRIPT_BYTES_MAX} bytes")]
    TooLarge {
        /// The script.
        name: String,
    },
    /// A line is no reply.
    #[error("{name}:{line}: not a reply of a scripted model: {source}")]
    Line {
        /// The script.
        name: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Line {
    text: Option<String>,
    calls: Vec<Call>,
    usage: Option<TokenUsage>,
    delay_ms: u64,
    pause_ms: u64,
    error: Option<Failure>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    tool: String,
    /// Passed on as written.
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
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let replies = lines.map(|(index, line)| match serde_json::from_str::<Line>(line) {
        Ok(line) => Ok(line.into()),
        Err(source) => Err(ScriptError::Line { name: name.to_owned(), line: index + 1, source }),
    });
    replies.collect()
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
    let text = line.text.into_iter().map(Content::text);
    let contents: Vec<_> = text.chain(line.calls.into_iter().map(Content::from)).collect();
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

impl From<Call> for Content {
    fn from(call: Call) -> Self {
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
