//! What an MCP server is made of: what is on offer, who may call, and what makes it change.

mod access;
mod offering;
mod reload;
mod running;
mod skill_offers;
mod store_resources;

pub(crate) use self::access::http_options;
pub(crate) use self::offering::Offering;
pub(crate) use self::reload::follow;
pub(crate) use self::running::Running;
