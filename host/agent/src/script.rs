//! A model that says what a script says, whatever it is asked: for demos, tests and a first look.
//!
//! A script has one reply per line, as JSON. Blank lines are passed over, and what is not known is
//! refused:
//!
//! ```text
//! {"text":"I will count the words.","calls":[{"tool":"word_count","arguments":{"text":"a b"}}]}
//! {"text":"Two words.","usage":{"input":40,"output":3}}
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | `text` | what the model says |
//! | `calls` | what it calls: `tool`, `arguments` (any JSON, passed on as written) or `arguments_text` (a text, for arguments that are no JSON), `id` |
//! | `usage` | tokens: `input`, `output`, `total` (their sum unless given), `cached_input`, `reasoning` |
//! | `delay_ms` | time before the reply begins |
//! | `pause_ms` | time before each piece of it, when it comes piece by piece |
//! | `error` | there is no reply: `kind`, `message`, `retry_after_ms` |

mod file;
mod pieces;

use std::io::Read;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

pub use self::file::{SCRIPT_BYTES_MAX, ScriptError};
use crate::{ChatClient, ChatError, ChatErrorKind, ChatRequest, Content, Reply, ReplyStream};

/// A [`ChatClient`] that plays a script. Clones share the place in it.
#[derive(Debug, Clone)]
pub struct ScriptedClient {
    inner: Arc<Inner>,
}

/// One line of a script.
#[derive(Debug, Clone)]
pub struct ScriptedReply {
    /// The reply, or why there is none. A call without an id gets one.
    pub result: Result<Reply, ChatError>,
    /// Time before it begins.
    pub delay: Duration,
    /// Time before each piece of it, when it comes piece by piece.
    pub pause: Duration,
}

/// What the model does when it has said everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AfterScript {
    /// It fails as [`ChatErrorKind::ScriptEnded`].
    #[default]
    Fail,
    /// It says nothing, as often as it is asked.
    Silence,
}

#[derive(Debug)]
struct Inner {
    name: String,
    replies: Vec<ScriptedReply>,
    after: AfterScript,
    is_recording: bool,
    progress: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    played: usize,
    requests: Vec<ChatRequest>,
}

impl ScriptedClient {
    /// A model that gives these replies, one after another.
    pub fn new<R: Into<ScriptedReply>>(replies: impl IntoIterator<Item = R>) -> Self {
        Self::named("script", replies.into_iter().map(Into::into).collect())
    }

    /// Reads a script of at most [`SCRIPT_BYTES_MAX`] bytes. `name` stands for it in messages.
    ///
    /// # Errors
    /// [`ScriptError`] if it cannot be read, or for the first line that is no reply.
    pub fn read(name: &str, reader: impl Read) -> Result<Self, ScriptError> {
        Ok(Self::named(name, file::read(name, reader)?))
    }

    fn named(name: &str, replies: Vec<ScriptedReply>) -> Self {
        let (after, progress) = (AfterScript::default(), Mutex::default());
        let name = name.to_owned();
        Self { inner: Arc::new(Inner { name, replies, after, is_recording: false, progress }) }
    }

    /// The same script from its beginning, with what comes after it.
    #[must_use]
    pub fn then(&self, after: AfterScript) -> Self {
        self.with(after, self.inner.is_recording)
    }

    /// The same script from its beginning, keeping the requests for [`requests`](Self::requests).
    #[must_use]
    pub fn recording(&self) -> Self {
        self.with(self.inner.after, true)
    }

    fn with(&self, after: AfterScript, is_recording: bool) -> Self {
        let Inner { name, replies, .. } = &*self.inner;
        let (name, replies) = (name.clone(), replies.clone());
        let progress = Mutex::default();
        Self { inner: Arc::new(Inner { name, replies, after, is_recording, progress }) }
    }

    /// The requests so far, if they are [kept](Self::recording).
    #[must_use]
    pub fn requests(&self) -> Vec<ChatRequest> {
        self.progress().requests.clone()
    }

    /// How many replies have not been given yet.
    #[must_use]
    pub fn replies_left(&self) -> usize {
        self.inner.replies.len().saturating_sub(self.progress().played)
    }

    /// The next line, once it is due.
    async fn next(&self, request: ChatRequest) -> Result<(Reply, Duration), ChatError> {
        if request.cancellation.is_cancelled() {
            return Err(ChatError::cancelled());
        }
        let cancellation = request.cancellation.clone();
        let calls_before = calls(&request);
        let Some(scripted) = self.take(request) else { return self.over() };
        wait(scripted.delay, &cancellation).await?;
        let mut reply = scripted.result?;
        name_calls(&mut reply, calls_before);
        Ok((reply, scripted.pause))
    }

    fn take(&self, request: ChatRequest) -> Option<ScriptedReply> {
        let mut progress = self.progress();
        if self.inner.is_recording {
            progress.requests.push(request);
        }
        let scripted = self.inner.replies.get(progress.played).cloned()?;
        progress.played += 1;
        Some(scripted)
    }

    fn over(&self) -> Result<(Reply, Duration), ChatError> {
        let Inner { name, replies, after, .. } = &*self.inner;
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

    fn progress(&self) -> MutexGuard<'_, Progress> {
        // A count and a list: what a panicking thread left is whole.
        self.inner.progress.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Texts come word by word and arguments in fragments, as they do from a provider.
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

/// Waits, unless the caller gives up.
async fn wait(time: Duration, cancellation: &CancellationToken) -> Result<(), ChatError> {
    if time.is_zero() && !cancellation.is_cancelled() {
        return Ok(());
    }
    match cancellation.run_until_cancelled(tokio::time::sleep(time)).await {
        Some(()) => Ok(()),
        None => Err(ChatError::cancelled()),
    }
}

fn calls(request: &ChatRequest) -> usize {
    request.messages.iter().map(|message| message.calls().count()).sum()
}

/// Gives ids to the calls that have none: numbers, that no call has which the model was sent. A
/// script is the same in every run, and calls of one conversation still have different ids.
fn name_calls(reply: &mut Reply, calls_before: usize) {
    let contents = reply.messages.iter_mut().flat_map(|message| &mut message.contents);
    let calls = contents.filter_map(|content| match content {
        Content::FunctionCall(call) => Some(call),
        _ => None,
    });
    for (index, call) in calls.enumerate() {
        if call.call_id.is_empty() {
            call.call_id = format!("call-{}", calls_before + index + 1);
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
