//! The targets, one file each.

pub(crate) mod arguments;
pub(crate) mod cluster;
pub(crate) mod component;
pub(crate) mod declaration;
pub(crate) mod manifest;
pub(crate) mod mcp_client;
pub(crate) mod mcp_server;
pub(crate) mod paths;
pub(crate) mod permissions;
pub(crate) mod registry;
pub(crate) mod skill;
pub(crate) mod stores;
pub(crate) mod workflow;

use std::cell::RefCell;

use tokio::runtime::{Builder, Runtime};

/// Runs a future of a target on a runtime that the next input reuses.
fn block_on<F: Future>(future: F) -> F::Output {
    thread_local! {
        static RUNTIME: RefCell<Runtime> =
            RefCell::new(Builder::new_current_thread().enable_time().build().expect("a runtime can be made"));
    }
    RUNTIME.with_borrow(|runtime| runtime.block_on(future))
}
