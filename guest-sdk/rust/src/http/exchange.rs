//! One request and its response over `wasi:http`.

use std::io::Read;

use wasip2::clocks::monotonic_clock;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, HeaderError, IncomingBody, IncomingResponse, Method,
    OutgoingBody, OutgoingRequest, Scheme, http_error_code,
};
use wasip2::io::poll::{Pollable, poll};
use wasip2::io::streams::{InputStream, StreamError};

use super::{Body, Deadline, Error, Head, Hop, Url};

/// Maximum bytes that are read from the source of a body in one step.
const CHUNK_BYTES: usize = 64 << 10;

/// Returns the time of the clock that deadlines refer to, in nanoseconds.
pub(super) fn now() -> u64 {
    monotonic_clock::now()
}

/// Waits until an operation is ready.
fn wait(pollable: &Pollable, deadline: Deadline) -> Result<(), Error> {
    let Some(deadline) = deadline else {
        pollable.block();
        return Ok(());
    };
    let clock = monotonic_clock::subscribe_instant(deadline);
    if poll(&[pollable, &clock]).contains(&0) { Ok(()) } else { Err(Error::Timeout) }
}

/// A request that is sent, and its response.
pub(super) struct Exchange {
    future: FutureIncomingResponse,
}

impl Exchange {
    /// Sends a request with its body.
    pub(super) fn start(
        hop: &Hop,
        headers: &[(String, String)],
        body: &mut Body,
        deadline: Deadline,
    ) -> Result<Self, Error> {
        let request = outgoing(hop, headers)?;
        let outgoing_body = match body {
            Body::None => None,
            _ => request.body().ok(),
        };
        let future =
            outgoing_handler::handle(request, None).map_err(|code| error_of(&hop.url, &code))?;
        if let Some(outgoing_body) = outgoing_body {
            send(outgoing_body, body, deadline)?;
        }
        Ok(Self { future })
    }

    /// Waits for the head of the response.
    pub(super) fn head(self, url: &Url, deadline: Deadline) -> Result<(Head, BodyStream), Error> {
        wait(&self.future.subscribe(), deadline)?;
        let broken = || Error::Connection(format!("the connection to {} failed", url.authority));
        let response = match self.future.get() {
            Some(Ok(Ok(response))) => response,
            Some(Ok(Err(code))) => return Err(error_of(url, &code)),
            _ => return Err(broken()),
        };
        let headers = response.headers().entries();
        let head = Head {
            status: response.status(),
            headers: headers
                .into_iter()
                .map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()))
                .collect(),
        };
        let body = response.consume().map_err(|()| broken())?;
        let stream = body.stream().map_err(|()| broken())?;
        Ok((head, BodyStream { stream: Some(stream), _body: body, _response: response }))
    }
}

/// Body of a response. Its resources are dropped in the order of the fields, children first.
pub(super) struct BodyStream {
    /// `None` at the end of the body.
    stream: Option<InputStream>,
    _body: IncomingBody,
    _response: IncomingResponse,
}

impl BodyStream {
    /// Reads at least one byte into a buffer that is not empty. Returns 0 at the end of the body.
    pub(super) fn read(
        &mut self,
        buffer: &mut [u8],
        url: &Url,
        deadline: Deadline,
    ) -> Result<usize, Error> {
        while let Some(stream) = &self.stream {
            match stream.read(buffer.len() as u64) {
                Ok(chunk) if chunk.is_empty() => wait(&stream.subscribe(), deadline)?,
                Ok(chunk) => {
                    buffer[..chunk.len()].copy_from_slice(&chunk);
                    return Ok(chunk.len());
                }
                Err(StreamError::Closed) => self.stream = None,
                Err(StreamError::LastOperationFailed(cause)) => {
                    let code = http_error_code(&cause).unwrap_or(ErrorCode::HttpResponseIncomplete);
                    drop(cause);
                    self.stream = None;
                    return Err(error_of(url, &code));
                }
            }
        }
        Ok(0)
    }
}

/// Returns the head of a request.
fn outgoing(hop: &Hop, headers: &[(String, String)]) -> Result<OutgoingRequest, Error> {
    let fields = Fields::new();
    for (name, value) in headers {
        fields.append(name, value.as_bytes()).map_err(|error| {
            let reason = match error {
                HeaderError::Forbidden => "it belongs to the connection",
                HeaderError::InvalidSyntax | HeaderError::Immutable => "it is not a valid header",
            };
            Error::Invalid(format!("the header `{name}` cannot be sent: {reason}"))
        })?;
    }
    let Hop { url, method } = hop;
    let request = OutgoingRequest::new(fields);
    let scheme = if url.is_secure { Scheme::Https } else { Scheme::Http };
    let invalid = |()| Error::Invalid(format!("`{url}` is not a valid URL"));
    request.set_scheme(Some(&scheme)).map_err(invalid)?;
    request.set_authority(Some(&url.authority)).map_err(invalid)?;
    request.set_path_with_query(Some(&url.target)).map_err(invalid)?;
    let method = match method.as_str() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "OPTIONS" => Method::Options,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    };
    request
        .set_method(&method)
        .map_err(|()| Error::Invalid(format!("`{}` is not a valid method", hop.method)))?;
    Ok(request)
}

/// Sends a body. Stops without an error if the server reads no more of it: the response gives the
/// reason.
fn send(outgoing: OutgoingBody, body: &mut Body, deadline: Deadline) -> Result<(), Error> {
    let Ok(stream) = outgoing.write() else { return Ok(()) };
    let mut write = |mut bytes: &[u8]| {
        while !bytes.is_empty() {
            let Ok(permitted) = stream.check_write() else { return Ok(false) };
            if permitted == 0 {
                wait(&stream.subscribe(), deadline)?;
                continue;
            }
            let length = bytes.len().min(usize::try_from(permitted).unwrap_or(usize::MAX));
            let (now, later) = bytes.split_at(length);
            if stream.write(now).is_err() {
                return Ok(false);
            }
            bytes = later;
        }
        Ok::<_, Error>(true)
    };
    let is_complete = match body {
        Body::None => true,
        Body::Bytes(bytes) => write(bytes)?,
        Body::Source(source) => copy(source, &mut write)?,
    };
    drop(stream);
    if is_complete {
        // The response gives the reason of an error here too.
        let _ = OutgoingBody::finish(outgoing, None);
    }
    Ok(())
}

fn copy(
    source: &mut Box<dyn Read>,
    write: &mut impl FnMut(&[u8]) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let length = match source.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(Error::Body(format!(
                    "the body of the request cannot be read: {error}"
                )));
            }
        };
        if length == 0 {
            return Ok(true);
        }
        if !write(&buffer[..length])? {
            return Ok(false);
        }
    }
}

fn error_of(url: &Url, code: &ErrorCode) -> Error {
    use ErrorCode as Code;
    let (scheme, host) = (url.scheme(), &url.authority);
    let limit = |what: &str| Error::Limit(format!("the request to {host} reached a limit: {what}"));
    match code {
        Code::HttpRequestDenied if url.has_ambiguous_path() => Error::Refused(format!(
            "{host}: no grant for the path `{}`, which servers can read in two ways; request it \
             without `..`, `//`, `\\`, and without an escaped `/`, `\\` or `%`",
            url.target.split('?').next().unwrap_or_default()
        )),
        Code::HttpRequestDenied => Error::Refused(format!(
            "{host}: no grant for this request; the operator can allow it with --allow-http \
             {scheme}://{host}/"
        )),
        Code::DestinationIpProhibited => Error::Refused(format!(
            "{host}: no grant for its address, which is not public; the operator can allow it \
             with `addresses` beside the rule"
        )),
        Code::DnsTimeout => Error::Dns(format!("the lookup of the host {host} timed out")),
        Code::DnsError(_) => Error::Dns(format!("the host {host} is unknown")),
        Code::ConnectionTimeout
        | Code::ConnectionReadTimeout
        | Code::ConnectionWriteTimeout
        | Code::HttpResponseTimeout => Error::Timeout,
        Code::ConnectionRefused => {
            Error::Connection(format!("the connection to {host} was refused"))
        }
        Code::ConnectionTerminated | Code::HttpResponseIncomplete => Error::Connection(format!(
            "the connection to {host} was closed before the response was complete"
        )),
        Code::TlsCertificateError => Error::Tls(format!("the certificate of {host} was rejected")),
        Code::TlsProtocolError | Code::TlsAlertReceived(_) => {
            Error::Tls(format!("the TLS connection to {host} failed"))
        }
        Code::ConnectionLimitReached => limit("open connections of the host"),
        Code::HttpRequestBodySize(_) => limit("bytes that the call sends"),
        Code::HttpResponseBodySize(_) => limit("bytes that the call receives"),
        Code::HttpResponseHeaderSectionSize(_) => limit("size of the headers of a response"),
        Code::HttpRequestUriInvalid => Error::Invalid(format!("`{url}` is not a valid URL")),
        Code::HttpRequestMethodInvalid => {
            Error::Invalid(format!("the method of the request to {host} is invalid"))
        }
        Code::ConfigurationError => {
            Error::Connection(format!("{host}: a header that the operator configured has no value"))
        }
        other => Error::Connection(format!("the connection to {host} failed: {other:?}")),
    }
}
