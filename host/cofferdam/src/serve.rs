//! MCP servers that follow changes: what they offer, who may call, and what makes the offer change.

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
