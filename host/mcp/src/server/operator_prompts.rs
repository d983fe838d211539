//! Prompts about one call at the operator, who may answer before the client does.
//!
//! A client of the stateless revision receives questions as a result, and comes back with answers.
//! Until then the prompt is *detached*: it belongs to no running call, and its id is part of the
//! sealed state of the client.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use cofferdam_tool::Annotations;
use cofferdam_tool::ask::{Question, QuestionKind};
use cofferdam_tool::prompt::{
    ANSWER_TIME_MAX, OpenPrompt, OperatorPrompt, PendingPrompts, PromptAnswer, PromptKind,
    PromptText,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use super::caller::Caller;
use super::elicitation::{APPROVAL, HOST_PREFIX};

/// Maximum number of detached prompts. A further one replaces the oldest, so that a client that
/// never comes back leaves room for the prompts of running calls.
const DETACHED_MAX: usize = 32;
/// End of a prompt that the client answered first.
pub(super) const BY_CLIENT: &str = "answered by the client";
/// End of a prompt whose call asks again.
const ASKED_AGAIN: &str = "withdrawn, because the call asks again";
/// End of a detached prompt that made room, or is too old.
const DROPPED: &str = "withdrawn, because its client did not come back";

/// Facts about a call for its prompts.
pub(super) struct PromptSubject {
    pub(super) tool: String,
    pub(super) source: String,
    pub(super) arguments: PromptText,
    /// Reason why the call needs approval.
    pub(super) reason: &'static str,
    pub(super) annotations: Annotations,
}

/// Prompts of one call.
pub(super) struct CallPrompts {
    pending: PendingPrompts,
    detached: Arc<DetachedPrompts>,
    template: OperatorPrompt,
}

/// Prompts whose client has to come back.
#[derive(Default)]
pub(super) struct DetachedPrompts(Mutex<VecDeque<DetachedPrompt>>);

struct DetachedPrompt {
    open: OpenPrompt,
    /// Removes the prompt when it is too old.
    _timer: AbortOnDropHandle<()>,
}

impl CallPrompts {
    pub(super) fn new(
        pending: PendingPrompts,
        detached: Arc<DetachedPrompts>,
        subject: PromptSubject,
        caller: &Caller,
    ) -> Self {
        let PromptSubject { tool, source, arguments, reason, annotations } = subject;
        let template = OperatorPrompt {
            kind: PromptKind::Approval,
            tool,
            source,
            caller: caller.description(),
            session: Some(caller.principal.name().to_owned()),
            arguments,
            message: PromptText::new(reason),
            annotations,
        };
        Self { pending, detached, template }
    }

    /// Returns whether the operator can answer a question. Grants stay with the command line.
    pub(super) fn answers(&self, question: &Question) -> bool {
        self.pending.accepts_answers() && is_shown(question)
    }

    /// Returns whether the operator can answer at all.
    pub(super) fn accepts_answers(&self) -> bool {
        self.pending.accepts_answers()
    }

    /// Opens the prompt of a question. Returns `None` if the operator does not see such questions.
    pub(super) fn open(&self, question: &Question) -> Option<OpenPrompt> {
        if !is_shown(question) {
            return None;
        }
        let mut prompt = self.template.clone();
        if question.name != APPROVAL {
            let message = question.parameters.get("message").and_then(Value::as_str);
            prompt.message = PromptText::new(message.unwrap_or_default());
            prompt.kind = PromptKind::form(question);
        }
        self.pending.open(prompt)
    }

    /// Opens the prompts of questions that the client takes along. Returns their ids by the key of
    /// the question.
    pub(super) fn detach(&self, questions: &[(String, Question)]) -> BTreeMap<String, String> {
        let open = |(key, question): &(String, Question)| {
            let open = self.open(question)?;
            let id = open.id().to_owned();
            self.detached.insert(open);
            Some((key.clone(), id))
        };
        questions.iter().filter_map(open).collect()
    }

    /// Withdraws a detached prompt, whose client has come back. Returns the answer of the operator
    /// if that came first.
    pub(super) fn collect(&self, id: &str, is_answered: bool) -> Option<PromptAnswer> {
        let open = self.detached.remove(id)?;
        open.withdraw(if is_answered { BY_CLIENT } else { ASKED_AGAIN })
    }
}

impl DetachedPrompts {
    fn insert(self: &Arc<Self>, open: OpenPrompt) {
        let (detached, id) = (Arc::downgrade(self), open.id().to_owned());
        let timer = tokio::spawn(async move {
            tokio::time::sleep(ANSWER_TIME_MAX).await;
            if let Some(open) = detached.upgrade().and_then(|detached| detached.remove(&id)) {
                open.withdraw(DROPPED);
            }
        });
        let mut prompts = self.0.lock();
        let oldest = if prompts.len() >= DETACHED_MAX { prompts.pop_front() } else { None };
        prompts.push_back(DetachedPrompt { open, _timer: AbortOnDropHandle::new(timer) });
        drop(prompts);
        if let Some(oldest) = oldest {
            oldest.open.withdraw(DROPPED);
        }
    }

    fn remove(&self, id: &str) -> Option<OpenPrompt> {
        let mut prompts = self.0.lock();
        let at = prompts.iter().position(|prompt| prompt.open.id() == id)?;
        prompts.remove(at).map(|prompt| prompt.open)
    }
}

/// Returns whether the operator sees a question. Those about grants are for the command line.
fn is_shown(question: &Question) -> bool {
    let is_own = question.name.starts_with(HOST_PREFIX);
    question.kind == QuestionKind::Elicitation && (!is_own || question.name == APPROVAL)
}
