//! Calls that a user makes on a page.

use std::sync::Arc;

use cofferdam_tool::invoke::FileEffects;
use cofferdam_tool::record::FileChangeKind;
use cofferdam_tool::{CallContext, CallRecord, Completion, RefusedCall};
use serde::{Deserialize, Serialize};

use crate::format;
use crate::text::{PAYLOAD_BYTES_MAX, plain};
use crate::workbench::Workbench;

/// Session that the calls of pages belong to.
const SESSION: &str = "inspector";
/// Maximum number of problems, refusals and changes that an answer lists.
const LISTED_MAX: usize = 100;

/// Call that a page asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trial {
    tool: String,
    /// Arguments as JSON.
    arguments: String,
    is_dry_run: bool,
}

/// Result of a call, as plain text with hostile characters as escapes.
#[derive(Debug, Default, Serialize)]
pub(crate) struct TrialResult {
    outcome: String,
    /// What a model sees.
    text: String,
    took: String,
    problems: Vec<TrialProblem>,
    /// Refusals and changed files, one in each line.
    notes: Vec<String>,
    diff: String,
    /// Path of the page of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<String>,
    /// Command that makes the call without a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// Problem with an argument.
#[derive(Debug, Serialize)]
struct TrialProblem {
    path: String,
    message: String,
}

impl Trial {
    /// Makes the call. Dropping the future stops it.
    pub(crate) async fn run(self, workbench: &Arc<dyn Workbench>) -> TrialResult {
        let tools = workbench.tools();
        let definition = match tools.definition(&self.tool) {
            Ok(definition) => definition,
            Err(refused) => return refusal(&refused, None),
        };
        let command = workbench.command(definition, &self.arguments);
        if workbench.forbids(definition, &self.arguments) {
            let text = "a rule of the configuration forbids this call".to_owned();
            return TrialResult {
                outcome: "refused".to_owned(),
                text,
                command,
                ..TrialResult::default()
            };
        }
        let context = CallContext {
            session: Some(SESSION.to_owned()),
            file_effects: FileEffects { is_dry_run: self.is_dry_run, shows_diffs: true },
            ..CallContext::new("inspector")
        };
        let arguments = Some(self.arguments.as_bytes());
        match tools.call(&self.tool, arguments, &context).await {
            Ok(Completion { outcome, record }) => {
                let text = outcome.shown().map(|shown| shown.text()).unwrap_or_default();
                let took = u64::try_from(record.phases.total().as_micros()).unwrap_or(u64::MAX);
                let page = record.number.and_then(|number| workbench.log_id(number));
                TrialResult {
                    outcome: outcome.word().to_owned(),
                    text: plain(&text, PAYLOAD_BYTES_MAX),
                    took: format::time(took),
                    notes: notes(&record),
                    diff: plain(&diff(&record), PAYLOAD_BYTES_MAX),
                    page: page.map(|id| format!("/call/{id}")),
                    command,
                    problems: Vec::new(),
                }
            }
            Err(refused) => refusal(&refused, command),
        }
    }
}

fn refusal(refused: &RefusedCall, command: Option<String>) -> TrialResult {
    let problems = match refused {
        RefusedCall::InvalidArguments(invalid) => invalid.problems(),
        _ => &[],
    };
    let problem = |problem: &cofferdam_tool::arguments::Problem| TrialProblem {
        path: problem.path.clone(),
        message: plain(&problem.message, PAYLOAD_BYTES_MAX),
    };
    TrialResult {
        outcome: "refused".to_owned(),
        text: plain(&refused.to_string(), PAYLOAD_BYTES_MAX),
        problems: problems.iter().take(LISTED_MAX).map(problem).collect(),
        command,
        ..TrialResult::default()
    }
}

fn notes(record: &CallRecord) -> Vec<String> {
    let refused = record.refused.iter().map(|refusal| format!("refused {}", refusal.capability));
    let files = record.files.iter().map(|change| {
        let word = match change.what {
            FileChangeKind::Created => "created",
            FileChangeKind::Deleted => "deleted",
            _ => "changed",
        };
        let would = if record.is_dry_run { "would have " } else { "" };
        format!("{would}{word} {}/{}", change.mount, change.path)
    });
    let hosts = record.hosts.iter().map(|host| format!("contacted {}:{}", host.host, host.port));
    let all = refused.chain(files).chain(hosts);
    all.take(LISTED_MAX).map(|note| plain(&note, PAYLOAD_BYTES_MAX)).collect()
}

fn diff(record: &CallRecord) -> String {
    record.files.iter().filter_map(|change| change.diff.as_deref()).collect::<Vec<_>>().join("\n")
}
