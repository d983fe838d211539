//! Copies of calls that the caller's thread makes for the writer's.

use std::io;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_tool::label::Label;
use cofferdam_tool::output::ResourceBody;
use cofferdam_tool::record::FileChange;
use cofferdam_tool::sink::ObservedCall;
use cofferdam_tool::{
    CallContext, CallRecord, Completion, Content, Outcome, Output, RefusedCall, ToolName,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::entry::{CallLineKind, LINE_VERSION, REFUSED, micros};
use crate::payloads::RawPayload;
use crate::queue::{BeginItem, EndItem, RefusedItem};
use crate::{CallEntry, PayloadKind};

/// Maximum bytes of an id or a name that a caller chose.
const NAME_BYTES_MAX: usize = 256;

/// Bytes that are reserved for a payload: more than most have.
const PAYLOAD_BYTES: usize = 256;

/// Copies calls, with payloads up to a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallCapture {
    pub(crate) has_payloads: bool,
    pub(crate) payload_bytes_max: usize,
}

impl CallCapture {
    pub(crate) fn begin(
        self,
        number: u64,
        call: &ObservedCall<'_>,
        arguments: &Map<String, Value>,
    ) -> BeginItem {
        let plugin = call.plugin().cloned();
        let source = plugin.is_none().then(|| short(call.source.name()));
        let context = call.context;
        BeginItem {
            number,
            tool: call.tool.name.clone(),
            plugin,
            source,
            session: context.session.as_deref().map(short),
            call: short(&context.call_id),
            outer: context.outer.as_ref().map(|outer| short(&outer.call_id)),
            trace: context.trace,
            request: context.request.clone(),
            arguments: if self.has_payloads { self.json(arguments) } else { RawPayload::default() },
            // The last thing, so that the duration is not that of the copies.
            at: Instant::now(),
        }
    }

    pub(crate) fn end(
        self,
        number: u64,
        at: Instant,
        call: &ObservedCall<'_>,
        completion: &Completion,
    ) -> EndItem {
        let record = &completion.record;
        let inner_calls = u64::try_from(record.inner.len()).unwrap_or(0);
        EndItem {
            number,
            at,
            outcome: completion.outcome.word(),
            error: record.error_type.as_deref().map(short),
            refused: record.refused.clone(),
            files: record.files.iter().map(without_diff).collect(),
            files_left_out: record.files_left_out,
            is_dry_run: record.is_dry_run,
            hosts: record.hosts.clone(),
            http_sent_bytes: record.http_sent_bytes,
            http_received_bytes: record.http_received_bytes,
            server_request: record.server_request.clone(),
            inner_calls: record.inner_left_out.saturating_add(inner_calls),
            retries: record.attempts.saturating_sub(1),
            questions: record.questions,
            wait: record.phases.wait,
            run: record.phases.run,
            cpu: record.cpu,
            instructions: record.instructions,
            memory_peak_bytes: record.memory_peak_bytes,
            label: record.label.clone(),
            plugin: record.plugin.clone().filter(|_| call.plugin().is_none()),
            result: self.has_payloads.then(|| self.result(&completion.outcome)).flatten(),
            payloads: if self.has_payloads { self.other_payloads(record) } else { Vec::new() },
            recording: record.recording.clone(),
        }
    }

    pub(crate) fn refused(
        self,
        number: u64,
        name: &str,
        refused: &RefusedCall,
        context: &CallContext,
    ) -> RefusedItem {
        // A name that no tool can have is text of a model.
        let tool = ToolName::new(name).map_or_else(|_| String::new(), |_| name.to_owned());
        let detail = self.has_payloads.then(|| self.text(&refused.to_string()));
        let entry = CallEntry {
            v: LINE_VERSION,
            kind: CallLineKind::Refused,
            tool,
            outcome: REFUSED.to_owned(),
            session: context.session.as_deref().map(short),
            call: short(&context.call_id),
            outer: context.outer.as_ref().map(|outer| short(&outer.call_id)),
            error: Some(reason(refused).to_owned()),
            ..CallEntry::default()
        };
        RefusedItem { number, at: Instant::now(), entry, detail }
    }

    /// Returns the payloads of a call besides arguments and result.
    fn other_payloads(self, record: &CallRecord) -> Vec<(PayloadKind, RawPayload)> {
        let mut payloads = Vec::new();
        for (kind, text) in [
            (PayloadKind::Stdout, Some(&*record.stdout_tail)),
            (PayloadKind::Stderr, Some(&*record.stderr_tail)),
            (PayloadKind::Backtrace, record.backtrace.as_deref()),
        ] {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                payloads.push((kind, self.text(text)));
            }
        }
        if record.detail.is_some() || !record.store_failures.is_empty() {
            let failures = record.store_failures.iter().map(String::as_str);
            let lines: Vec<_> = record.detail.as_deref().into_iter().chain(failures).collect();
            payloads.push((PayloadKind::Detail, self.text(&lines.join("\n"))));
        }
        if record.files.iter().any(|change| change.diff.is_some()) {
            let diffs: String = record.files.iter().filter_map(|c| c.diff.as_deref()).collect();
            payloads.push((PayloadKind::Diff, self.text(&diffs)));
        }
        payloads
    }

    fn result(self, outcome: &Outcome) -> Option<RawPayload> {
        match outcome {
            Outcome::Ok(Output::Value(value)) => Some(self.json(value)),
            Outcome::Ok(Output::Contents(contents)) => {
                let contents: Vec<_> = contents.iter().map(content).collect();
                Some(self.json(&contents))
            }
            Outcome::Failure(failure) => Some(self.json(&failure.error_value())),
            Outcome::Error(error) if error.has_own_value() => Some(self.json(&error.error_value())),
            _ => None,
        }
    }

    fn json<T: Serialize + ?Sized>(self, value: &T) -> RawPayload {
        let mut buffer = LimitedBuffer {
            bytes: Vec::with_capacity(PAYLOAD_BYTES),
            bytes_max: self.payload_bytes_max,
            is_cut: false,
        };
        // Fails only at the limit.
        let _ = serde_json::to_writer(&mut buffer, value);
        RawPayload { bytes: buffer.bytes, is_cut: buffer.is_cut, is_json: true }
    }

    fn text(self, text: &str) -> RawPayload {
        let kept = text.as_bytes().get(..self.payload_bytes_max).unwrap_or(text.as_bytes());
        RawPayload { bytes: kept.to_vec(), is_cut: kept.len() < text.len(), is_json: false }
    }
}

/// Buffer that ends the serialization at its limit.
struct LimitedBuffer {
    bytes: Vec<u8>,
    bytes_max: usize,
    is_cut: bool,
}

impl io::Write for LimitedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.bytes_max.saturating_sub(self.bytes.len());
        match bytes.get(..room) {
            Some(kept) if kept.len() < bytes.len() => {
                self.bytes.extend_from_slice(kept);
                self.is_cut = true;
                Err(io::Error::from(io::ErrorKind::WriteZero))
            }
            _ => {
                self.bytes.extend_from_slice(bytes);
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl EndItem {
    /// Moves what the item has to an entry.
    pub(crate) fn fill(&mut self, entry: &mut CallEntry) {
        entry.v = LINE_VERSION;
        self.outcome.clone_into(&mut entry.outcome);
        entry.error = self.error.take();
        entry.refused = std::mem::take(&mut self.refused);
        entry.files = std::mem::take(&mut self.files);
        entry.files_left_out = self.files_left_out;
        entry.is_dry_run = self.is_dry_run;
        entry.hosts = std::mem::take(&mut self.hosts);
        entry.http_sent_bytes = self.http_sent_bytes;
        entry.http_received_bytes = self.http_received_bytes;
        entry.server_request = self.server_request.take();
        entry.inner_calls = self.inner_calls;
        entry.retries = u64::from(self.retries);
        entry.questions = u64::from(self.questions);
        entry.wait_us = micros(self.wait);
        entry.run_us = micros(self.run);
        entry.cpu_us = micros(self.cpu);
        entry.instructions = self.instructions;
        entry.memory_peak_bytes = self.memory_peak_bytes;
        entry.label = self.label.as_ref().map(label_words);
        if let Some(plugin) = &self.plugin {
            entry.plugin = Some(plugin.name.as_str().to_owned());
            entry.digest = Some(plugin.digest.as_ref().to_owned());
        }
    }
}

fn label_words(label: &Label) -> String {
    let (integrity, confidentiality) = (json!(label.integrity), json!(label.confidentiality));
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", word(&integrity), word(&confidentiality))
}

fn without_diff(change: &FileChange) -> FileChange {
    let FileChange { mount, path, what, bytes, .. } = change;
    FileChange { mount: mount.clone(), path: path.clone(), what: *what, bytes: *bytes, diff: None }
}

fn content(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!({ "text": text }),
        Content::Json(value) => json!({ "json": value }),
        Content::Blob { media_type, data } => {
            json!({ "media_type": media_type, "base64": STANDARD.encode(data) })
        }
        Content::Resource { uri, media_type, body } => {
            let (name, body) = match body {
                ResourceBody::Text(text) => ("text", text.clone()),
                ResourceBody::Blob(data) => ("base64", STANDARD.encode(data)),
            };
            json!({ "uri": uri, "media_type": media_type, name: body })
        }
        Content::Link { uri, name, media_type } => {
            json!({ "link": uri, "name": name, "media_type": media_type })
        }
        _ => Value::Null,
    }
}

/// Returns the word for the reason of a call that did not start.
pub(crate) fn reason(refused: &RefusedCall) -> &'static str {
    match refused {
        RefusedCall::UnknownTool { .. } => "UnknownTool",
        RefusedCall::InvalidArguments(_) => "InvalidArguments",
        RefusedCall::NoDryRun { .. } => "NoDryRun",
        RefusedCall::InvocationsUsedUp { .. } => "InvocationsUsedUp",
        RefusedCall::FailuresUsedUp { .. } => "FailuresUsedUp",
        _ => "Refused",
    }
}

/// Copies a name, cut at the end of a character.
fn short(name: &str) -> String {
    cut(name).to_owned()
}

/// Returns the start of a name that a caller or a server chose.
pub(crate) fn cut(name: &str) -> &str {
    name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default()
}
