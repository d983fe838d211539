//! Gets resources over HTTP.

mod address;
#[cfg(target_arch = "wasm32")]
mod request;

use cofferdam_sdk::{ToolFailure, tool};
use schemars::JsonSchema;
use serde::Serialize;

use crate::address::Address;

/// Maximum number of bytes of a body that a call returns, whatever it asks for.
const BODY_BYTES_MAX: usize = 512 << 10;

/// Response to a request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Response {
    /// The HTTP status, for example 200 or 404.
    status: u16,
    /// The media type, if the server names one.
    media_type: Option<String>,
    /// The address that a redirect points to. Fetch it to follow the redirect.
    location: Option<String>,
    /// The body; bytes that are not UTF-8 are replaced.
    text: String,
    /// True if the body is longer than `max_bytes`.
    truncated: bool,
}

/// Fetches a page or another resource over HTTP with GET. Redirects are reported, not followed.
#[tool(title = "Fetch", read_only, idempotent, open_world = true, output_schema)]
pub fn fetch(
    /// The address, for example `https://example.com/index.html`.
    url: String,
    /// Maximum number of bytes of the body to return, up to 524288.
    #[tool(default = 65_536)]
    max_bytes: usize,
) -> Result<Response, ToolFailure> {
    let address = Address::parse(&url)?;
    get(&address, max_bytes.min(BODY_BYTES_MAX))
}

#[cfg(target_arch = "wasm32")]
use request::get;

/// Returns a failure, because there is no network interface outside a component.
#[cfg(not(target_arch = "wasm32"))]
fn get(address: &Address<'_>, _bytes_max: usize) -> Result<Response, ToolFailure> {
    Err(ToolFailure::new(format!(
        "cannot reach {}: requests are sent in the sandbox only",
        address.authority
    )))
}

cofferdam_sdk::plugin!(fetch; manifest = "plugin.toml");
