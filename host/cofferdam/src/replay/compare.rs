//! Compares two recordings of the same call.

use std::collections::BTreeMap;
use std::fmt;

use cofferdam_tool::record::FileChange;
use cofferdam_tool::recording::{CallRecording, RecordedContent, RecordedOutcome, RecordedRequest};
use serde::Serialize;
use serde_json::Value;

/// Maximum number of differences between two results that are listed.
const RESULT_DIFFERENCES_MAX: usize = 8;
/// Maximum length of a shown value, in bytes.
const SHOWN_BYTES_MAX: usize = 200;

/// Difference between a recorded call and its replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ReplayDifference {
    /// Part of the call that differs.
    pub kind: DifferenceKind,
    /// Position in the part, such as a path in the result or the name of a file.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub at: String,
    /// Value in the recording; `None` if it has none.
    pub recorded: Option<String>,
    /// Value in the replay; `None` if it has none.
    pub replayed: Option<String>,
}

/// Part of a call that can differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DifferenceKind {
    /// Success, failure or type of the error.
    Outcome,
    /// Something outside that the recording does not contain, such as a file that the recorded
    /// call did not read.
    Input,
    /// HTTP requests.
    Request,
    /// Calls of other tools.
    InnerCall,
    /// Questions to the caller.
    Question,
    /// Changes of files.
    File,
    /// Permissions that were refused.
    Permission,
    /// Returned value, or the failure's message.
    Result,
    /// Requests to the model, in a conversation.
    Model,
}

impl DifferenceKind {
    fn name(self) -> &'static str {
        match self {
            Self::Outcome => "outcome",
            Self::Input => "new input",
            Self::Request => "request",
            Self::InnerCall => "call of another tool",
            Self::Question => "question",
            Self::File => "file",
            Self::Permission => "refused permission",
            Self::Result => "result",
            Self::Model => "requests to the model",
        }
    }
}

impl ReplayDifference {
    fn new(
        kind: DifferenceKind,
        at: impl Into<String>,
        recorded: Option<String>,
        replayed: Option<String>,
    ) -> Self {
        Self { kind, at: at.into(), recorded, replayed }
    }

    /// Returns a summary that similar differences of other calls share.
    #[must_use]
    pub fn summary(&self) -> String {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        match self.kind {
            DifferenceKind::Outcome => {
                format!("outcome: {} → {}", value(&self.recorded), value(&self.replayed))
            }
            DifferenceKind::Input => format!("new input: {}", value(&self.replayed)),
            DifferenceKind::Result if self.at.is_empty() => "result".to_owned(),
            _ => format!("{}: {}", self.kind.name(), self.at),
        }
    }
}

impl fmt::Display for ReplayDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kind.name();
        let separator = if self.at.is_empty() { "" } else { " " };
        write!(f, "{name}{separator}{}: ", self.at)?;
        match (&self.recorded, &self.replayed) {
            (Some(recorded), Some(replayed)) => write!(f, "{recorded} → {replayed}"),
            (Some(recorded), None) => write!(f, "{recorded} is missing"),
            (None, Some(replayed)) if self.kind == DifferenceKind::Input => f.write_str(replayed),
            (None, Some(replayed)) => write!(f, "{replayed} is new"),
            (None, None) => Ok(()),
        }
    }
}

/// Returns the differences, the most important first. `missing` are inputs that the recording does
/// not contain.
pub(super) fn differences(
    recorded: &CallRecording,
    replayed: &CallRecording,
    missing: &[String],
) -> Vec<ReplayDifference> {
    let mut found = Vec::new();
    outcomes(recorded, replayed, &mut found);
    let input = |input: &String| {
        ReplayDifference::new(DifferenceKind::Input, "", None, Some(input.clone()))
    };
    found.extend(missing.iter().map(input));
    requests(recorded, replayed, &mut found);
    let inner = |recording: &CallRecording| {
        let calls = recording.inner_calls.iter();
        calls.map(|call| (call.tool.clone(), canonical(&call.arguments))).collect::<Vec<_>>()
    };
    sequences(DifferenceKind::InnerCall, &inner(recorded), &inner(replayed), &mut found);
    let questions = |recording: &CallRecording| {
        let asked = recording.questions.iter().flat_map(|asked| &asked.questions);
        asked
            .map(|(kind, parameters)| (kind.clone(), Value::Object(parameters.clone()).to_string()))
            .collect::<Vec<_>>()
    };
    sequences(DifferenceKind::Question, &questions(recorded), &questions(replayed), &mut found);
    files(&recorded.changes, &replayed.changes, &mut found);
    contents(&recorded.written, &replayed.written, &mut found);
    let refused = |recording: &CallRecording| {
        let names = recording.refused.iter();
        names.map(|refusal| (refusal.capability.clone(), String::new())).collect::<Vec<_>>()
    };
    sequences(DifferenceKind::Permission, &refused(recorded), &refused(replayed), &mut found);
    results(recorded, replayed, &mut found);
    found
}

/// Returns the difference between the texts that the model got as the result of a call.
#[cfg(feature = "agent")]
pub(super) fn shown_results(recorded: &str, replayed: &str) -> ReplayDifference {
    let (recorded, replayed) = (Some(cut(recorded)), Some(cut(replayed)));
    ReplayDifference::new(DifferenceKind::Result, "", recorded, replayed)
}

/// Returns the difference between the numbers of requests to the model in a turn.
#[cfg(feature = "agent")]
pub(super) fn model_requests(recorded: usize, replayed: usize) -> ReplayDifference {
    let (recorded, replayed) = (Some(recorded.to_string()), Some(replayed.to_string()));
    ReplayDifference::new(DifferenceKind::Model, "", recorded, replayed)
}

fn outcomes(recorded: &CallRecording, replayed: &CallRecording, found: &mut Vec<ReplayDifference>) {
    let word = |outcome: &RecordedOutcome| match outcome {
        RecordedOutcome::Ok(_) => "ok".to_owned(),
        RecordedOutcome::Failure(_) => "failure".to_owned(),
        RecordedOutcome::Error { error, .. } => error.clone(),
        RecordedOutcome::Cancelled => "cancelled".to_owned(),
    };
    let (before, after) = (word(&recorded.outcome), word(&replayed.outcome));
    if before != after {
        found.push(ReplayDifference::new(DifferenceKind::Outcome, "", Some(before), Some(after)));
    }
}

fn requests(recorded: &CallRecording, replayed: &CallRecording, found: &mut Vec<ReplayDifference>) {
    let name = |request: &RecordedRequest| format!("{} {}", request.method, request.url);
    let mut others: Vec<_> = replayed.requests.iter().map(Some).collect();
    for request in &recorded.requests {
        let is_same = |other: &&mut Option<&RecordedRequest>| {
            other.is_some_and(|other| name(other) == name(request))
        };
        let Some(other) = others.iter_mut().find(is_same).and_then(Option::take) else {
            let (at, sent) = (name(request), Some("the request".to_owned()));
            found.push(ReplayDifference::new(DifferenceKind::Request, at, sent, None));
            continue;
        };
        let bodies = (request.body.bytes(), other.body.bytes());
        // The body of a request that failed ends somewhere.
        let is_whole = request.is_complete && other.is_complete;
        if let (Some(before), Some(after)) = bodies
            && (if is_whole { before != after } else { !is_start(&before, &after) })
        {
            let shown = |bytes: &[u8]| cut(&format!("body {}", String::from_utf8_lossy(bytes)));
            found.push(ReplayDifference::new(
                DifferenceKind::Request,
                name(request),
                Some(shown(&before)),
                Some(shown(&after)),
            ));
        }
        let headers = |request: &RecordedRequest| {
            let mut headers = request.headers.clone();
            headers.sort();
            headers
        };
        if headers(request) != headers(other) {
            let shown = |request: &RecordedRequest| {
                let lines: Vec<_> =
                    headers(request).iter().map(|(key, value)| format!("{key}: {value}")).collect();
                cut(&lines.join(", "))
            };
            found.push(ReplayDifference::new(
                DifferenceKind::Request,
                name(request),
                Some(shown(request)),
                Some(shown(other)),
            ));
        }
    }
    // Requests that were not recorded are among the missing inputs.
}

/// Returns whether one body is the start of the other.
fn is_start(one: &[u8], other: &[u8]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Compares events in order: each has a name and further content.
fn sequences(
    kind: DifferenceKind,
    recorded: &[(String, String)],
    replayed: &[(String, String)],
    found: &mut Vec<ReplayDifference>,
) {
    for index in 0..recorded.len().max(replayed.len()) {
        let (before, after) = (recorded.get(index), replayed.get(index));
        if before == after {
            continue;
        }
        let shown = |event: &(String, String)| {
            if event.1.is_empty() { event.0.clone() } else { cut(&event.1) }
        };
        let at = before.or(after).map(|event| event.0.clone()).unwrap_or_default();
        found.push(ReplayDifference::new(kind, at, before.map(shown), after.map(shown)));
    }
}

fn files(recorded: &[FileChange], replayed: &[FileChange], found: &mut Vec<ReplayDifference>) {
    let by_path = |changes: &[FileChange]| -> BTreeMap<String, String> {
        let change = |change: &FileChange| {
            let what = serde_json::to_value(change.what).ok();
            let what = what.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
            (format!("/{}/{}", change.mount, change.path), format!("{what}, {} B", change.bytes))
        };
        changes.iter().map(change).collect()
    };
    let (before, after) = (by_path(recorded), by_path(replayed));
    let paths: std::collections::BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for path in paths {
        let (recorded, replayed) = (before.get(path), after.get(path));
        if recorded != replayed {
            found.push(ReplayDifference::new(
                DifferenceKind::File,
                path.as_str(),
                recorded.cloned(),
                replayed.cloned(),
            ));
        }
    }
}

/// Compares the contents of files that both have written.
fn contents(
    recorded: &BTreeMap<String, String>,
    replayed: &BTreeMap<String, String>,
    found: &mut Vec<ReplayDifference>,
) {
    for (path, before) in recorded {
        let is_known = |one: &ReplayDifference| one.kind == DifferenceKind::File && one.at == *path;
        if let Some(after) = replayed.get(path)
            && before != after
            && !found.iter().any(is_known)
        {
            let shown =
                |digest: &String| Some(format!("content {}", digest.get(..12).unwrap_or(digest)));
            let (before, after) = (shown(before), shown(after));
            found.push(ReplayDifference::new(DifferenceKind::File, path, before, after));
        }
    }
}

fn results(recorded: &CallRecording, replayed: &CallRecording, found: &mut Vec<ReplayDifference>) {
    let value = |outcome: &RecordedOutcome| match outcome {
        RecordedOutcome::Ok(contents) => {
            Some(Value::Array(contents.iter().map(content_value).collect()))
        }
        RecordedOutcome::Failure(failure) => Some(failure.error_value()),
        RecordedOutcome::Error { value, .. } => value.clone(),
        RecordedOutcome::Cancelled => None,
    };
    let (before, after) = (value(&recorded.outcome), value(&replayed.outcome));
    let is_same_kind =
        std::mem::discriminant(&recorded.outcome) == std::mem::discriminant(&replayed.outcome);
    // Another outcome has been reported, and its value is of another kind.
    if !is_same_kind {
        return;
    }
    if let (Some(before), Some(after)) = (before, after) {
        // Most results are a single content.
        match (single(&before), single(&after)) {
            (Some(before), Some(after)) => values("", before, after, found),
            _ => values("", &before, &after, found),
        }
    }
}

fn single(contents: &Value) -> Option<&Value> {
    match contents.as_array()?.as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

fn content_value(content: &RecordedContent) -> Value {
    match content {
        RecordedContent::Text(text) => Value::from(text.as_str()),
        RecordedContent::Json(text) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()))
        }
        other => serde_json::to_value(other).unwrap_or_default(),
    }
}

/// Adds the differences between two JSON values. The order of members does not matter.
fn values(at: &str, before: &Value, after: &Value, found: &mut Vec<ReplayDifference>) {
    let count = found.iter().filter(|one| one.kind == DifferenceKind::Result).count();
    if before == after || count >= RESULT_DIFFERENCES_MAX {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                let at = format!("{at}/{key}");
                match after.get(key) {
                    Some(other) => values(&at, value, other, found),
                    None => add_value(&at, Some(value), None, found),
                }
            }
            for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
                add_value(&format!("{at}/{key}"), None, Some(value), found);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                values(&format!("{at}/{index}"), before, after, found);
            }
        }
        _ => add_value(at, Some(before), Some(after), found),
    }
}

fn add_value(
    at: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<ReplayDifference>,
) {
    let shown = |value: &Value| cut(&value.to_string());
    found.push(ReplayDifference::new(
        DifferenceKind::Result,
        at,
        before.map(shown),
        after.map(shown),
    ));
}

/// Returns JSON text without differences in form.
fn canonical(text: &str) -> String {
    serde_json::from_str::<Value>(text).map_or_else(|_| text.to_owned(), |value| value.to_string())
}

fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN_BYTES_MAX);
    match text.get(..end) {
        Some(start) if end < text.len() => format!("{start}…"),
        _ => text.to_owned(),
    }
}
