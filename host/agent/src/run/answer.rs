//! Structured answers of runs, and the repair round (`LOOP-65`, `LOOP-66`).

use std::sync::Arc;

#[cfg(feature = "schemars")]
use schemars::JsonSchema;
#[cfg(feature = "schemars")]
use serde::de::DeserializeOwned;

#[cfg(feature = "schemars")]
use super::Run;
use super::cycle::{Cycle, NextStep, send};
#[cfg(feature = "schemars")]
use crate::ResponseFormat;
use crate::answer::{self, InvalidAnswer, InvalidAnswerKind};
use crate::{FinishReason, Message, Reply, RunError};

/// Source of the message that describes the problems of an answer, so that nothing takes it for the
/// user's.
const SOURCE: &str = "answer_repair";

impl Cycle<'_> {
    /// Decodes the answer of the model if the run has a response format. If it does not fit, the
    /// model gets one more request.
    pub(super) async fn answered(&mut self, reply: &Reply) -> Result<NextStep, RunError> {
        let Some(format) = self.given.options.response_format.clone() else {
            return Ok(NextStep::End);
        };
        let text = self.response.text();
        if matches!(reply.finish, Some(FinishReason::Refusal | FinishReason::ContentFilter)) {
            return Err(InvalidAnswer::new(&format, InvalidAnswerKind::Refusal, text).into());
        }
        let problems = match answer::decode(&format, &text) {
            Ok(value) => {
                self.response.answer = Some(value);
                return Ok(NextStep::End);
            }
            Err(problems) => problems,
        };
        if reply.finish == Some(FinishReason::Length) {
            return Err(InvalidAnswer::new(&format, InvalidAnswerKind::TokenLimit, text).into());
        }
        if std::mem::replace(&mut self.is_repaired, true) {
            return Err(InvalidAnswer::mismatch(&format, text, problems).into());
        }
        let message = Arc::new(repair(&problems));
        send(self.updates.as_ref(), &message).await;
        self.append(message);
        match self.completed(reply).await? {
            true => Ok(NextStep::End),
            false => Ok(self.next_iteration(None)),
        }
    }
}

#[cfg(feature = "schemars")]
impl Run {
    /// Runs the agent and returns the answer as a Rust type, whose schema is the response format.
    /// For a run that may end with approval requests, use [`ResponseFormat::of`] and
    /// [`Response::value_as`](crate::Response::value_as), which keep the response.
    ///
    /// # Errors
    /// Every error of a run, [`RunError::Chat`] if the type's schema cannot be a response format,
    /// and [`RunError::Answer`] if the run ends without an answer or the type does not accept it.
    pub async fn answer_as<T: JsonSchema + DeserializeOwned>(self) -> Result<T, RunError> {
        let format = ResponseFormat::of::<T>()?;
        let response = self.response_format(format.clone()).await?;
        match response.value_as() {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => {
                let kind = InvalidAnswerKind::Missing;
                Err(InvalidAnswer::new(&format, kind, response.text()).into())
            }
            Err(error) => {
                let problems = vec![format!("{error}.")];
                Err(InvalidAnswer::mismatch(&format, response.text(), problems).into())
            }
        }
    }
}

/// Returns the message that describes the problems of an answer to the model.
fn repair(problems: &[String]) -> Message {
    let problems = problems.join(" ");
    let text = format!(
        "Your last answer does not have the required form. {problems} Answer again, with the \
         corrected JSON object and nothing else."
    );
    Message::user(text).from_source(SOURCE)
}
