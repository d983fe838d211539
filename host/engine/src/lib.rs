//! Runs plugins: WebAssembly components, with a separate sandbox for each call.
//!
//! # Policy
//!
//! * **One call, one instance.** Every call gets a fresh instance from a pre-linked, pooled,
//!   copy-on-write image and drops it afterwards, whatever the outcome.
//! * **Nothing is ambient.** A guest has no files, network, environment, arguments or standard
//!   input unless it asks for them and a [`Grants`] value allows it. Its output goes to the call
//!   record, up to a limit.
//! * **Untrusted bytes are never compiled in this process.** They pass a structural screen, and a
//!   child process with limits on CPU time and memory compiles them ([`Compiler`]).
//! * **Compiled code is authenticated.** Loading an artifact means running native code, so entries
//!   of the cache on disk carry a MAC with a key of this installation.
//! * **Every error is typed.** Traps and limits become an [`ErrorType`](cofferdam_tool::ErrorType)
//!   by the type of their cause, never by the text of a message.
//!
//! Only this crate uses wasmtime; none of its types appears in the public interface.

pub mod cache;
mod call;
mod command;
mod config;
mod engine;
mod engine_pool;
mod error;
#[cfg(feature = "floor")]
pub mod floor;
mod grants;
mod guest;
mod host_api;
mod load;
pub mod manifest;
mod plugin;
mod recording;
mod scheduler;
pub mod screen;
pub mod sys;
#[cfg(feature = "testing")]
pub mod testing;
pub mod typed;
pub mod usage;

/// Version of wasmtime.
pub const WASMTIME_VERSION: &str = wasmtime_environ::VERSION;

pub use config::{EngineConfig, PoolSize, ProcessBudget};
pub use engine::Engine;
pub use error::{EngineError, LoadError};
pub use grants::{Grants, Mount};
pub use host_api::Capability;
pub use load::compile::{CompileError, Compiler, compile_child};
pub use load::index::Approval;
pub use load::{Component, LoadEvent, LoadObserver};
pub use plugin::{
    LoadRequest, Plugin, PluginBatch, PluginInfo, PluginOptions, ReplayError, UnavailablePlugin,
};
pub use recording::Replay;
pub use sys::confine::Confinement;
