//! Requests through `wasi:http`.

use cofferdam_sdk::ToolFailure;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingResponse, OutgoingRequest, Scheme, http_error_code,
};
use wasip2::io::streams::StreamError;

use super::Reply;
use crate::address::Address;

/// Maximum number of bytes to read from the response in one step.
const CHUNK_BYTES: u64 = 64 << 10;

/// Headers of every request. Compression is not among them.
const HEADERS: [(&str, &str); 2] = [
    ("accept", "text/html, application/json;q=0.9, text/*;q=0.8, */*;q=0.5"),
    ("user-agent", concat!("cofferdam-web/", env!("CARGO_PKG_VERSION"))),
];

/// Body of a response.
pub(crate) struct Body {
    response: IncomingResponse,
    authority: String,
}

/// Sends a request with GET.
pub(crate) fn get(address: &Address<'_>) -> Result<Reply, ToolFailure> {
    let invalid = |part: &str| ToolFailure::new(format!("the {part} of the URL is invalid"));
    let headers = HEADERS.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    let headers = Fields::from_list(&headers).map_err(|_| ToolFailure::new("invalid headers"))?;
    let request = OutgoingRequest::new(headers);
    let scheme = if address.is_secure { Scheme::Https } else { Scheme::Http };
    request.set_scheme(Some(&scheme)).map_err(|()| invalid("scheme"))?;
    request.set_authority(Some(address.authority)).map_err(|()| invalid("host"))?;
    request.set_path_with_query(Some(&address.path)).map_err(|()| invalid("path"))?;
    let future = outgoing_handler::handle(request, None)
        .map_err(|error| failed(address.authority, &error))?;
    future.subscribe().block();
    let response = match future.get() {
        Some(Ok(Ok(response))) => response,
        Some(Ok(Err(error))) => return Err(failed(address.authority, &error)),
        _ => {
            return Err(
                ToolFailure::new(format!("no response from {}", address.authority)).transient()
            );
        }
    };
    let headers = response.headers();
    let header = |name: &str| {
        let value = headers.get(name).into_iter().next()?;
        Some(String::from_utf8_lossy(&value).into_owned())
    };
    let (status, media_type, location) =
        (response.status(), header("content-type"), header("location"));
    let encoding = header("content-encoding").map(|it| it.to_ascii_lowercase());
    let length = header("content-length").and_then(|length| length.parse().ok());
    // A child of the response, which must be dropped before it.
    drop(headers);
    let body = Body { response, authority: address.authority.to_owned() };
    Ok(Reply { status, media_type, encoding, length, location, body })
}

impl Body {
    /// Reads up to one byte more than `bytes_max`.
    pub(super) fn read(self, bytes_max: usize) -> Result<Vec<u8>, ToolFailure> {
        let authority = &self.authority;
        let broken =
            || ToolFailure::new(format!("the response of {authority} broke off")).transient();
        let body = self.response.consume().map_err(|()| broken())?;
        let stream = body.stream().map_err(|()| broken())?;
        let mut bytes = Vec::new();
        while bytes.len() <= bytes_max {
            match stream.blocking_read(CHUNK_BYTES) {
                Ok(chunk) => bytes.extend_from_slice(&chunk),
                Err(StreamError::Closed) => break,
                Err(StreamError::LastOperationFailed(error)) => {
                    return Err(http_error_code(&error)
                        .map_or_else(broken, |code| failed(authority, &code)));
                }
            }
        }
        Ok(bytes)
    }
}

/// Failure of a request, in words that a model can act on.
fn failed(host: &str, error: &ErrorCode) -> ToolFailure {
    match error {
        ErrorCode::HttpRequestDenied => {
            ToolFailure::new(format!("requests to {host} are not permitted")).permanent()
        }
        ErrorCode::DnsError(_) => ToolFailure::new(format!("the host {host} has no address")),
        ErrorCode::ConnectionTimeout | ErrorCode::HttpResponseTimeout => {
            ToolFailure::new(format!("{host} does not answer in time")).transient()
        }
        other => ToolFailure::new(format!("the request to {host} failed: {other:?}")),
    }
}
