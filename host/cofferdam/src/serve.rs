//! MCP servers that follow changes: their offer, access over HTTP, and reloading.

mod access;
mod offering;
mod reload;
mod running;
mod service;
#[cfg(feature = "skills")]
mod skill_offers;
mod store_resources;

pub use self::access::HttpAccess;
use self::offering::ServedState;
use self::reload::follow;
use self::running::RunningService;
pub use self::service::{ServeOptions, Service};
