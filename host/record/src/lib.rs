//! Call log of the host: every tool call as one line in append-only segments.
//!
//! A [`Recorder`] receives the calls of a toolset ([`cofferdam_tool::CallSink`]) and other events,
//! and writes them from one thread per process. Each process has a segment of its own, so that
//! several share one directory without waiting for each other. [`Log`] merges and filters them.
//!
//! Payloads (arguments, results, output) never stand in a line. By default a line holds only a
//! keyed digest of each, computed after secrets were redacted. The caller's thread copies and
//! enqueues; formatting, redaction, digests and I/O happen on the writer's thread. A log that
//! cannot be written never fails a call: [`Recorder::health`] reports it.

mod directory;
mod error;
pub mod segments;
mod time;

pub use error::RecordError;
pub use time::UtcTime;
