//! Questions that a running call waits for.
//!
//! The worker sends a question again with each heartbeat until the gateway has answered it, so
//! that neither a lost question nor a lost answer leaves the call waiting. A question has a number
//! that no other one of its run has; the first answer with this number ends it.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::call::CallReport;
use crate::inner::CHECKS_MAX;
use crate::question::{self, QUESTION_BYTES_MAX, QUESTIONS_MAX};

/// Open questions of one run.
#[derive(Default)]
pub(super) struct OpenQuestions {
    state: Mutex<QuestionsState>,
}

#[derive(Default)]
struct QuestionsState {
    open: BTreeMap<u32, OpenQuestion>,
    /// Number of the next question.
    next: u32,
    /// Number of questions to the client that were asked.
    asked: usize,
    /// Number of checks of inner calls.
    checks: usize,
}

/// Party that a question is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionTarget {
    /// Client of the gateway.
    Client,
    /// Gateway itself, about a call of another tool.
    Gateway,
}

struct OpenQuestion {
    body: Bytes,
    answer: oneshot::Sender<Bytes>,
}

impl OpenQuestions {
    /// Asks a question and waits for the answer.
    pub(super) async fn ask(
        &self,
        body: Bytes,
        target: QuestionTarget,
        reports: &mpsc::Sender<CallReport>,
    ) -> Result<Bytes, AskError> {
        let (number, answered) = self.open(body, target)?;
        let _open = AskedQuestion { number, questions: self };
        // If there is no room for the report, the next heartbeat brings the question.
        let _ = reports.try_send(CallReport::Question(number));
        answered.await.map_err(|_| AskError::Failed("the call has ended".to_owned()))
    }

    /// Adds a question. Returns its number and the receiver of its answer.
    fn open(
        &self,
        body: Bytes,
        target: QuestionTarget,
    ) -> Result<(u32, oneshot::Receiver<Bytes>), AskError> {
        let mut state = self.state.lock();
        match target {
            QuestionTarget::Client if state.asked >= QUESTIONS_MAX => {
                return Err(AskError::Failed(format!("a call can ask {QUESTIONS_MAX} questions")));
            }
            QuestionTarget::Gateway if state.checks >= CHECKS_MAX => {
                let calls_max = CHECKS_MAX / 2;
                return Err(AskError::Failed(format!("a call can make {calls_max} other calls")));
            }
            QuestionTarget::Client | QuestionTarget::Gateway => {}
        }
        let open: usize = state.open.values().map(|other| other.body.len()).sum();
        if open.saturating_add(body.len()) > QUESTION_BYTES_MAX {
            return Err(AskError::Failed(format!(
                "the questions that a call waits for have at most {QUESTION_BYTES_MAX} bytes"
            )));
        }
        let number = state.next;
        state.next += 1;
        match target {
            QuestionTarget::Client => state.asked += 1,
            QuestionTarget::Gateway => state.checks += 1,
        }
        let (answer, answered) = oneshot::channel();
        state.open.insert(number, OpenQuestion { body, answer });
        Ok((number, answered))
    }

    /// Passes an answer on. One to a question that is not open is dropped.
    pub(super) fn answer(&self, number: u32, answer: Bytes) {
        if let Some(question) = self.state.lock().open.remove(&number) {
            let _ = question.answer.send(answer);
        }
    }

    /// Returns the body of a question that has no answer.
    pub(super) fn body(&self, number: u32) -> Option<Bytes> {
        self.state.lock().open.get(&number).map(|question| question.body.clone())
    }

    /// Returns the numbers of the questions that have no answer.
    pub(super) fn numbers(&self) -> Vec<u32> {
        self.state.lock().open.keys().copied().collect()
    }
}

/// Asks the gateway of a call.
pub(super) struct GatewayAsker {
    /// Kinds of questions that the client of the gateway answers.
    pub(super) kinds: Vec<QuestionKind>,
    /// Names of the questions of earlier runs, if a question ends the call.
    pub(super) earlier: Option<Vec<String>>,
    pub(super) questions: Arc<OpenQuestions>,
    pub(super) reports: mpsc::Sender<CallReport>,
}

#[async_trait]
impl Asker for GatewayAsker {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        self.kinds.contains(&kind)
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        let count = questions.len();
        let body = Bytes::from(question::encode(questions)?);
        let answer = self.questions.ask(body, QuestionTarget::Client, &self.reports).await?;
        question::decode_answer(&answer, count)
    }

    fn earlier_questions(&self) -> Option<Vec<String>> {
        self.earlier.clone()
    }
}

/// Closes a question that its call no longer waits for.
struct AskedQuestion<'q> {
    number: u32,
    questions: &'q OpenQuestions,
}

impl Drop for AskedQuestion<'_> {
    fn drop(&mut self) {
        self.questions.state.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use serde_json::json;

    use super::*;

    fn asker() -> (Arc<GatewayAsker>, mpsc::Receiver<CallReport>) {
        let (reports, receiver) = mpsc::channel(4);
        let questions = Arc::default();
        (Arc::new(GatewayAsker { kinds: Vec::new(), earlier: None, questions, reports }), receiver)
    }

    fn question(message: &str) -> Vec<Question> {
        vec![Question::approval("q", message.to_owned())]
    }

    fn answer(number: u32) -> Bytes {
        question::encode_answer(Ok(vec![json!(number)])).into()
    }

    #[tokio::test]
    async fn the_first_answer_with_its_number_ends_a_question() {
        let (asker, mut reports) = asker();
        let asking = tokio::spawn({
            let asker = Arc::clone(&asker);
            async move { asker.ask(question("a")).await }
        });
        assert!(matches!(reports.recv().await, Some(CallReport::Question(0))));
        asker.questions.answer(1, answer(1));
        assert_eq!(asker.questions.numbers(), [0]);
        asker.questions.answer(0, answer(0));
        asker.questions.answer(0, answer(2));
        assert_eq!(asking.await.unwrap(), Ok(vec![json!(0)]));
        assert!(asker.questions.body(0).is_none() && asker.questions.numbers().is_empty());
    }

    #[tokio::test]
    async fn a_call_asks_a_limited_number_of_questions_of_a_limited_size() {
        let (asker, _reports) = asker();
        let large = "x".repeat(QUESTION_BYTES_MAX * 3 / 5);
        {
            let (first, second) = (asker.ask(question(&large)), asker.ask(question(&large)));
            let mut first = std::pin::pin!(first);
            assert!(first.as_mut().now_or_never().is_none());
            assert!(matches!(second.await, Err(AskError::Failed(_))));
        }
        // A question is closed when its call stops waiting.
        assert!(asker.questions.numbers().is_empty());
        for _ in 1..QUESTIONS_MAX {
            assert!(asker.ask(question("a")).now_or_never().is_none());
        }
        assert!(matches!(asker.ask(question("a")).await, Err(AskError::Failed(_))));
    }
}
