//! Prompts of running calls: their events for pages, and the answers of pages.
//!
//! An event has all prompts that wait, and those that ended lately, but neither arguments nor
//! messages. A page therefore needs no earlier event.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_record::UtcTime;
use cofferdam_tool::prompt::{
    PendingPrompts, PromptAnswer, PromptKind, UncountedAnswer, WaitingPrompt,
};
use cofferdam_tool::{DecodeOptions, InputSchema};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::live::{COMMENT_INTERVAL, EventBody};
use crate::text::{PAYLOAD_BYTES_MAX, plain, plain_line};

/// Maximum number of browsers that receive events about prompts.
const STREAMS_MAX: usize = 16;
/// Shortest time between two events.
const EVENT_INTERVAL: Duration = Duration::from_millis(100);
/// Maximum number of problems that an answer lists.
const PROBLEMS_MAX: usize = 100;

/// Prompts of a running host, and the streams of events about them.
pub(crate) struct PromptFeed {
    pub(crate) prompts: PendingPrompts,
    streams: Arc<Semaphore>,
}

/// Answer of a page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PageAnswer {
    id: String,
    action: PageAction,
    /// Reason for a denial.
    #[serde(default)]
    reason: String,
    /// Values of a form as JSON.
    #[serde(default)]
    content: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum PageAction {
    Approve,
    Deny,
    Send,
    Decline,
    Cancel,
}

/// Effect of an answer, as plain text with hostile characters as escapes.
#[derive(Default, Serialize)]
pub(crate) struct AnswerEffect {
    message: String,
    problems: Vec<FormProblem>,
}

/// Problem with a value of a form.
#[derive(Serialize)]
struct FormProblem {
    path: String,
    message: String,
}

/// A prompt as the cells of a row.
#[derive(Serialize)]
pub(crate) struct PromptRow {
    pub(crate) id: String,
    /// Start of the wait as RFC 3339.
    pub(crate) at: String,
    pub(crate) kind: &'static str,
    pub(crate) tool: String,
    pub(crate) source: String,
    pub(crate) caller: String,
}

impl PromptFeed {
    pub(crate) fn new(prompts: PendingPrompts) -> Self {
        Self { prompts, streams: Arc::new(Semaphore::new(STREAMS_MAX)) }
    }

    /// Starts the events of a browser. Returns `None` if there are too many streams.
    pub(crate) fn stream(&self) -> Option<EventBody> {
        let permit = Arc::clone(&self.streams).try_acquire_owned().ok()?;
        let (events, body) = EventBody::channel();
        tokio::spawn(send_events(self.prompts.clone(), events, permit));
        Some(body)
    }

    /// Applies the answer of a page.
    pub(crate) fn answer(&self, answer: PageAnswer) -> (StatusCode, AnswerEffect) {
        let PageAnswer { id, action, reason, content } = answer;
        let answer = match action {
            PageAction::Approve => PromptAnswer::Approved,
            PageAction::Deny => PromptAnswer::Denied(Some(reason)),
            PageAction::Decline => PromptAnswer::Declined,
            PageAction::Cancel => PromptAnswer::Cancelled,
            PageAction::Send => match self.filled(&id, &content) {
                Ok(answer) => answer,
                Err(problems) => {
                    let message = "The values do not fit the form.".to_owned();
                    return (StatusCode::UNPROCESSABLE_ENTITY, AnswerEffect { message, problems });
                }
            },
        };
        let word = answer.word();
        let (status, message) = match self.prompts.answer(&id, answer) {
            Ok(()) => (StatusCode::OK, format!("You {word} it.")),
            Err(uncounted) => (status_of(uncounted), format!("Not counted: {uncounted}.")),
        };
        (status, AnswerEffect { message, problems: Vec::new() })
    }

    /// Decodes the values of a form. A prompt that does not wait gets an answer without values,
    /// which is refused.
    fn filled(&self, id: &str, content: &str) -> Result<PromptAnswer, Vec<FormProblem>> {
        let waiting = self.prompts.waiting().into_iter().find(|waiting| waiting.id == id);
        let schema = match waiting.as_ref().map(|waiting| &waiting.prompt.kind) {
            Some(PromptKind::Form(schema)) => schema.to_string(),
            _ => return Ok(PromptAnswer::Filled(json!({}))),
        };
        let problem = |path: &str, message: &str| FormProblem {
            path: path.to_owned(),
            message: plain(message, PAYLOAD_BYTES_MAX),
        };
        let compiled = InputSchema::compile("form", &schema)
            .map_err(|error| vec![problem("", &format!("the form cannot be used: {error}"))])?;
        let decoded = compiled.decode("form", Some(content.as_bytes()), &DecodeOptions::default());
        match decoded {
            Ok(values) => Ok(PromptAnswer::Filled(values.into_value())),
            Err(invalid) => {
                let problems = invalid.problems().iter().take(PROBLEMS_MAX);
                Err(problems.map(|found| problem(&found.path, &found.message)).collect())
            }
        }
    }
}

impl PromptRow {
    pub(crate) fn new(waiting: &WaitingPrompt) -> Self {
        let prompt = &waiting.prompt;
        Self {
            id: waiting.id.clone(),
            at: UtcTime::from(waiting.since).to_string(),
            kind: match prompt.kind {
                PromptKind::Approval => "approval",
                PromptKind::Form(_) => "question",
            },
            tool: plain_line(&prompt.tool),
            source: plain_line(&prompt.source),
            caller: plain_line(&prompt.caller),
        }
    }
}

fn status_of(uncounted: UncountedAnswer) -> StatusCode {
    match uncounted {
        UncountedAnswer::NotAllowed => StatusCode::FORBIDDEN,
        UncountedAnswer::Unknown => StatusCode::NOT_FOUND,
        UncountedAnswer::Ended(_) => StatusCode::CONFLICT,
        _ => StatusCode::BAD_REQUEST,
    }
}

async fn send_events(
    prompts: PendingPrompts,
    events: mpsc::Sender<Bytes>,
    permit: OwnedSemaphorePermit,
) {
    let mut changes = prompts.changes();
    let mut comments = tokio::time::interval(COMMENT_INTERVAL);
    let mut next = event(&prompts);
    loop {
        if events.send(next).await.is_err() {
            break;
        }
        tokio::time::sleep(EVENT_INTERVAL).await;
        next = tokio::select! {
            () = events.closed() => break,
            _ = comments.tick() => Bytes::from_static(b": open\n\n"),
            changed = changes.changed() => match changed {
                Ok(()) => event(&prompts),
                Err(_) => break,
            },
        };
    }
    drop(permit);
}

fn event(prompts: &PendingPrompts) -> Bytes {
    let waiting: Vec<_> = prompts.waiting().iter().map(|one| PromptRow::new(one)).collect();
    let ended: Vec<_> =
        prompts.ended().iter().map(|ended| json!({"id": ended.id, "end": ended.end})).collect();
    let data = json!({ "waiting": waiting, "ended": ended });
    Bytes::from(format!("event: prompts\ndata: {data}\n\n"))
}
