//! Host side of a call: the data of its store, and the functions that a guest can import.
//!
//! [`CallState`] is the data of one call. Each interface has its own file, which implements its
//! functions on that data; [`link`] connects them with the imports of a component, and [`imports`]
//! defines which imports exist. This module neither starts calls nor loads plugins.

mod call_info;
mod client;
mod clocks;
mod command_streams;
mod errors;
pub(crate) mod imports;
mod limiter;
pub(crate) mod link;
pub(crate) mod log;
mod network;
pub(crate) mod output;
mod plugin_context;
mod plugin_files;
mod secrets;
mod state;
mod toolbox;
mod wasi;
mod wasi_files;

pub(crate) use self::command_streams::{CapturedOutput, CommandStreams, OutputExceeded};
pub use self::imports::Capability;
pub(crate) use self::limiter::Limiter;
pub(crate) use self::plugin_context::PluginContext;
pub(crate) use self::state::{CallParts, CallState, DeniedCapability};
pub(crate) use self::wasi_files::CallFiles;
