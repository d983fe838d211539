//! Compares the result of a call with the expectations of its case.

use std::sync::Arc;

use cofferdam_files::{FileError, StorePath};
use cofferdam_tool::schema::equal;
use cofferdam_tool::{Completion, Outcome, Output, RefusedCall, ToolDefinition};
use serde_json::{Value, json};

use super::run::{CaseOutput, PreparedCase};
use super::{ErrorName, ExpectedDefinition, TestCase};
use crate::json;

/// Maximum bytes of a file that a case compares.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Returns a description of each difference from the case.
pub(super) async fn problems(
    case: &TestCase,
    prepared: &PreparedCase,
    ended: &Result<Completion, RefusedCall>,
    output: &Arc<CaseOutput>,
    language: Option<&str>,
) -> Vec<String> {
    let mut problems = Vec::new();
    problems.extend(end(case, ended, language));
    if let Ok(completion) = ended {
        let record = &completion.record;
        if let Some(part) = &case.stderr
            && !record.stderr_tail.contains(part)
            && !record.stdout_tail.contains(part)
        {
            problems.push(format!("{part:?} was not printed, but {:?}", record.stderr_tail));
        }
        // Output on stderr must never reach the model, whatever the outcome.
        if let (Some(part), Some(shown)) = (&case.stderr, completion.outcome.shown())
            && shown.text().contains(part)
        {
            problems.push(format!("{part:?} is shown to the model"));
        }
    }
    problems.extend(report_problems(case, output));
    problems.extend(files(case, prepared).await);
    if let Some(expected) = &case.definition {
        match prepared.definition(&case.tool) {
            Some(definition) => problems.extend(definition_problems(expected, definition)),
            None => problems.push("there is no such tool".to_owned()),
        }
    }
    problems
}

fn end(
    case: &TestCase,
    ended: &Result<Completion, RefusedCall>,
    language: Option<&str>,
) -> Option<String> {
    let completion = match ended {
        Ok(completion) => completion,
        Err(refused) => {
            let text = refused.to_string();
            return match &case.invalid {
                Some(part) if text.contains(part) => None,
                Some(part) => Some(format!("the host should have said {part:?} and said {text:?}")),
                None => Some(format!("the host did not call it: {text}")),
            };
        }
    };
    let got = || describe(completion);
    let should = |what: String| Some(format!("should have been {what} and was {}", got()));
    match &completion.outcome {
        Outcome::Ok(output) => {
            let value = match output {
                Output::Value(value) => case.result.as_ref().map(|expected| equal(expected, value)),
                Output::Contents(_) => case.contents.as_ref().map(|expected| {
                    let shown = completion.outcome.shown().map(|shown| json::result(&shown));
                    shown.is_some_and(|shown| {
                        shown.get("contents").is_some_and(|shown| equal(expected, shown))
                    })
                }),
            };
            if value == Some(true) { None } else { should(expected(case, language)) }
        }
        Outcome::Failure(failure) => {
            let error = failure.error_value();
            let is_right = case.failed
                || case.failure.as_ref().is_some_and(|expected| equal(expected, &error));
            if !is_right {
                return should(expected(case, language));
            }
            case.transient.filter(|transient| *transient != failure.transient).map(|transient| {
                format!("the mark should be {transient:?} and is {:?}", failure.transient)
            })
        }
        Outcome::Error(error) => {
            let name = case.error.as_ref().and_then(|error| error.of(language));
            if name == Some(error.type_name()) { None } else { should(expected(case, language)) }
        }
        _ => should(expected(case, language)),
    }
}

fn expected(case: &TestCase, language: Option<&str>) -> String {
    let value = |value: &Value| value.to_string();
    let ends = [
        case.result.as_ref().map(|result| format!("the value {}", value(result))),
        case.contents.as_ref().map(|contents| format!("the contents {}", value(contents))),
        case.failure.as_ref().map(|failure| format!("the failure {}", value(failure))),
        case.failed.then(|| "a failure that the tool reports".to_owned()),
        case.invalid.as_ref().map(|part| format!("refused by the host with {part:?}")),
        case.error.as_ref().map(|error| {
            format!("the error {}", error.of(language).unwrap_or("of another language"))
        }),
    ];
    ends.into_iter().flatten().next().unwrap_or_default()
}

fn describe(completion: &Completion) -> String {
    let shown = completion.outcome.shown().map(|shown| json::result(&shown)).unwrap_or_default();
    match &completion.outcome {
        Outcome::Ok(_) => format!("the value {shown}"),
        Outcome::Failure(failure) => format!("the failure {}", failure.error_value()),
        Outcome::Error(error) => {
            let detail = completion.record.detail.as_deref().unwrap_or_default();
            format!(
                "the error {} ({detail}); it printed {:?}",
                error.type_name(),
                completion.record.stderr_tail
            )
        }
        _ => "cancelled".to_owned(),
    }
}

impl ErrorName {
    fn of(&self, language: Option<&str>) -> Option<&str> {
        match self {
            Self::Any(name) => Some(name),
            Self::ByLanguage(names) => names.get(language?).map(String::as_str),
        }
    }
}

fn report_problems(case: &TestCase, output: &CaseOutput) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(expected) = &case.progress {
        let got = output.progress.lock();
        let got: Vec<_> =
            got.iter().map(|step| json!([step.done, step.total, step.message])).collect();
        let expected: Vec<_> = expected.iter().map(|step| json!(step)).collect();
        if !is_progress(&expected, &got) {
            let (expected, got) = (json!(expected), json!(got));
            problems.push(format!(
                "the progress should have been {expected}, or less of it, and was {got}"
            ));
        }
    }
    if let Some(expected) = &case.log {
        let got = output.log.lock();
        let word = |level| format!("{level:?}").to_lowercase();
        let got: Vec<_> =
            got.iter().map(|(level, message)| json!([word(*level), message])).collect();
        if json!(expected) != json!(got) {
            problems.push(format!(
                "the log should have been {} and was {}",
                json!(expected),
                json!(got)
            ));
        }
    }
    problems
}

/// Returns whether the reported progress is an ordered subset of the expected steps, and empty only
/// if that is. The host drops reports that follow each other too quickly.
fn is_progress(expected: &[Value], got: &[Value]) -> bool {
    let mut left = expected.iter();
    let is_in_order = got.iter().all(|step| left.any(|expected| equal(expected, step)));
    is_in_order && got.is_empty() == expected.is_empty()
}

async fn files(case: &TestCase, prepared: &PreparedCase) -> Vec<String> {
    let mut problems = Vec::new();
    for (mount, files) in case.files.iter().flatten() {
        let Some((_, store)) = prepared.stores.iter().find(|(name, _)| name == mount) else {
            problems.push(format!("there is no mount `{mount}`"));
            continue;
        };
        for (path, expected) in files {
            let read = match StorePath::file(path) {
                Ok(path) => store.read(&path, FILE_BYTES_MAX).await,
                Err(error) => {
                    problems.push(format!("`{path}`: {error}"));
                    continue;
                }
            };
            let got = match read {
                Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
                Err(FileError::NotFound) => None,
                Err(error) => {
                    problems.push(format!("`{path}` of `{mount}`: {error}"));
                    continue;
                }
            };
            if got != *expected {
                problems
                    .push(format!("`{path}` of `{mount}` should be {expected:?} and is {got:?}"));
            }
        }
    }
    problems
}

fn definition_problems(expected: &ExpectedDefinition, tool: &ToolDefinition) -> Vec<String> {
    let mut problems = Vec::new();
    if expected.title.is_some() && expected.title != tool.title {
        problems.push(format!("the title should be {:?} and is {:?}", expected.title, tool.title));
    }
    let hints = json!(tool.annotations);
    for (hint, value) in &expected.annotations {
        if hints.get(hint) != Some(value) {
            problems
                .push(format!("the hint {hint} should be {value} and is {:?}", hints.get(hint)));
        }
    }
    match (expected.output_schema, tool.output.is_some()) {
        (Some(true), false) => problems.push("there should be an output schema".to_owned()),
        (Some(false), true) => problems.push("there should be no output schema".to_owned()),
        _ => {}
    }
    let schema = tool.input.published();
    for parameter in &expected.described {
        let description =
            schema.pointer(&format!("/properties/{parameter}/description")).and_then(Value::as_str);
        if !description.is_some_and(|description| description.ends_with('.')) {
            problems.push(format!(
                "the parameter `{parameter}` should have a description with a period at its end"
            ));
        }
    }
    if let Some(required) = &expected.required {
        let mut got: Vec<_> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
        let mut required: Vec<_> = required.iter().map(|name| json!(name)).collect();
        got.sort_by_key(|name| name.to_string());
        required.sort_by_key(ToString::to_string);
        if !required.iter().eq(got.iter().copied()) {
            problems.push(format!("required should be {} and is {}", json!(required), json!(got)));
        }
    }
    problems
}
