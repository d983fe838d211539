//! Questions of a running call, which the gateway asks its client, and its checks of inner calls.
//!
//! A worker repeats a question until it has the answer, so one with a number that is known is not
//! asked again: its answer is, or will be, sent again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use cofferdam_tool::ask::{AskError, Asker};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};

use super::inner::{CheckedInnerCalls, InnerCallPolicy};
use crate::inner::{CHECKS_MAX, InnerCheck, InnerDecision};
use crate::question::{self, ANSWER_BYTES_MAX, QUESTIONS_MAX};

/// Maximum total size of the answers to one start of a call, in bytes: they are stored until it
/// ends.
const ANSWERS_BYTES_MAX: usize = 4 * ANSWER_BYTES_MAX;

/// Questions of one start of a call.
pub(super) struct AskedQuestions<'c> {
    asker: Option<&'c Arc<dyn Asker>>,
    inner_calls: CheckedInnerCalls<'c>,
    /// Number of checks of inner calls.
    checks: usize,
    /// Answers by number; `None` while the client is asked.
    answers: BTreeMap<u32, Option<Bytes>>,
    answer_bytes: usize,
    asking: FuturesUnordered<BoxFuture<'c, (u32, Bytes)>>,
}

impl<'c> AskedQuestions<'c> {
    pub(super) fn new(
        asker: Option<&'c Arc<dyn Asker>>,
        inner_calls: Option<InnerCallPolicy<'c>>,
    ) -> Self {
        Self {
            asker,
            inner_calls: CheckedInnerCalls::new(inner_calls),
            checks: 0,
            answers: BTreeMap::new(),
            answer_bytes: 0,
            asking: FuturesUnordered::new(),
        }
    }

    /// Receives a question. Returns its answer if there is one already.
    pub(super) fn receive(&mut self, number: u32, body: &[u8]) -> Option<Bytes> {
        if let Some(answer) = self.answers.get(&number) {
            return answer.clone();
        }
        if InnerCheck::is_in(body) {
            return self.check(number, body);
        }
        if self.answers.len().saturating_sub(self.checks) >= QUESTIONS_MAX {
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

    /// Receives a check of an inner call. Returns the decision if it can be made at once.
    fn check(&mut self, number: u32, body: &[u8]) -> Option<Bytes> {
        if self.checks >= CHECKS_MAX {
            return Some(failed("the call has made too many calls of other tools").into());
        }
        self.checks += 1;
        let check = match InnerCheck::decode(body) {
            Ok(check) => check,
            Err(error) => {
                tracing::warn!(%error, "a worker sent an invalid check of a call");
                return Some(self.keep(number, failed("the gateway cannot read the check").into()));
            }
        };
        let mut decision = self.inner_calls.decide(check);
        if let Some(decision) = (&mut decision).now_or_never() {
            return Some(self.keep(number, encoded(&decision)));
        }
        self.answers.insert(number, None);
        self.asking.push(Box::pin(async move { (number, encoded(&decision.await)) }));
        None
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

/// Returns the answer to a question that the gateway cannot ask.
fn failed(cause: &str) -> Vec<u8> {
    question::encode_answer(Err(AskError::Failed(cause.to_owned())))
}

/// Returns the answer to a check.
fn encoded(decision: &InnerDecision) -> Bytes {
    question::encode_answer(Ok(vec![decision.to_value()])).into()
}
