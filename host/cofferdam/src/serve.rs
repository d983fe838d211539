//! MCP servers and workers that follow changes: their offer, access over HTTP, and reloading.

mod access;
#[cfg(feature = "cluster")]
mod agent_sources;
#[cfg(all(
    feature = "workflows",
    feature = "labels",
    any(feature = "anthropic", feature = "openai")
))]
mod agents;
#[cfg(not(all(
    feature = "workflows",
    feature = "labels",
    any(feature = "anthropic", feature = "openai")
)))]
#[path = "serve/agents_absent.rs"]
mod agents;
#[cfg(feature = "agent")]
pub(crate) mod call_rules;
mod followed;
mod offering;
mod reload;
mod running;
mod service;
#[cfg(feature = "skills")]
mod skill_offers;
mod store_resources;
#[cfg(feature = "inspector")]
mod workbench;

pub use self::access::HttpAccess;
pub use self::agents::ServedAgents;
#[cfg(feature = "cluster")]
pub(crate) use self::followed::FollowedTools;
pub(crate) use self::offering::ServedState;
use self::reload::follow;
#[cfg(feature = "cluster")]
pub(crate) use self::running::OfferTarget;
use self::running::RunningService;
pub use self::service::{ServeOptions, Service};

/// Checks what a configuration says about clients and what they are shown, without reading secrets.
pub(crate) fn check(file: &crate::config::ConfigFile) -> crate::Result<()> {
    access::of_config(file)?;
    store_resources::StoreResources::check(file)
}
