//! Requests through `wasi:http`.

use cofferdam_sdk::ToolFailure;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingResponse, OutgoingRequest, Scheme, http_error_code,
};
use wasip2::io::streams::StreamError;

use crate::Response;
use crate::address::Address;

/// Maximum number of bytes to read from the response in one step.
const CHUNK_BYTES: u64 = 64 << 10;

/// Sends a request with GET and reads at most `bytes_max` bytes of the body.
pub(crate) fn get(address: &Address<'_>, bytes_max: usize) -> Result<Response, ToolFailure> {
    let invalid = |part: &str| ToolFailure::new(format!("the {part} of the URL is invalid"));
    let request = OutgoingRequest::new(Fields::new());
    let scheme = if address.is_secure { Scheme::Https } else { Scheme::Http };
    request.set_scheme(Some(&scheme)).map_err(|()| invalid("scheme"))?;
    request.set_authority(Some(address.authority)).map_err(|()| invalid("host"))?;
    request.set_path_with_query(Some(&address.path)).map_err(|()| invalid("path"))?;
    let future =
        outgoing_handler::handle(request, None).map_err(|error| failed(address, &error))?;
    future.subscribe().block();
    let response = match future.get() {
        Some(Ok(Ok(response))) => response,
        Some(Ok(Err(error))) => return Err(failed(address, &error)),
        _ => {
            return Err(
                ToolFailure::new(format!("no response from {}", address.authority)).transient()
            );
        }
    };
    let header = |name: &str| {
        let value = response.headers().get(name).into_iter().next()?;
        Some(String::from_utf8_lossy(&value).into_owned())
    };
    let (status, media_type, location) =
        (response.status(), header("content-type"), header("location"));
    let mut body = read(address, &response, bytes_max)?;
    let truncated = body.len() > bytes_max;
    body.truncate(bytes_max);
    Ok(Response {
        status,
        media_type,
        location,
        text: String::from_utf8_lossy(&body).into_owned(),
        truncated,
    })
}

/// Reads a body up to one byte more than `bytes_max`.
fn read(
    address: &Address<'_>,
    response: &IncomingResponse,
    bytes_max: usize,
) -> Result<Vec<u8>, ToolFailure> {
    let broken =
        || ToolFailure::new(format!("the response of {} broke off", address.authority)).transient();
    let body = response.consume().map_err(|()| broken())?;
    let stream = body.stream().map_err(|()| broken())?;
    let mut bytes = Vec::new();
    while bytes.len() <= bytes_max {
        match stream.blocking_read(CHUNK_BYTES) {
            Ok(chunk) => bytes.extend_from_slice(&chunk),
            Err(StreamError::Closed) => break,
            Err(StreamError::LastOperationFailed(error)) => {
                return Err(
                    http_error_code(&error).map_or_else(broken, |code| failed(address, &code))
                );
            }
        }
    }
    Ok(bytes)
}

/// Failure of a request, in words that a model can act on.
fn failed(address: &Address<'_>, error: &ErrorCode) -> ToolFailure {
    let host = address.authority;
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
