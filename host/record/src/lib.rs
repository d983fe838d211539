//! Call log of the host: every tool call as one line in append-only segments.
//!
//! A [`Recorder`] receives the calls of a toolset ([`cofferdam_tool::sink::CallSink`]) and other
//! events, and writes them from one thread per process. Each process has a segment of its own, so
//! that several share one directory without waiting for each other. [`Log`] merges and filters
//! them.
//!
//! Payloads (arguments, results, output) never stand in a line. By default a line holds only a
//! keyed digest of each, computed after secrets were redacted. The caller's thread copies and
//! enqueues; formatting, redaction, digests and I/O happen on the writer's thread. A log that
//! cannot be written never fails a call: [`Recorder::health`] reports it.

mod blocks;
mod capture;
mod checkpoint;
mod cleaner;
mod components;
mod copy;
mod directory;
mod entry;
mod error;
mod event;
mod exchange;
mod filter;
mod finding;
mod follow;
mod heads;
#[cfg(any(feature = "otlp-http", feature = "witness"))]
mod http;
mod item;
mod lines;
mod log;
pub mod merkle;
mod metrics;
mod minutes;
mod note;
mod otlp;
mod payloads;
mod position;
mod proof;
mod queue;
mod recorder;
mod recordings;
mod retention;
mod scan;
mod sealer;
mod search;
mod segment_writer;
pub mod segments;
mod semconv;
mod stats;
mod stream;
mod summary;
mod time;
mod uses;
mod verify;
mod witness;
mod writer;
mod zone;

pub use checkpoint::{EvidenceError, LogCheckpoint};
pub use components::StoredComponent;
pub use copy::{
    ChangedFile, CopyError, FilePart, FileState, LogCollection, LogCopy, LogFiles, copied_logs,
};
pub use entry::{CallEntry, LOST, PayloadDigest, PayloadKind, REFUSED, RUNNING, SpanIds};
pub use error::RecordError;
pub use event::LogEvent;
pub use exchange::ModelExchange;
pub use filter::CallFilter;
pub use finding::{ClaimSource, FindingKind, LogFinding};
pub use follow::LogFollower;
pub use item::LogItem;
pub use log::{CallList, EventList, Log, TimedEvent};
pub use metrics::{CallMetrics, Gauge, gauges_text};
pub use minutes::MinuteStats;
pub use note::{NoteError, VerifierKey};
#[cfg(feature = "otlp-http")]
pub use otlp::{
    OtlpError, OtlpExport, OtlpExporter, OtlpHealth, OtlpOptions, OtlpReport, SentSpans,
};
pub use otlp::{SpanProjector, TraceRequest, TraceRequests};
pub use payloads::PayloadMode;
pub use position::{CallPosition, InvalidPosition};
pub use proof::{InclusionProof, ProofTarget, ProvenLine, check_proof, prove};
pub use queue::FullQueue;
pub use recorder::{RecordOptions, Recorder, RecorderHealth};
pub use recordings::{redacted, redacted_text};
pub use retention::PruneReport;
pub use search::LogDamage;
pub use stats::{StatsKey, ToolStats};
pub use stream::LogStream;
pub use time::{InvalidTime, UtcTime};
pub use uses::{CapabilityUse, PluginUses};
pub use verify::{VerifyOptions, VerifyReport, log_key, verify, verify_with};
#[cfg(feature = "witness")]
pub use witness::{WitnessClient, WitnessError, WitnessHealth, WitnessOptions, WitnessTask};
pub use witness::{WitnessKey, WitnessStatus};
