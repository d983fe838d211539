//! Answers to the requests of a run, from the command line or the terminal.

use anyhow::Result;
use cofferdam_workflow::{MessageType, Payload, UserRequest};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::show;
use crate::args::WorkflowRunArgs;
use crate::exit::UsageError;
use crate::{ask, print};
use cofferdam::workflow_file::is_yes;

/// Answers to the requests of one run.
pub(super) struct TypedAnswers {
    /// Ids of requests and their answers from the command line. Each answer is used once.
    given: Vec<(String, String)>,
    approves_all: bool,
    approved: Vec<String>,
}

impl TypedAnswers {
    /// Parses the answers of the command line.
    pub(super) fn new(args: &WorkflowRunArgs) -> Result<Self> {
        let given =
            args.answer.iter().map(|typed| match typed.split_once('=') {
                Some((id, text)) if !id.is_empty() => Ok((id.to_owned(), text.to_owned())),
                _ => Err(UsageError(format!("`{typed}` is not an answer; write --answer ID=TEXT"))
                    .into()),
            });
        let given: Vec<_> = given.collect::<Result<_>>()?;
        Ok(Self { given, approves_all: args.approval.yes, approved: args.approval.approve.clone() })
    }

    /// Answers as many requests as possible. Returns no answers if the run is canceled meanwhile.
    pub(super) async fn to(
        &mut self,
        requests: &[UserRequest],
        cancellation: &CancellationToken,
    ) -> Result<Vec<(String, Payload)>> {
        let mut answers = Vec::new();
        for request in requests {
            let answer = tokio::select! {
                answer = self.answer(request) => answer?,
                () = cancellation.cancelled() => return Ok(Vec::new()),
            };
            if let Some(answer) = answer {
                answers.push((request.id.clone(), answer));
            }
        }
        Ok(answers)
    }

    /// Returns the ids of answers that were not used, because there was no such request.
    pub(super) fn left(&self) -> impl Iterator<Item = &str> {
        self.given.iter().map(|(id, _)| id.as_str())
    }

    async fn answer(&mut self, request: &UserRequest) -> Result<Option<Payload>> {
        if let Some(place) = self.given.iter().position(|(id, _)| *id == request.id) {
            let (_, text) = self.given.remove(place);
            return read(request, &text).map(Some);
        }
        if let Some((tool, _)) = show::approval(request)
            // Flags do not approve calls that violate the label policy: they were given before the
            // user could know which data the model would see.
            && show::against(request).is_empty()
            && (self.approves_all || self.approved.iter().any(|approved| approved == tool))
        {
            return Ok(Some(Payload::json(json!(true))));
        }
        if !ask::is_possible() {
            return Ok(None);
        }
        print::note(&print::with_prefix(
            &format!("{} asks:", request.executor),
            &show::question(request),
        ));
        let is_approval = show::approval(request).is_some();
        let typed = match is_approval {
            true => ask::choice_later("Allow it? [y]es, [N]o: ").await,
            false => ask::ask_async("Answer: ").await,
        };
        read(request, &typed).map(Some)
    }
}

/// Parses an answer as the type that the request declares: a string as it was typed, other types as
/// JSON.
fn read(request: &UserRequest, text: &str) -> Result<Payload> {
    if show::approval(request).is_some() {
        return Ok(Payload::json(is_yes(text).into()));
    }
    if MessageType::Text.fits(&request.answer) {
        return Ok(Payload::text(text));
    }
    let value: Value = serde_json::from_str(text).map_err(|_| {
        UsageError(format!("the answer to `{}` is to be {}", request.id, request.answer))
    })?;
    Ok(Payload::json(value))
}
