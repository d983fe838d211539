//! A model that replays a script, whatever the requests: for demos, tests and first experiments.
//!
//! A script has one reply per line, as JSON. Blank lines are ignored, and unknown fields are
//! rejected:
//!
//! ```text
//! {"text":"I will count the words.","calls":[{"tool":"word_count","arguments":{"text":"a b"}}]}
//! {"text":"Two words.","usage":{"input":40,"output":3}}
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | `text` | text of the reply |
//! | `calls` | `tool`, `id`, and `arguments` (JSON, as written) or `arguments_text` (any string) |
//! | `usage` | tokens: `input`, `output`, `total` (default: sum), `cached_input`, `reasoning` |
//! | `delay_ms` | time before the reply begins |
//! | `pause_ms` | time before each piece of the reply, if it is streamed |
//! | `error` | error instead of a reply: `kind`, `message`, `retry_after_ms` |

mod file;
mod pieces;

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

pub use self::file::{SCRIPT_BYTES_MAX, ScriptError};
use crate::{
    ChatClient, ChatError, ChatErrorKind, ChatRequest, MessageContent, Reply, ReplyStream,
};

/// Start of the ids of calls, before a number.
const ID_PREFIX: &str = "call-";

/// A [`ChatClient`] that replays a script. Clones share the position in it.
#[derive(Debug, Clone)]
pub struct ScriptedClient {
    inner: Arc<ScriptState>,
}

/// One line of a script.
#[derive(Debug, Clone)]
pub struct ScriptedReply {
    /// Reply or error. Calls without an id get one.
    pub result: Result<Reply, ChatError>,
    /// Time before the reply begins.
    pub delay: Duration,
    /// Time before each piece of the reply, if it is streamed.
    pub pause: Duration,
}

/// Behavior of the model after the end of the script.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AfterScript {
    /// Fails with [`ChatErrorKind::ScriptEnded`].
    #[default]
    Fail,
    /// Returns empty replies.
    Silence,
}

#[derive(Debug)]
struct ScriptState {
    name: String,
    replies: Vec<ScriptedReply>,
    after: AfterScript,
    is_recording: bool,
    progress: Mutex<ScriptProgress>,
}

#[derive(Debug, Default)]
struct ScriptProgress {
    played: usize,
    requests: Vec<ChatRequest>,
}

impl ScriptedClient {
    /// Creates a model that returns these replies in order.
    pub fn new<R: Into<ScriptedReply>>(replies: impl IntoIterator<Item = R>) -> Self {
        Self::named("script", replies.into_iter().map(Into::into).collect())
    }

    /// Reads a script of at most [`SCRIPT_BYTES_MAX`] bytes. Messages refer to it by `name`.
    ///
    /// # Errors
    /// [`ScriptError`] if the script cannot be read, or for the first invalid line.
    pub fn read(name: &str, reader: impl Read) -> Result<Self, ScriptError> {
        Ok(Self::named(name, file::read(name, reader)?))
    }

    fn named(name: &str, replies: Vec<ScriptedReply>) -> Self {
        let (after, progress) = (AfterScript::default(), Mutex::default());
        let name = name.to_owned();
        Self {
            inner: Arc::new(ScriptState { name, replies, after, is_recording: false, progress }),
        }
    }

    /// Returns a client that starts the script over and has this behavior after its end.
    #[must_use]
    pub fn then(&self, after: AfterScript) -> Self {
        self.with(after, self.inner.is_recording)
    }

    /// Returns a client that starts the script over and stores requests for
    /// [`requests`](Self::requests).
    #[must_use]
    pub fn recording(&self) -> Self {
        self.with(self.inner.after, true)
    }

    fn with(&self, after: AfterScript, is_recording: bool) -> Self {
        let ScriptState { name, replies, .. } = &*self.inner;
        let (name, replies) = (name.clone(), replies.clone());
        let progress = Mutex::default();
        Self { inner: Arc::new(ScriptState { name, replies, after, is_recording, progress }) }
    }

    /// Returns the requests so far, if they are [stored](Self::recording).
    #[must_use]
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.inner.progress.lock().requests.clone()
    }

    /// Returns the number of replies that are left.
    #[must_use]
    pub fn replies_left(&self) -> usize {
        self.inner.replies.len().saturating_sub(self.inner.progress.lock().played)
    }

    /// Returns the next reply after its delay.
    async fn next(&self, request: ChatRequest) -> Result<(Reply, Duration), ChatError> {
        if request.cancellation.is_cancelled() {
            return Err(ChatError::cancelled());
        }
        let cancellation = request.cancellation.clone();
        let last_number = last_number(&request);
        let Some(scripted) = self.take(request) else { return self.over() };
        wait(scripted.delay, &cancellation).await?;
        let mut reply = scripted.result?;
        name_calls(&mut reply, last_number);
        Ok((reply, scripted.pause))
    }

    fn take(&self, request: ChatRequest) -> Option<ScriptedReply> {
        let mut progress = self.inner.progress.lock();
        if self.inner.is_recording {
            progress.requests.push(request);
        }
        let scripted = self.inner.replies.get(progress.played).cloned()?;
        progress.played += 1;
        Some(scripted)
    }

    fn over(&self) -> Result<(Reply, Duration), ChatError> {
        let ScriptState { name, replies, after, .. } = &*self.inner;
        match after {
            AfterScript::Silence => Ok((Reply::default(), Duration::ZERO)),
            AfterScript::Fail => Err(ChatError::new(
                ChatErrorKind::ScriptEnded,
                format!(
                    "the script {name} is over: all {} of its replies have been given",
                    replies.len()
                ),
            )),
        }
    }
}

#[async_trait]
impl ChatClient for ScriptedClient {
    fn model(&self) -> &str {
        &self.inner.name
    }

    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError> {
        self.next(request).await.map(|(reply, _)| reply)
    }

    /// Streams texts word by word and arguments in fragments, as a provider does.
    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        let cancellation = request.cancellation.clone();
        let (reply, pause) = self.next(request).await?;
        let pieces = futures_util::stream::iter(pieces::of(reply));
        Ok(ReplyStream::new(pieces.then(move |piece| {
            let cancellation = cancellation.clone();
            async move { wait(pause, &cancellation).await.map(|()| piece) }
        })))
    }
}

/// Waits, unless the caller cancels.
async fn wait(time: Duration, cancellation: &CancellationToken) -> Result<(), ChatError> {
    if time.is_zero() && !cancellation.is_cancelled() {
        return Ok(());
    }
    match cancellation.run_until_cancelled(tokio::time::sleep(time)).await {
        Some(()) => Ok(()),
        None => Err(ChatError::cancelled()),
    }
}

/// Returns the highest number of a call in the request, or the number of calls if it is higher. The
/// calls before a compaction have lower numbers than those that are left.
fn last_number(request: &ChatRequest) -> usize {
    let calls = request.messages.iter().flat_map(|message| message.calls());
    let number = |id: &str| id.strip_prefix(ID_PREFIX)?.parse::<usize>().ok();
    calls
        .enumerate()
        .fold(0, |last, (index, call)| last.max(index + 1).max(number(&call.call_id).unwrap_or(0)))
}

/// Assigns ids to calls without one: numbers that no call in the request has. The ids are the same
/// in every run of the script, and still unique within a conversation.
fn name_calls(reply: &mut Reply, last_number: usize) {
    let contents = reply.messages.iter_mut().flat_map(|message| &mut message.contents);
    let calls = contents.filter_map(|content| match content {
        MessageContent::FunctionCall(call) => Some(call),
        _ => None,
    });
    for (index, call) in calls.enumerate() {
        if call.call_id.is_empty() {
            call.call_id = format!("{ID_PREFIX}{}", last_number.saturating_add(index + 1));
        }
    }
}

impl From<Reply> for ScriptedReply {
    fn from(reply: Reply) -> Self {
        Self { result: Ok(reply), delay: Duration::ZERO, pause: Duration::ZERO }
    }
}

impl From<ChatError> for ScriptedReply {
    fn from(error: ChatError) -> Self {
        Self { result: Err(error), delay: Duration::ZERO, pause: Duration::ZERO }
    }
}

#[cfg(test)]
mod tests;
