//! Answers to the requests of a run, from the command line or the terminal.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use cofferdam::record::LogEvent;
use cofferdam::records::CallLog;
use cofferdam_tool::Toolset;
use cofferdam_tool::prompt::{
    FirstAnswer, OperatorPrompt, PendingPrompts, PromptAnswer, PromptKind,
};
use cofferdam_workflow::{MessageType, Payload, UserRequest};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::show;
use crate::args::WorkflowRunArgs;
use crate::exit::UsageError;
use crate::inspector::{self, PromptedCall};
use crate::{ask, print};
use cofferdam::workflow_file::is_yes;

/// Property of a form that has the answer.
const ANSWER: &str = "answer";

/// Answers to the requests of one run.
pub(super) struct TypedAnswers {
    /// Ids of requests and their answers from the command line. Each answer is used once.
    given: Vec<(String, String)>,
    approves_all: bool,
    approved: Vec<String>,
    /// Pages that show requests besides the terminal.
    prompts: Option<PendingPrompts>,
    /// Tools that calls are of.
    toolset: Toolset,
    call_log: Option<Arc<CallLog>>,
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
        Ok(Self {
            given,
            approves_all: args.approval.yes,
            approved: args.approval.approve.clone(),
            prompts: None,
            toolset: Toolset::new(),
            call_log: None,
        })
    }

    /// Adds what is known after the tools are loaded: pages that show requests, the tools, and the
    /// log of decisions.
    pub(super) fn with(
        self,
        prompts: Option<PendingPrompts>,
        toolset: Toolset,
        call_log: Option<Arc<CallLog>>,
    ) -> Self {
        Self { prompts, toolset, call_log, ..self }
    }

    /// Returns whether approvals can be given during the run.
    pub(super) fn can_approve(&self, prompts: Option<&PendingPrompts>) -> bool {
        self.approves_all || !self.approved.is_empty() || inspector::is_possible(prompts)
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
        if let Some(index) = self.given.iter().position(|(id, _)| *id == request.id) {
            let (_, text) = self.given.remove(index);
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
        if !inspector::is_possible(self.prompts.as_ref()) {
            return Ok(None);
        }
        let started = Instant::now();
        let prompt = self.prompts.as_ref().map(|prompts| (prompts, self.prompt(request)));
        let (answer, by) = match inspector::first_answer(prompt, at_terminal(request)).await {
            Some(FirstAnswer::Elsewhere(typed)) => (Some(read(request, &typed)?), "operator"),
            Some(FirstAnswer::Operator(answer)) => (of_page(request, answer), "inspector"),
            None => (None, "operator"),
        };
        if let Some(answer) = &answer {
            self.record(request, answer, by, started.elapsed());
        }
        Ok(answer)
    }

    /// Returns a request as a prompt for the pages.
    fn prompt(&self, request: &UserRequest) -> OperatorPrompt {
        let (tool, arguments) = show::approval(request).unwrap_or_default();
        let caller = format!("{} of the workflow", request.executor);
        let call = PromptedCall { tool, arguments, caller: &caller, session: None };
        if show::approval(request).is_none() {
            return call.form(PromptKind::Form(schema(&request.answer)), &show::question(request));
        }
        call.approval(&self.toolset, &show::against(request))
    }

    /// Records the decision about a call.
    fn record(&self, request: &UserRequest, answer: &Payload, by: &str, waited: Duration) {
        let (Some(log), Some((tool, _))) = (&self.call_log, show::approval(request)) else {
            return;
        };
        let approved = answer.value.get("approved").unwrap_or(&answer.value);
        log.recorder().event(LogEvent::Approval {
            tool: tool.to_owned(),
            call: String::new(),
            by: by.to_owned(),
            decision: if approved == &json!(true) { "approved" } else { "denied" }.to_owned(),
            waited,
        });
    }
}

/// Asks at the terminal, and returns what is typed.
async fn at_terminal(request: &UserRequest) -> String {
    print::note(&print::with_prefix(
        &format!("{} asks:", request.executor),
        &show::question(request),
    ));
    match show::approval(request).is_some() {
        true => ask::choice_later("Allow it? [y]es, [N]o: ").await,
        false => ask::ask_async("Answer: ").await,
    }
}

/// Returns the schema of a form with an answer of a type.
fn schema(answer: &MessageType) -> Value {
    let field = match answer {
        MessageType::Text => json!({"type": "string"}),
        MessageType::Integer => json!({"type": "integer"}),
        MessageType::Number => json!({"type": "number"}),
        MessageType::Boolean => json!({"type": "boolean"}),
        MessageType::Object => json!({"type": "object"}),
        _ => json!({}),
    };
    json!({"type": "object", "properties": {ANSWER: field}, "required": [ANSWER]})
}

/// Returns the answer of a page, or `None` if the request stays open.
fn of_page(request: &UserRequest, answer: PromptAnswer) -> Option<Payload> {
    Some(match answer {
        PromptAnswer::Approved => Payload::json(json!(true)),
        PromptAnswer::Denied(reason) => Payload::json(json!({"approved": false, "reason": reason})),
        PromptAnswer::Filled(values) => {
            let value = values.get(ANSWER).cloned().unwrap_or_default();
            match value.as_str() {
                Some(text) if MessageType::Text.fits(&request.answer) => Payload::text(text),
                _ => Payload::json(value),
            }
        }
        PromptAnswer::Declined | PromptAnswer::Cancelled => return None,
    })
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
