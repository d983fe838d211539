//! Fetches a resource.

use cofferdam_sdk::{ToolFailure, tool};
use schemars::JsonSchema;
use serde::Serialize;

use crate::address::{self, Address};
use crate::charset::Body;
use crate::{content, request};

/// Maximum number of bytes of text that a call returns, whatever it asks for.
pub(crate) const TEXT_BYTES_MAX: usize = 512 << 10;

/// Maximum number of bytes of a body that are read. A page takes many times its size in memory.
pub(crate) const BODY_BYTES_MAX: usize = 2 << 20;

/// Maximum number of redirects to follow, whatever a call asks for.
const REDIRECTS_MAX: usize = 10;

/// Fetched resource.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Resource {
    /// Address that was read, after redirects.
    url: String,
    /// HTTP status, for example 200 or 404.
    status: u16,
    /// Media type, if the server names one.
    media_type: Option<String>,
    /// Title of a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    /// Target of a redirect that was not followed. Fetch it to follow the redirect.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    text: String,
    /// True if there is more text, or the body was too long to read.
    truncated: bool,
    /// Value of `start` that continues after this text.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_start: Option<usize>,
}

/// Fetches a web page as Markdown, or another text, over HTTP with GET. Links are absolute. Scripts
/// do not run. JSON is indented, other text is returned as it is, and images and other binary types
/// are refused.
#[tool(title = "Fetch", read_only, idempotent, open_world = true, output_schema)]
pub fn fetch(
    /// Address, for example `https://example.com/index.html`.
    url: String,
    /// Return only the main content of a page: no menus, headers, footers and sidebars.
    #[tool(default = false)]
    main_only: bool,
    /// Return the source of a page or of JSON as it is.
    #[tool(default = false)]
    raw: bool,
    /// Maximum number of bytes of text to return, up to 524288.
    #[tool(default = 65_536)]
    max_bytes: usize,
    /// Position in the text to start from: `next_start` of the call before.
    #[tool(default = 0)]
    start: usize,
    /// Maximum number of redirects to follow, up to 10. Each target needs a permission too.
    #[tool(default = 5)]
    redirects: usize,
) -> Result<Resource, ToolFailure> {
    let head = |reply: &request::Reply| (reply.status, reply.location.clone());
    let (url, reply) = follow(&url, redirects.min(REDIRECTS_MAX), request::get, head)?;
    let form = content::form(&url, &reply, raw)?;
    let location = redirect_target(&url, reply.status, reply.location.as_deref());
    let (status, media_type) = (reply.status, reply.media_type.clone());
    let (bytes, is_cut) = reply.read(BODY_BYTES_MAX)?;
    let body = Body { bytes: &bytes, media_type: media_type.as_deref(), is_cut };
    let content = content::convert(&url, form, body, main_only)?;
    let (text, next_start) = content::part(content.text, start, max_bytes.min(TEXT_BYTES_MAX));
    Ok(Resource {
        url,
        status,
        media_type,
        title: content.title,
        location,
        text,
        truncated: is_cut || next_start.is_some(),
        next_start,
    })
}

/// Sends requests until a reply is no redirect, or the limit is reached.
pub(crate) fn follow<R>(
    url: &str,
    redirects_max: usize,
    send: impl Fn(&Address<'_>) -> Result<R, ToolFailure>,
    head: impl Fn(&R) -> (u16, Option<String>),
) -> Result<(String, R), ToolFailure> {
    let mut url = url.trim().to_owned();
    let mut followed = 0;
    loop {
        let reply = Address::parse(&url).and_then(|address| send(&address));
        let reply = reply.map_err(|failure| after_redirects(failure, &url, followed))?;
        let (status, location) = head(&reply);
        match redirect_target(&url, status, location.as_deref()) {
            Some(target) if followed < redirects_max => {
                url = target;
                followed += 1;
            }
            _ => return Ok((url, reply)),
        }
    }
}

/// Adds to a failure that a redirect led to its address.
fn after_redirects(failure: ToolFailure, url: &str, followed: usize) -> ToolFailure {
    if followed == 0 {
        return failure;
    }
    let mut result = ToolFailure::new(format!("{} (redirected to {url})", failure.message()));
    if let Some(suggestion) = failure.suggested() {
        result = result.suggestion(suggestion);
    }
    match failure.is_transient() {
        Some(true) => result.transient(),
        Some(false) => result.permanent(),
        None => result,
    }
}

fn redirect_target(url: &str, status: u16, location: Option<&str>) -> Option<String> {
    let location = location.filter(|_| matches!(status, 301 | 302 | 303 | 307 | 308))?;
    address::resolve(url, location)
}
