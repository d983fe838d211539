//! Information-flow labels: what of a conversation can be relied on, who may have it, and which calls are therefore not made
//! (`LBL-1` to `LBL-15`).
//!
//! A [`LabelPolicy`] is off unless an agent is [built](crate::AgentBuilder::labels) with one. With it every result of a call
//! gets a [`Label`]; an untrusted result is hidden in a variable, or taints the context; and a tool is called only if the
//! context, and the variables that its arguments refer to, may go into it. It is inside of all middleware except an invoker:
//! it checks the arguments that the tool really gets and hides what the tool really returned, before anything else sees it.
//!
//! What it decides and where it does not reach is described in `docs/labels.md`.

mod arguments;
mod audit;
mod check;
mod ended;
mod flow;
mod inner;
mod policy;
mod store;
mod tools;

#[cfg(test)]
mod tests;

pub use audit::{Decided, LabelAudit, LabelDecision};
pub use check::Violation;
pub use cofferdam_tool::{Confidentiality, Integrity, Label, StatedBy, StatedLabels};
pub use policy::LabelPolicy;
pub use store::{context_of, taint};

pub(crate) use flow::{CallFlow, Flow, FlowLayer, label_result};
pub(crate) use tools::{INSPECT, QUARANTINE, VariableTools, definitions};
