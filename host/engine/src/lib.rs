//! Runs plugins: WebAssembly components, each call in a sandbox of its own.
//!
//! # Policy
//!
//! * **One call, one instance.** Every call gets a fresh instance from a pre-linked, pooled,
//!   copy-on-write image and loses it afterwards, whatever the outcome.
//! * **Nothing is ambient.** A guest has no files, network, environment, arguments or standard
//!   input unless it asks and a [`Grants`] value says so. What it prints is kept in the call
//!   record, bounded.
//! * **Untrusted bytes are never compiled here.** They pass a structural screen and are compiled by
//!   a child process with limits on CPU time and memory ([`Compiler`]).
//! * **Compiled code is authenticated.** Loading an artifact is running native code, so the cache
//!   on disk carries a MAC with a key of this installation.
//! * **Every end is typed.** Traps and limits become an [`ErrorType`](cofferdam_tool::ErrorType) by
//!   the type of their cause and never by the text of a message.
//!
//! This is the only crate that names wasmtime: no type of it appears in the public interface.

pub mod cache;
mod call;
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
mod scheduler;
pub mod screen;
#[cfg(feature = "testing")]
pub mod testing;
pub mod typed;

pub use config::{EngineConfig, PoolSize, ProcessBudget};
pub use engine::Engine;
pub use error::{EngineError, LoadError};
pub use grants::{Grants, Mount};
pub use host_api::Capability;
pub use load::compile::{CompileError, Compiler, compile_child};
pub use load::index::Approval;
pub use load::{Component, LoadEvent, LoadObserver};
pub use plugin::{LoadRequest, Plugin, PluginBatch, PluginInfo, PluginOptions, UnavailablePlugin};
