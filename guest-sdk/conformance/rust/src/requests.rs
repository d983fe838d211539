//! The tool that sends requests.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::time::Duration;

use cofferdam_sdk::http::{Error, PendingRequest, Request};
use cofferdam_sdk::{ToolFailure, tool};
use serde::Serialize;

/// Maximum bytes of a body that is returned as text.
const TEXT_BYTES_MAX: usize = 2000;

#[derive(Serialize)]
pub struct Responded {
    status: u16,
    url: String,
    r#type: Option<String>,
    bytes: usize,
    text: String,
    ok: u32,
}

/// Sends requests over HTTP and returns the last response.
#[tool]
#[expect(clippy::too_many_arguments, reason = "the parameters of this tool in every language")]
pub fn http(
    /// The URL.
    url: String,
    /// The method.
    #[tool(default = "GET".to_owned())]
    method: String,
    /// Headers of the request.
    headers: Option<BTreeMap<String, String>>,
    /// The text to send.
    body: Option<String>,
    /// Number of bytes to send instead, in chunks.
    #[tool(default = 0)]
    send_bytes: u64,
    /// Timeout in milliseconds; 0 for none.
    #[tool(default = 0)]
    timeout_ms: u64,
    /// True to follow redirects.
    #[tool(default = true)]
    follow: bool,
    /// Number of requests, one after the other.
    #[tool(default = 1)]
    count: u32,
    /// Number of requests at once.
    #[tool(default = 1)]
    parallel: u32,
) -> Result<Option<Responded>, ToolFailure> {
    let request = || {
        let mut request = Request::new(&*method, &*url);
        for (name, value) in headers.iter().flatten() {
            request = request.header(name, value);
        }
        if send_bytes > 0 {
            request = request.body_from(io::repeat(b'x').take(send_bytes));
        } else if let Some(body) = &body {
            request = request.body(&**body);
        }
        if timeout_ms > 0 {
            request = request.timeout(Duration::from_millis(timeout_ms));
        }
        if follow { request } else { request.redirects_max(0) }
    };
    let (mut last, mut ok) = (None, 0);
    for _ in 0..count {
        let pending: Vec<_> = (0..parallel).map(|_| request().start()).collect();
        for pending in pending {
            let response = pending.and_then(response).map_err(|error| match error {
                Error::Timeout => ToolFailure::new("timeout"),
                error => error.into(),
            })?;
            ok += u32::from(response.status < 400);
            last = Some(response);
        }
    }
    Ok(last.map(|response| Responded { ok, ..response }))
}

fn response(pending: PendingRequest) -> Result<Responded, Error> {
    let response = pending.wait()?;
    let (status, url) = (response.status(), response.url());
    let r#type = response.header("content-type").map(str::to_owned);
    let body = response.bytes()?;
    let text = match body.len() {
        0..=TEXT_BYTES_MAX => String::from_utf8_lossy(&body).into_owned(),
        _ => String::new(),
    };
    Ok(Responded { status, url, r#type, bytes: body.len(), text, ok: 0 })
}
