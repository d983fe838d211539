//! Workflows: graphs of executors, and runs that can be paused, saved and resumed (`WF-1` to
//! `WF-12`).
//!
//! * **Graphs.** A [`WorkflowBuilder`] collects executors and edges;
//!   [`build`](WorkflowBuilder::build) returns the first error that it finds.
//! * **Supersteps.** A run is a sequence of supersteps. Messages and state written in one superstep
//!   are visible in the next one. The executors of a superstep run concurrently, but their effects
//!   are published in the order in which their first messages were sent. Two runs with the same
//!   answers therefore have the same events.
//! * **Plain data.** Messages are JSON with a [`MessageType`]. Everything that a run holds between
//!   two supersteps is in its [`Snapshot`], which [`Checkpoints`] save in a file store. Executors
//!   hold no state of their own.
//! * **Limits.** [`WorkflowLimits`] bound the supersteps, the waiting messages and their bytes. A
//!   run without limits is not possible.
//!
//! There are no background tasks: a run makes progress only while it is awaited or its stream is
//! read.
//!
//! ```
//! use cofferdam_workflow::{Step, Workflow, executor_fn};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let upper = executor_fn("upper", async |text: String, step: Step| Ok(step.send(&text.to_uppercase())?)).sending::<String>();
//! let count = executor_fn("count", async |text: String, step: Step| Ok(step.output(&text.len())?)).yielding::<usize>();
//! let workflow = Workflow::builder("measure")
//!     .executor(upper)
//!     .executor(count)
//!     .start("upper")
//!     .edge("upper", "count")
//!     .build()?;
//! let ended = workflow.run("hello").await?;
//! assert_eq!(ended.outputs().next().unwrap().value.value, 5);
//! # Ok(())
//! # }
//! ```

mod agent;
mod as_agent;
mod builder;
mod check;
mod checkpoint;
mod conversation;
#[cfg(feature = "yaml")]
pub mod definition;
mod edges;
mod error;
mod event;
mod executor;
mod function;
mod limits;
mod mermaid;
mod message;
mod orchestration;
mod outline;
mod outputs;
mod routing;
mod run;
mod size;
mod snapshot;
mod step;
mod structure;
mod superstep;

#[cfg(test)]
mod tests;

pub use agent::{AgentExecutor, ForwardMode};
pub use builder::{Workflow, WorkflowBuilder};
pub use checkpoint::{CheckpointError, CheckpointId, Checkpoints, RunCheckpoints};
pub use edges::{Condition, Switch, TargetSelection};
pub use error::{InvalidWorkflow, WorkflowError};
pub use event::{ProducedOutput, WorkflowEvent};
pub use executor::Executor;
pub use function::{FunctionExecutor, executor_fn};
pub use limits::{MAX_ITERATIONS, WorkflowLimits};
pub use message::{MessageType, Payload, TypeMismatch, TypedMessage};
pub use orchestration::{
    AgentSelector, Concurrent, GroupChat, Handoff, InvalidOrchestration, Magentic, MagenticLimits,
    Orchestration, Selector, Sequential, selector_fn,
};
pub use outline::OutlinedEdge;
pub use outputs::{IntermediateFrom, OutputFrom};
pub use run::{RunOutcome, WorkflowRun, WorkflowStream};
pub use snapshot::{Snapshot, UserRequest};
pub use step::{Step, StepError};
