//! Projection of a log to OpenTelemetry: requests of OTLP/HTTP in JSON (`POST /v1/traces`).
//!
//! A span is made of what the log has, after the fact: nothing is measured for it, and no payload
//! is in it. Ids are digests of the ids in the log, so that exporting a call twice gives the same
//! span twice, which collectors can tell.

#[cfg(feature = "otlp-http")]
mod export;
#[cfg(feature = "otlp-http")]
mod exporter;
mod index;
mod projector;
mod requests;
mod span;

#[cfg(feature = "otlp-http")]
pub use export::{OtlpExport, OtlpHealth};
#[cfg(feature = "otlp-http")]
pub use exporter::{OtlpError, OtlpExporter, OtlpOptions, OtlpReport, SentSpans};
pub use projector::SpanProjector;
pub use requests::{TraceRequest, TraceRequests};
