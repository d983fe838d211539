//! `cofferdam:plugin/client`: questions and log lines of a running tool for its caller.
//!
//! Each kind of question is a permission. Questions are counted and measured before the caller is
//! asked, and answers before they are copied into the guest; secrets that the guest was given are
//! redacted from its questions and log lines.
//!
//! The call keeps its permit and its memory while it waits, because its instance cannot be swapped
//! out. Its deadline is paused ([`crate::scheduler::deadline`]).

mod form;

use std::sync::Arc;

use cofferdam_tool::ask::{AskError, Asker, LogLevel, Question, QuestionKind};
use cofferdam_tool::{CallContext, Permission};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use super::CallState;
use crate::Capability;
use crate::guest::cofferdam::plugin::client::{self, Answer, Error, Host, Kind, Request};
use crate::recording::CallRecorder;
use crate::scheduler::deadline::PAUSE_MAX;

/// Maximum number of questions of one call. No user will answer more.
const QUESTIONS_MAX: usize = 64;
/// Maximum length of the name of a question, in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Maximum length of one question, in bytes. A form for a user has a few hundred.
const QUESTION_BYTES_MAX: usize = 64 * 1024;
/// Maximum total length of the answers to one `ask`, in bytes: a long message of a model, or a
/// small image.
const ANSWERS_BYTES_MAX: usize = 1024 * 1024;
/// Maximum number of lines that one call may log for its client.
const LOG_LINES_MAX: u32 = 1000;
/// Maximum length of one such line, in bytes. Longer lines are left out.
const LOG_LINE_BYTES_MAX: usize = 8 * 1024;
/// Maximum total length of these lines, in bytes.
const LOG_BYTES_MAX: usize = 256 * 1024;
/// Maximum length of a client's description of a failure that is forwarded, in characters.
const FAILURE_CHARS_MAX: usize = 1024;

/// Asker of a call, and the questions and log lines that the call has used up.
pub(crate) struct CallerClient {
    /// Asker, with the runtime of the embedder that it belongs to.
    asker: Option<(Arc<dyn Asker>, Handle)>,
    /// Names of the questions that were asked.
    asked: Vec<String>,
    lines: u32,
    line_bytes: usize,
}

impl CallerClient {
    /// Creates the client of a call. An inner call, which another tool has made, has none.
    pub(crate) fn new(context: &CallContext, recorder: Option<&Arc<CallRecorder>>) -> Self {
        let asker = context.asker.as_ref().filter(|_| context.outer.is_none()).cloned();
        let asker = match recorder {
            Some(recorder) => Some(recorder.asker(asker)),
            None => asker,
        };
        let asker = asker.and_then(|asker| Some((asker, Handle::try_current().ok()?)));
        Self { asker, asked: Vec::new(), lines: 0, line_bytes: 0 }
    }

    /// Returns the number of questions that were asked.
    pub(crate) fn question_count(&self) -> u32 {
        u32::try_from(self.asked.len()).unwrap_or(u32::MAX)
    }

    /// Returns the name of the question after `before`: the guest's choice in `wish`, or a numbered
    /// one.
    fn name(&self, before: &[Question], wish: Option<String>) -> Result<String, Error> {
        let number = self.asked.len() + before.len() + 1;
        let name = wish.unwrap_or_else(|| format!("question-{number}"));
        let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !is_name {
            let form = "a question is called by 1 to 64 characters out of A-Z a-z 0-9 _ -";
            return Err(Error::Invalid(form.to_owned()));
        }
        if self.asked.contains(&name) || before.iter().any(|other| other.name == name) {
            return Err(Error::Invalid(format!("two questions of this call are called `{name}`")));
        }
        Ok(name)
    }

    /// Checks that the call may ask `more` questions.
    fn check_number(&self, more: usize) -> Result<(), Error> {
        if self.asked.len().saturating_add(more) <= QUESTIONS_MAX {
            return Ok(());
        }
        Err(Error::Limit(format!("a call may ask {QUESTIONS_MAX} questions")))
    }

    /// Returns true if one more line may be logged, and counts it in that case.
    fn has_room_for(&mut self, line: &str) -> bool {
        let bytes = self.line_bytes.saturating_add(line.len());
        let fits = line.len() <= LOG_LINE_BYTES_MAX
            && bytes <= LOG_BYTES_MAX
            && self.lines < LOG_LINES_MAX;
        if fits {
            self.line_bytes = bytes;
            self.lines += 1;
        }
        fits
    }
}

impl Host for CallState {
    async fn can_ask(&mut self, kind: Kind) -> bool {
        let kind = QuestionKind::from(kind);
        let asker = self.client.asker.as_ref();
        self.grants().ask.contains(&kind) && asker.is_some_and(|(asker, _)| asker.can_ask(kind))
    }

    async fn ask(&mut self, questions: Vec<client::Question>) -> Result<Vec<Answer>, Error> {
        let questions = self.checked(questions)?;
        if questions.is_empty() {
            return Ok(Vec::new());
        }
        let Some((asker, runtime)) = self.client.asker.clone() else {
            return Err(Error::Unsupported);
        };
        self.client.asked.extend(questions.iter().map(|question| question.name.clone()));
        let kinds: Vec<_> = questions.iter().map(|question| question.kind).collect();
        let asking =
            AbortOnDropHandle::new(runtime.spawn(async move { asker.ask(questions).await }));
        let Some(asked) = self.deadline().pause_for(asking).await else {
            let seconds = PAUSE_MAX.as_secs();
            return Err(Error::Limit(format!(
                "no answer; a call waits {seconds} seconds for answers in all"
            )));
        };
        let answers = asked.map_err(|_| Error::Failed("the client has gone".to_owned()))?;
        form::answers(&kinds, answers.map_err(to_guest_error)?)
    }

    async fn log(&mut self, level: client::LogLevel, message: String) {
        let Some(sink) = self.context().log.clone() else { return };
        if self.client.has_room_for(&message) {
            sink.log(&self.context().call_id, level.into(), &self.redactor().text(&message));
        }
    }
}

impl CallState {
    /// Converts the questions for the asker, after checking that they are granted, well-formed and
    /// within limits, and removes secrets from them.
    fn checked(&mut self, questions: Vec<client::Question>) -> Result<Vec<Question>, Error> {
        self.client.check_number(questions.len())?;
        let mut checked = Vec::with_capacity(questions.len());
        for client::Question { name, request } in questions {
            let kind = QuestionKind::from(&request);
            if !self.grants().ask.contains(&kind) {
                return Err(self.deny(kind));
            }
            let name = self.client.name(&checked, name)?;
            let parameters = form::parameters(request)?;
            let Value::Object(parameters) = self.redactor().value(Value::Object(parameters)) else {
                return Err(Error::Unsupported);
            };
            checked.push(Question { name, kind, parameters });
        }
        Ok(checked)
    }

    fn deny(&mut self, kind: QuestionKind) -> Error {
        let permission = Permission::Ask(kind).to_string();
        self.refuse(Capability::Client, &permission);
        let plugin = self.plugin();
        Error::Denied(format!(
            "the plugin `{plugin}` has no grant `{permission}`; the person who runs the host can add it: \
             cofferdam grant {plugin} {permission}"
        ))
    }
}

fn to_guest_error(error: AskError) -> Error {
    match error {
        AskError::Unsupported(_) => Error::Unsupported,
        other => Error::Failed(other.to_string().chars().take(FAILURE_CHARS_MAX).collect()),
    }
}

impl From<Kind> for QuestionKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Form => Self::Elicitation,
            Kind::Sample => Self::Sampling,
            Kind::Roots => Self::Roots,
        }
    }
}

impl From<&Request> for QuestionKind {
    fn from(request: &Request) -> Self {
        match request {
            Request::Form(_) => Self::Elicitation,
            Request::Sample(_) => Self::Sampling,
            Request::Roots => Self::Roots,
        }
    }
}

impl From<client::LogLevel> for LogLevel {
    fn from(level: client::LogLevel) -> Self {
        match level {
            client::LogLevel::Debug => Self::Debug,
            client::LogLevel::Info => Self::Info,
            client::LogLevel::Notice => Self::Notice,
            client::LogLevel::Warning => Self::Warning,
            client::LogLevel::Error => Self::Error,
            client::LogLevel::Critical => Self::Critical,
            client::LogLevel::Alert => Self::Alert,
            client::LogLevel::Emergency => Self::Emergency,
        }
    }
}
