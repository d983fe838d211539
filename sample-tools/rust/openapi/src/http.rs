//! Sends requests.

use std::io::Read as _;

use cofferdam_sdk::{ToolFailure, http};

use crate::answer::Response;
use crate::request::Request;

/// Sends a request and reads at most `bytes_max` bytes of the response. Redirects are not followed,
/// so that every address is one of the document.
pub(crate) fn send(request: Request, bytes_max: usize) -> Result<Response, ToolFailure> {
    let name = request.to_string();
    let mut outgoing = http::Request::new(request.method.name(), request.url()).redirects_max(0);
    for (name, value) in request.headers {
        outgoing = outgoing.header(name, value);
    }
    if let Some(body) = request.body {
        outgoing = outgoing.body(body);
    }
    let response = outgoing.send()?;
    let header = |name| response.header(name).map(str::to_owned);
    let (status, location) = (response.status(), header("location"));
    let media_type = header("content-type").unwrap_or_default();
    let mut body = Vec::new();
    // One byte more tells whether there are more.
    response.take(bytes_max as u64 + 1).read_to_end(&mut body).map_err(|error| {
        ToolFailure::new(format!("the response to {name} broke off: {error}")).transient()
    })?;
    let is_truncated = body.len() > bytes_max;
    body.truncate(bytes_max);
    Ok(Response { status, media_type, location, body, is_truncated })
}
