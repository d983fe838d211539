//! Questions of a running call, which the gateway asks its client.
//!
//! A worker repeats a question until it has the answer, so one with a number that is known is not
//! asked again: its answer is, or will be, sent again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cofferdam_tool::ask::{AskError, Asker};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use crate::question::{self, ANSWER_BYTES_MAX, QUESTIONS_MAX};

/// Maximum total size of the answers to one start of a call, in bytes: they are stored until it
/// ends.
const ANSWERS_BYTES_MAX: usize = 4 * ANSWER_BYTES_MAX;

/// Questions of one start of a call.
pub(super) struct AskedQuestions<'c> {
    asker: Option<&'c Arc<dyn Asker>>,
    /// Answers by number; `None` while the client is asked.
    answers: BTreeMap<u32, Option<Bytes>>,
    answer_bytes: usize,
    asking: FuturesUnordered<BoxFuture<'c, (u32, Bytes)>>,
}

impl<'c> AskedQuestions<'c> {
    pub(super) fn new(asker: Option<&'c Arc<dyn Asker>>) -> Self {
        Self { asker, answers: BTreeMap::new(), answer_bytes: 0, asking: FuturesUnordered::new() }
    }

    /// Receives a question. Returns its answer if there is one already.
    pub(super) fn receive(&mut self, number: u32, body: &[u8]) -> Option<Bytes> {
        if let Some(answer) = self.answers.get(&number) {
            return answer.clone();
        }
        let failed = |cause: &str| question::encode_answer(Err(AskError::Failed(cause.to_owned())));
        if self.answers.len() >= QUESTIONS_MAX {
            return Some(failed("the call has asked too many questions").into());
        }
        let asked = match (self.asker, question::decode(body)) {
            (Some(asker), Ok(questions)) => Ok((Arc::clone(asker), questions)),
            (None, Ok(_)) => Err(failed("the client cannot be asked")),
            (_, Err(error)) => {
                tracing::warn!(%error, "a worker sent an invalid question");
                Err(failed("the gateway cannot read the question"))
            }
        };
        match asked {
            Ok((asker, questions)) => {
                self.answers.insert(number, None);
                self.asking.push(Box::pin(async move {
                    (number, question::encode_answer(asker.ask(questions).await).into())
                }));
                None
            }
            Err(answer) => Some(self.keep(number, answer.into())),
        }
    }

    /// Waits for the next answer of the client; `None` if no question is open.
    pub(super) async fn answered(&mut self) -> Option<(u32, Bytes)> {
        let (number, answer) = self.asking.next().await?;
        Some((number, self.keep(number, answer)))
    }

    /// Keeps an answer in case that its message is lost. Returns the answer to send.
    fn keep(&mut self, number: u32, answer: Bytes) -> Bytes {
        let bytes = self.answer_bytes.saturating_add(answer.len());
        let answer = if bytes <= ANSWERS_BYTES_MAX {
            self.answer_bytes = bytes;
            answer
        } else {
            let cause = format!("the answers to a call have at most {ANSWERS_BYTES_MAX} bytes");
            question::encode_answer(Err(AskError::Failed(cause))).into()
        };
        self.answers.insert(number, Some(answer.clone()));
        answer
    }
}
