//! Export requests of OTLP: spans in batches of a limited size.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::projector::SpanProjector;
use super::span::{attribute, string};
use crate::{LogDamage, LogStream, semconv};

/// Maximum number of spans in a request.
const SPANS_MAX: usize = 512;
/// Maximum bytes of the spans of a request, unless it has only one.
const SPAN_BYTES_MAX: usize = 1024 * 1024;

/// An export request (`ExportTraceServiceRequest`) with at most 512 spans and about a mebibyte.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceRequest {
    /// Body in JSON.
    pub body: String,
    /// Number of spans.
    pub spans: usize,
}

/// Export requests of a log, made while it is read. They need the memory of [`LogStream`] and
/// [`SpanProjector`] and that of one request.
#[derive(Debug)]
pub struct TraceRequests<'s> {
    stream: LogStream<'s>,
    is_at_end: bool,
    projector: SpanProjector,
    batches: TraceBatches,
}

/// Spans that are gathered for requests.
#[derive(Debug)]
pub(crate) struct TraceBatches {
    /// Body up to the first span.
    start: String,
    /// Spans in JSON, and the bytes of all of them.
    spans: VecDeque<String>,
    bytes: usize,
    fresh: Vec<Value>,
}

impl<'s> TraceRequests<'s> {
    /// Returns the requests of a log, for a service with a name.
    #[must_use]
    pub fn new(stream: LogStream<'s>, service: &str) -> Self {
        let (projector, batches) = (SpanProjector::default(), TraceBatches::new(service));
        Self { stream, is_at_end: false, projector, batches }
    }

    /// Returns the damage of the segments so far. It is never an error.
    #[must_use]
    pub fn damage(&self) -> &LogDamage {
        self.stream.damage()
    }
}

impl Iterator for TraceRequests<'_> {
    type Item = TraceRequest;

    fn next(&mut self) -> Option<TraceRequest> {
        while !self.is_at_end {
            match self.stream.next() {
                Some(item) => self.batches.project(|spans| self.projector.add(item, spans)),
                None => {
                    self.batches.project(|spans| self.projector.finish(spans));
                    self.is_at_end = true;
                }
            }
            if let Some(request) = self.batches.next_full() {
                return Some(request);
            }
        }
        self.batches.next_rest()
    }
}

impl TraceBatches {
    pub(crate) fn new(service: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let resource = json!({"attributes": [
            attribute(semconv::SERVICE_NAME, string(service)),
            attribute(semconv::SERVICE_VERSION, string(version)),
        ]});
        let scope = json!({"name": "cofferdam-record", "version": version});
        let start = format!(
            r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":["#
        );
        Self { start, spans: VecDeque::new(), bytes: 0, fresh: Vec::new() }
    }

    /// Adds the spans that `work` appends.
    pub(crate) fn project(&mut self, work: impl FnOnce(&mut Vec<Value>)) {
        work(&mut self.fresh);
        for span in self.fresh.drain(..) {
            let span = span.to_string();
            self.bytes += span.len() + 1;
            self.spans.push_back(span);
        }
    }

    /// Returns a request, if there are enough spans for a full one.
    pub(crate) fn next_full(&mut self) -> Option<TraceRequest> {
        let is_full = self.spans.len() >= SPANS_MAX || self.bytes >= SPAN_BYTES_MAX;
        is_full.then(|| self.next_rest()).flatten()
    }

    /// Returns a request, if there are any spans.
    pub(crate) fn next_rest(&mut self) -> Option<TraceRequest> {
        let mut request = TraceRequest { body: self.start.clone(), spans: 0 };
        let mut bytes = 0;
        while let Some(span) = self.spans.front()
            && (request.spans == 0
                || request.spans < SPANS_MAX && bytes + span.len() < SPAN_BYTES_MAX)
        {
            if request.spans > 0 {
                request.body.push(',');
            }
            request.body.push_str(span);
            request.spans += 1;
            bytes += span.len() + 1;
            self.spans.pop_front();
        }
        self.bytes -= bytes;
        request.body.push_str("]}]}]}");
        (request.spans > 0).then_some(request)
    }
}

#[cfg(test)]
mod tests;
