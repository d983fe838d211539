//! Output of a run, for users and for programs.

use std::time::Instant;

use async_trait::async_trait;
use cofferdam_agent::middleware::{FunctionContext, FunctionSignal};
use cofferdam_agent::{Middleware, Next};
use cofferdam_workflow::{UserRequest, WorkflowError, WorkflowEvent};
use serde_json::json;

use crate::commands::chat::describe_outcome;
use crate::commands::labels::LABELS_ADVICE;
use crate::print;

/// Maximum number of characters that are shown of a call's arguments.
const SHOWN_CHARS_MAX: usize = 160;

/// Outcome of a run.
pub(super) enum RunEnd {
    Done,
    /// The run waits for answers to these requests.
    Paused(Vec<UserRequest>),
    Failed(WorkflowError),
}

/// Shows one event: outputs on standard output and the rest on standard error, or everything as
/// JSON on standard output.
pub(super) fn event(event: &WorkflowEvent, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        return print::result(&serde_json::to_string(event)?);
    }
    match event {
        WorkflowEvent::Output(produced) => return print::result(&produced.text()),
        WorkflowEvent::SuperstepStarted { superstep } => {
            print::note(&format!("superstep {superstep}"))
        }
        WorkflowEvent::ExecutorInvoked { executor } => print::note(&format!("> {executor}")),
        WorkflowEvent::ExecutorCompleted { executor } => {
            print::note(&format!("  {executor} is done"))
        }
        WorkflowEvent::ExecutorFailed { executor, error } => {
            print::note(&format!("  {executor} has failed: {error}"));
        }
        WorkflowEvent::Intermediate(produced) => {
            print::note(&print::with_prefix(
                &format!("  {}:", produced.executor),
                &produced.text(),
            ));
        }
        WorkflowEvent::SuperstepCompleted { checkpoint: Some(checkpoint), .. } => {
            print::note(&format!("  checkpoint {checkpoint}"));
        }
        _ => {}
    }
    Ok(())
}

/// Prints the outcome of the run.
pub(super) fn end(end: &RunEnd, is_json: bool) -> anyhow::Result<()> {
    if is_json {
        let line = match end {
            RunEnd::Done => json!({"type": "end", "outcome": "done"}),
            RunEnd::Paused(requests) => {
                json!({"type": "end", "outcome": "paused", "requests": requests})
            }
            RunEnd::Failed(WorkflowError::Cancelled) => {
                json!({"type": "end", "outcome": "stopped"})
            }
            RunEnd::Failed(error) => {
                json!({"type": "end", "outcome": "failed", "error": error.to_string()})
            }
        };
        print::result(&line.to_string())?;
    }
    match end {
        RunEnd::Done => {}
        RunEnd::Paused(requests) => {
            for request in requests {
                print::note(&print::with_prefix(
                    &format!("{} waits for an answer:", request.id),
                    &question(request),
                ));
            }
        }
        RunEnd::Failed(WorkflowError::Cancelled) => print::note("stopped"),
        RunEnd::Failed(WorkflowError::PolicyMissing) => {
            print::note(&format!("error: {}; {LABELS_ADVICE}", WorkflowError::PolicyMissing));
        }
        RunEnd::Failed(error) => print::note(&format!("error: {error}")),
    }
    Ok(())
}

/// Returns the outcome of the run in words.
pub(super) fn end_words(end: &RunEnd) -> String {
    match end {
        RunEnd::Done => "done".to_owned(),
        RunEnd::Paused(_) => "ended without the answers that it needs".to_owned(),
        RunEnd::Failed(WorkflowError::Cancelled) => "stopped".to_owned(),
        RunEnd::Failed(error) => format!("failed: {error}"),
    }
}

/// Returns a request as a question for the user.
pub(super) fn question(request: &UserRequest) -> String {
    match approval(request) {
        Some((tool, arguments)) => {
            let arguments = print::arguments(arguments);
            let mut question =
                format!("the agent `{}` wants to call `{tool}` with {arguments}", request.executor);
            against(request)
                .iter()
                .for_each(|reason| question.push_str(&format!("\nagainst it: {reason}")));
            question
        }
        None => request.prompt.display_text(),
    }
}

/// Returns the tool and the arguments of the call if the request asks for an approval. Output of
/// agents cannot imitate such a request, because it is a string.
pub(super) fn approval(request: &UserRequest) -> Option<(&str, &str)> {
    let prompt = request.prompt.value.as_object()?;
    (prompt.get("kind")? == "approval").then_some(())?;
    Some((prompt.get("tool")?.as_str()?, prompt.get("arguments")?.as_str()?))
}

/// Returns the objections of the label policy to a call that needs approval.
pub(super) fn against(request: &UserRequest) -> Vec<&str> {
    let against = request.prompt.value.get("against").and_then(serde_json::Value::as_array);
    against.into_iter().flatten().filter_map(serde_json::Value::as_str).collect()
}

/// Shows when each call of an agent starts and how it ends.
pub(super) struct ShowCalls {
    pub(super) agent: String,
}

#[async_trait]
impl Middleware<FunctionContext> for ShowCalls {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        let (agent, tool) = (&self.agent, context.tool.name.as_str().to_owned());
        let arguments: String =
            context.arguments.to_text().replace('\n', " ").chars().take(SHOWN_CHARS_MAX).collect();
        print::note(&format!("  {agent} calls {tool} {arguments}"));
        let started = Instant::now();
        let ended = next.run(context).await;
        let end = describe_outcome(&ended, context.result.as_ref());
        print::note(&format!("  {agent}: {tool}: {end}, {}", print::time(started.elapsed())));
        ended
    }
}
