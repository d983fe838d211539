//! Records questions to the caller, and answers them in a replay.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use cofferdam_tool::recording::RecordedAnswers;
use serde_json::Value;

use super::CallRecorder;

/// Asker of a recorded call.
struct RecordedAsker {
    recorder: Arc<CallRecorder>,
    /// The caller; `None` in a replay, or if it cannot be asked.
    asker: Option<Arc<dyn Asker>>,
}

impl CallRecorder {
    /// Returns the asker of the call: the caller with a recording, or the recording in a replay.
    pub(crate) fn asker(self: &Arc<Self>, asker: Option<Arc<dyn Asker>>) -> Arc<dyn Asker> {
        let asker = asker.filter(|_| self.playback().is_none());
        Arc::new(RecordedAsker { recorder: Arc::clone(self), asker })
    }
}

#[async_trait]
impl Asker for RecordedAsker {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        let can_ask = match self.recorder.playback() {
            Some(playback) => playback.can_ask(kind.as_str()),
            None => self.asker.as_ref().is_some_and(|asker| asker.can_ask(kind)),
        };
        self.recorder.add_can_ask(kind.as_str(), can_ask);
        can_ask
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        let kind = questions.first().map_or(QuestionKind::Elicitation, |question| question.kind);
        let asked: Vec<_> = questions
            .iter()
            .map(|question| (question.kind.as_str().to_owned(), question.parameters.clone()))
            .collect();
        let answers = match (self.recorder.playback(), &self.asker) {
            (Some(playback), _) => playback.answers(&asked).map_err(AskError::Failed),
            (None, Some(asker)) => asker.ask(questions).await,
            (None, None) => Err(AskError::Unsupported(kind)),
        };
        // The message that the guest gets is recorded, not the type.
        let recorded = answers.clone().map_err(|error| match error {
            AskError::Failed(message) => message,
            other => other.to_string(),
        });
        self.recorder.add_questions(RecordedAnswers { questions: asked, answers: recorded });
        answers
    }
}
