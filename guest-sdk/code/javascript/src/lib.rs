//! The JavaScript interpreter of code mode: one tool, `run_code`, that runs a program of a model.
//!
//! A fresh instance runs every program. It starts from a snapshot in which the engine is set up and
//! a warm-up program has run, so that a run only parses, checks and evaluates its own program.

mod calls;
mod catalog;
mod checks;
#[cfg(target_arch = "wasm32")]
mod component;
mod console;
mod convert;
mod engine;
mod failure;
mod host;
mod prepare;
mod raw;
mod run;
mod scan;
mod source;
#[cfg(test)]
mod tests;
mod timers;

pub use crate::engine::Interpreter;
pub use crate::failure::Failure;
pub use crate::host::{CallError, EndedCall, Host};
pub use crate::run::{Input, run};
