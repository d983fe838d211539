//! Tool calls across machines: gateways take calls, workers run them, and a message bus such as
//! NATS carries them.
//!
//! A [`Worker`] offers the tools of a [`Toolset`](cofferdam_tool::Toolset) on a [`Bus`]. A
//! [`Dispatcher`] finds these tools and returns each remote source as a
//! [`ToolSource`](cofferdam_tool::ToolSource), so that an MCP server or an agent uses it like a
//! local one.
//!
//! A bus may lose, delay and double messages, and workers may die at any time. The protocol
//! promises:
//!
//! - A call is started at most once, unless its tool is declared read-only or idempotent, or its
//!   caller gave an idempotency key. A worker only offers to run a call; it runs it when the
//!   gateway confirms this very offer, and a gateway confirms a second offer only if the worker of
//!   the first has answered that it did not start. Replayed and late messages therefore start
//!   nothing. Only calls of read-only tools need no confirmation.
//! - Each call ends exactly once for its caller. If the worker is lost after the confirmation, the
//!   end is [`DispatchError::OutcomeUnknown`], a type of its own.
//! - A call that was [handed over](cofferdam_tool::handover) ends even if its gateway dies: another
//!   one [continues](Dispatcher::resume) it. That starts nothing.
//! - All calls with one idempotency key get one result, as long as it is [stored](keyed).
//! - The client of the gateway is asked each question of a run once, and the answer reaches that
//!   run.
//! - Calls that a call makes of other tools at its worker are made only if the caller of the
//!   gateway allows each of them, as if the caller had the tools itself.
//! - A message carries no authority. Grants, limits and secrets are the worker's own; a gateway can
//!   only lower limits.
//!
//! Times travel as remaining milliseconds, never as points in time, so clocks need not agree.
//!
//! ```no_run
//! # async fn example(bus: std::sync::Arc<dyn cofferdam_cluster::Bus>)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! use cofferdam_cluster::{Dispatcher, DispatcherOptions};
//! use cofferdam_tool::Toolset;
//!
//! let dispatcher = Dispatcher::start(bus, DispatcherOptions::default()).await?;
//! let mut toolset = Toolset::new();
//! for source in dispatcher.discover().await? {
//!     toolset.add(source)?;
//! }
//! # Ok(())
//! # }
//! ```

pub mod bus;
mod catalog;
mod dispatcher;
mod error;
mod frame;
mod inner;
pub mod keyed;
mod message;
#[cfg(feature = "nats")]
pub mod nats;
mod question;
mod records;
mod result;
mod subject;
mod timing;
mod worker;

pub use bus::Bus;
pub use dispatcher::{Dispatcher, DispatcherOptions, RemoteSource, ResumedCall, SourceVersion};
pub use error::{ClusterError, DispatchError};
pub use records::{CollectedLog, LogCollector, LogServer};
pub use subject::{InvalidToken, NodeName, Tenant};
pub use timing::CallTiming;
pub use worker::{Worker, WorkerMonitor, WorkerOptions, WorkerStatus};
