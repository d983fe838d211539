//! Prompts about calls that wait for an answer: approvals, and forms of tools.
//!
//! A prompt can be open in several interfaces at once, such as the client of a server and the pages
//! of an inspector. The first answer counts, and the prompt is withdrawn from the others.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use crate::Annotations;
use crate::ask::Question;

/// Maximum time for an answer of the operator, if nothing else limits it.
pub const ANSWER_TIME_MAX: Duration = Duration::from_secs(15 * 60);
/// Maximum number of prompts that wait at the same time.
const PROMPTS_MAX: usize = 64;
/// Maximum number of prompts that are remembered after they have ended.
const ENDED_MAX: usize = 64;
/// Maximum bytes of a text that can be shown.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Maximum characters of a reason for a denial. Longer ones are cut.
const REASON_CHARS_MAX: usize = 1000;

/// End of a prompt whose call has ended.
const CALL_ENDED: &str = "withdrawn, because its call ended";
/// End of a prompt without an answer.
const EXPIRED: &str = "withdrawn, because there was no answer in time";

/// Prompt about a call.
#[derive(Debug, Clone)]
pub struct OperatorPrompt {
    /// Kind of the answer.
    pub kind: PromptKind,
    /// Tool that the call is of; empty if it is not known.
    pub tool: String,
    /// Source of the tool: a plugin, a server, or the host.
    pub source: String,
    /// Caller that waits.
    pub caller: String,
    /// Session that the call belongs to.
    pub session: Option<String>,
    /// Arguments of the call as JSON.
    pub arguments: PromptText,
    /// Reason for an approval, or the question of a form.
    pub message: PromptText,
    /// Claims of the tool's author about its effects.
    pub annotations: Annotations,
}

/// Kind of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptKind {
    /// Decision whether the call may run.
    Approval,
    /// Values for a form with this schema.
    Form(Value),
}

/// Text of a prompt. A longer one than can be shown is cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptText {
    text: String,
    is_cut: bool,
}

/// Answer to a prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum PromptAnswer {
    /// The call may run once.
    Approved,
    /// The call may not run. The caller learns the reason.
    Denied(Option<String>),
    /// Values for the form.
    Filled(Value),
    /// The operator refuses to fill in the form.
    Declined,
    /// The operator closes the form without a decision.
    Cancelled,
}

/// Prompts that wait for an answer, for the interface where an operator sees them. Clones share
/// state.
#[derive(Clone)]
pub struct PendingPrompts {
    shared: Arc<SharedPrompts>,
}

struct SharedPrompts {
    accepts_answers: bool,
    state: Mutex<PromptState>,
    changes: watch::Sender<()>,
}

#[derive(Default)]
struct PromptState {
    waiting: Vec<(Arc<WaitingPrompt>, oneshot::Sender<PromptAnswer>)>,
    ended: VecDeque<EndedPrompt>,
}

/// A prompt that waits.
#[derive(Debug)]
pub struct WaitingPrompt {
    /// Random id, which an answer names.
    pub id: String,
    /// Start of the wait.
    pub since: SystemTime,
    /// The prompt.
    pub prompt: OperatorPrompt,
}

/// A prompt that waits no longer.
#[derive(Debug, Clone)]
pub struct EndedPrompt {
    /// Id that it had.
    pub id: String,
    /// End in plain words, as a participle.
    pub end: &'static str,
}

/// Error of an answer that does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UncountedAnswer {
    /// The operator may see prompts, but not answer them.
    #[error("these prompts can be seen here, but not answered")]
    NotAllowed,
    /// There is no prompt with the id.
    #[error("there is no such prompt")]
    Unknown,
    /// The prompt has ended.
    #[error("the prompt was {0}")]
    Ended(&'static str),
    /// The answer is of another kind than the prompt.
    #[error("the answer does not fit the prompt")]
    Unfit,
    /// The prompt cannot be shown completely, so that it can only be refused.
    #[error("it is too long to be shown, so it can only be refused here")]
    NotShown,
}

/// A prompt that a call waits for. Dropping it withdraws the prompt.
pub struct OpenPrompt {
    id: String,
    shared: Arc<SharedPrompts>,
    answer: oneshot::Receiver<PromptAnswer>,
}

/// Answer that came first.
#[derive(Debug)]
pub enum FirstAnswer<T> {
    /// Answer of the operator.
    Operator(PromptAnswer),
    /// Answer from elsewhere.
    Elsewhere(T),
}

impl OperatorPrompt {
    /// Returns whether the part that an answer would accept cannot be shown completely: the
    /// arguments of a call, or the question of a form.
    #[must_use]
    pub fn can_only_be_refused(&self) -> bool {
        match self.kind {
            PromptKind::Approval => self.arguments.is_cut(),
            PromptKind::Form(_) => self.message.is_cut(),
        }
    }
}

impl PromptText {
    /// Cuts a text to what can be shown.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let shown = text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default();
        Self { text: shown.to_owned(), is_cut: shown.len() < text.len() }
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether a part of the text is missing.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

impl PromptKind {
    /// Returns the kind of a question with a form.
    #[must_use]
    pub fn form(question: &Question) -> Self {
        Self::Form(question.parameters.get("requestedSchema").cloned().unwrap_or(json!({})))
    }

    fn fits(&self, answer: &PromptAnswer) -> bool {
        let is_approval = matches!(answer, PromptAnswer::Approved | PromptAnswer::Denied(_));
        is_approval == (*self == Self::Approval)
    }
}

impl PromptAnswer {
    /// Returns the answer as the result of MCP's `elicitation/create`. An approval is the answer
    /// to [`Question::approval`].
    #[must_use]
    pub fn into_elicitation(self) -> Value {
        match self {
            Self::Approved => json!({"action": "accept", "content": {"allow": true}}),
            Self::Denied(None) => json!({"action": "accept", "content": {"allow": false}}),
            Self::Denied(Some(reason)) => {
                json!({"action": "accept", "content": {"allow": false, "reason": reason}})
            }
            Self::Filled(content) => json!({"action": "accept", "content": content}),
            Self::Declined => json!({"action": "decline"}),
            Self::Cancelled => json!({"action": "cancel"}),
        }
    }

    /// Returns the answer as a participle.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Denied(_) => "denied",
            Self::Filled(_) => "answered",
            Self::Declined => "declined",
            Self::Cancelled => "closed",
        }
    }

    fn accepts(&self) -> bool {
        matches!(self, Self::Approved | Self::Filled(_))
    }

    fn end(&self) -> &'static str {
        match self {
            Self::Approved => "approved in the inspector",
            Self::Denied(_) => "denied in the inspector",
            Self::Filled(_) => "answered in the inspector",
            Self::Declined => "declined in the inspector",
            Self::Cancelled => "closed in the inspector",
        }
    }
}

impl PendingPrompts {
    /// Creates an empty list of prompts. Without `accepts_answers`, they can only be seen.
    #[must_use]
    pub fn new(accepts_answers: bool) -> Self {
        let (state, changes) = (Mutex::default(), watch::Sender::new(()));
        Self { shared: Arc::new(SharedPrompts { accepts_answers, state, changes }) }
    }

    /// Returns whether prompts can be answered.
    #[must_use]
    pub fn accepts_answers(&self) -> bool {
        self.shared.accepts_answers
    }

    /// Opens a prompt. Returns `None` if too many wait already, or the system provides no random
    /// numbers for its id.
    #[must_use]
    pub fn open(&self, prompt: OperatorPrompt) -> Option<OpenPrompt> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).ok()?;
        let id = format!("{:032x}", u128::from_ne_bytes(random));
        let (send, answer) = oneshot::channel();
        let waiting = WaitingPrompt { id: id.clone(), since: SystemTime::now(), prompt };
        let mut state = self.shared.state.lock();
        if state.waiting.len() >= PROMPTS_MAX {
            return None;
        }
        state.waiting.push((Arc::new(waiting), send));
        drop(state);
        self.shared.changes.send_replace(());
        Some(OpenPrompt { id, shared: Arc::clone(&self.shared), answer })
    }

    /// Returns the prompts that wait, the oldest first.
    #[must_use]
    pub fn waiting(&self) -> Vec<Arc<WaitingPrompt>> {
        self.shared.state.lock().waiting.iter().map(|(waiting, _)| Arc::clone(waiting)).collect()
    }

    /// Returns the last prompts that ended.
    #[must_use]
    pub fn ended(&self) -> Vec<EndedPrompt> {
        self.shared.state.lock().ended.iter().cloned().collect()
    }

    /// Returns a receiver that is notified when a prompt is opened or ends.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }

    /// Answers a prompt. Only the first answer counts.
    ///
    /// # Errors
    /// [`UncountedAnswer`] if the answer has no effect.
    pub fn answer(&self, id: &str, answer: PromptAnswer) -> Result<(), UncountedAnswer> {
        if !self.shared.accepts_answers {
            return Err(UncountedAnswer::NotAllowed);
        }
        let answer = match answer {
            PromptAnswer::Denied(Some(reason)) => PromptAnswer::Denied(shortened(&reason)),
            other => other,
        };
        let mut state = self.shared.state.lock();
        let Some(at) = state.waiting.iter().position(|(waiting, _)| waiting.id == id) else {
            let ended = state.ended.iter().find(|ended| ended.id == id);
            return Err(ended.map_or(UncountedAnswer::Unknown, |e| UncountedAnswer::Ended(e.end)));
        };
        if let Some((waiting, _)) = state.waiting.get(at) {
            let WaitingPrompt { prompt, .. } = &**waiting;
            if !prompt.kind.fits(&answer) {
                return Err(UncountedAnswer::Unfit);
            }
            if prompt.can_only_be_refused() && answer.accepts() {
                return Err(UncountedAnswer::NotShown);
            }
        }
        let (_, send) = state.waiting.remove(at);
        let end = answer.end();
        // The receiver is dropped under the same lock as it leaves the list.
        let is_taken = send.send(answer).is_ok();
        state.remember(id, if is_taken { end } else { CALL_ENDED });
        drop(state);
        self.shared.changes.send_replace(());
        if is_taken { Ok(()) } else { Err(UncountedAnswer::Ended(CALL_ENDED)) }
    }
}

impl std::fmt::Debug for PendingPrompts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingPrompts").finish_non_exhaustive()
    }
}

impl SharedPrompts {
    /// Removes a prompt that waits. Returns whether there was one.
    fn end(&self, id: &str, end: &'static str) -> bool {
        let mut state = self.state.lock();
        let Some(at) = state.waiting.iter().position(|(waiting, _)| waiting.id == id) else {
            return false;
        };
        state.waiting.remove(at);
        state.remember(id, end);
        drop(state);
        self.changes.send_replace(());
        true
    }
}

impl PromptState {
    fn remember(&mut self, id: &str, end: &'static str) {
        if self.ended.len() >= ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(EndedPrompt { id: id.to_owned(), end });
    }
}

impl OpenPrompt {
    /// Returns the id of the prompt.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Waits for the answer of the operator.
    pub async fn answer(&mut self) -> PromptAnswer {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            // The answer was already returned, or the prompt was withdrawn.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits for the answer of the operator for [`ANSWER_TIME_MAX`].
    pub async fn answer_in_time(mut self) -> Option<PromptAnswer> {
        match tokio::time::timeout(ANSWER_TIME_MAX, self.answer()).await {
            Ok(answer) => Some(answer),
            Err(_) => self.withdraw(EXPIRED),
        }
    }

    /// Waits for the answer of the operator, or for one from elsewhere. `end` says where that is,
    /// as [`EndedPrompt::end`] does.
    pub async fn answer_or<T>(
        mut self,
        elsewhere: impl Future<Output = T>,
        end: &'static str,
    ) -> FirstAnswer<T> {
        tokio::select! {
            biased;
            answer = self.answer() => FirstAnswer::Operator(answer),
            other = elsewhere => match self.withdraw(end) {
                Some(answer) => FirstAnswer::Operator(answer),
                None => FirstAnswer::Elsewhere(other),
            },
        }
    }

    /// Withdraws the prompt, because it was answered elsewhere. Returns the answer of the operator
    /// if that came first.
    pub fn withdraw(mut self, end: &'static str) -> Option<PromptAnswer> {
        match self.shared.end(&self.id, end) {
            true => None,
            false => self.answer.try_recv().ok(),
        }
    }
}

impl Drop for OpenPrompt {
    fn drop(&mut self) {
        self.shared.end(&self.id, CALL_ENDED);
    }
}

/// Returns a reason in its longest form, or `None` if it is empty.
fn shortened(reason: &str) -> Option<String> {
    let reason: String = reason.trim().chars().take(REASON_CHARS_MAX).collect();
    (!reason.is_empty()).then_some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(kind: PromptKind, arguments: &str) -> OperatorPrompt {
        OperatorPrompt {
            kind,
            tool: "delete".to_owned(),
            source: "files".to_owned(),
            caller: "client".to_owned(),
            session: None,
            arguments: PromptText::new(arguments),
            message: PromptText::default(),
            annotations: Annotations::default(),
        }
    }

    fn approval() -> OperatorPrompt {
        prompt(PromptKind::Approval, "{}")
    }

    #[tokio::test]
    async fn the_first_answer_counts() {
        let prompts = PendingPrompts::new(true);
        let mut changes = prompts.changes();
        let open = prompts.open(approval()).unwrap();
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        let id = open.id().to_owned();
        assert_eq!((id.len(), prompts.waiting()[0].id == id), (32, true));
        let denied = PromptAnswer::Denied(Some(format!(" {} ", "x".repeat(2000))));
        prompts.answer(&id, denied).unwrap();
        assert!(changes.has_changed().unwrap() && prompts.waiting().is_empty());
        let again = prompts.answer(&id, PromptAnswer::Approved);
        assert_eq!(again, Err(UncountedAnswer::Ended("denied in the inspector")));
        // The answer from elsewhere comes too late, even if it is looked at first.
        let first = open.withdraw("answered by the client");
        assert_eq!(first, Some(PromptAnswer::Denied(Some("x".repeat(1000)))));

        let open = prompts.open(approval()).unwrap();
        let id = open.id().to_owned();
        let first = open.answer_or(async { 7 }, "answered by the client").await;
        assert!(matches!(first, FirstAnswer::Elsewhere(7)));
        let late = prompts.answer(&id, PromptAnswer::Approved);
        assert_eq!(late, Err(UncountedAnswer::Ended("answered by the client")));
    }

    #[test]
    fn a_prompt_goes_with_its_call() {
        let prompts = PendingPrompts::new(true);
        let open = prompts.open(approval()).unwrap();
        let id = open.id().to_owned();
        drop(open);
        assert!(prompts.waiting().is_empty());
        let late = prompts.answer(&id, PromptAnswer::Approved);
        assert_eq!(late, Err(UncountedAnswer::Ended(CALL_ENDED)));
        assert_eq!(prompts.ended()[0].id, id);
    }

    #[test]
    fn only_a_fitting_answer_counts() {
        let prompts = PendingPrompts::new(true);
        let answer = |id: &str, answer| prompts.answer(id, answer);
        let asks = prompts.open(approval()).unwrap();
        let form = prompts.open(prompt(PromptKind::Form(json!({})), "{}")).unwrap();
        let long = prompts.open(prompt(PromptKind::Approval, &"ü".repeat(40_000))).unwrap();
        for other in [PromptAnswer::Filled(json!({})), PromptAnswer::Declined] {
            assert_eq!(answer(asks.id(), other), Err(UncountedAnswer::Unfit));
        }
        let approved = PromptAnswer::Approved;
        assert_eq!(answer(form.id(), approved.clone()), Err(UncountedAnswer::Unfit));
        assert_eq!(answer(long.id(), approved.clone()), Err(UncountedAnswer::NotShown));
        assert_eq!(answer(long.id(), PromptAnswer::Denied(None)), Ok(()));
        let question = PromptText::new(&"ü".repeat(40_000));
        let unread =
            OperatorPrompt { message: question, ..prompt(PromptKind::Form(json!({})), "{}") };
        let unread = prompts.open(unread).unwrap();
        let filled = PromptAnswer::Filled(json!({}));
        assert_eq!(answer(unread.id(), filled), Err(UncountedAnswer::NotShown));
        assert_eq!(answer(unread.id(), PromptAnswer::Declined), Ok(()));
        assert_eq!(answer("0", approved.clone()), Err(UncountedAnswer::Unknown));
        assert_eq!(prompts.waiting().len(), 2);

        let seen = PendingPrompts::new(false);
        let open = seen.open(approval()).unwrap();
        assert_eq!(seen.answer(open.id(), approved), Err(UncountedAnswer::NotAllowed));
        assert_eq!(seen.waiting().len(), 1);
    }

    #[test]
    fn the_number_of_prompts_has_a_limit() {
        let prompts = PendingPrompts::new(true);
        let open: Vec<_> = (0..PROMPTS_MAX).map(|_| prompts.open(approval()).unwrap()).collect();
        assert!(prompts.open(approval()).is_none());
        drop(open);
        assert_eq!(prompts.ended().len(), ENDED_MAX);
        assert!(prompts.open(approval()).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_prompt_without_an_answer_expires() {
        let prompts = PendingPrompts::new(true);
        let open = prompts.open(approval()).unwrap();
        assert_eq!(open.answer_in_time().await, None);
        assert_eq!(prompts.ended()[0].end, EXPIRED);
    }

    #[test]
    fn answers_have_the_form_of_mcp() {
        let allows = |answer: PromptAnswer| Question::is_allowed(&answer.into_elicitation());
        assert!(allows(PromptAnswer::Approved));
        for other in [
            PromptAnswer::Denied(Some("no".to_owned())),
            PromptAnswer::Filled(json!({"x": 1})),
            PromptAnswer::Declined,
            PromptAnswer::Cancelled,
        ] {
            assert!(!allows(other));
        }
        let denied = PromptAnswer::Denied(Some("wrong file".to_owned())).into_elicitation();
        assert_eq!(Question::denial_reason(&denied), Some("wrong file"));
    }
}
