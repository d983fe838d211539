//! HTTP requests, with the feature `http` of the crate.
//!
//! ```
//! use cofferdam_sdk::http;
//! # use cofferdam_sdk::ToolFailure;
//! # fn tool() -> Result<String, ToolFailure> {
//! let response = http::get("https://api.example.com/items")
//!     .header("Accept", "application/json")
//!     .timeout(std::time::Duration::from_secs(10))
//!     .send()?
//!     .error_for_status()?;
//! let items: Vec<String> = response.json()?;
//! # Ok(items.join(", "))
//! # }
//! ```
//!
//! The host has the connections: it verifies certificates, and sends only requests that are
//! granted. The manifest of the plugin requests them, such as
//! `http = ["GET https://api.example.com/items"]`.
//! Each redirect is a request of its own and needs a grant too. There are no cookies and no
//! proxies, and compressed bodies are not decompressed.
//!
//! A component that does not use this module does not import `wasi:http`. Outside a component, in a
//! unit test, each request fails with [`Error::Connection`].

mod error;
#[cfg(target_arch = "wasm32")]
mod exchange;
#[cfg(not(target_arch = "wasm32"))]
#[path = "http/native.rs"]
mod exchange;
mod url;

use std::fmt;
use std::io::{self, Read};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use self::exchange::{BodyStream, Exchange};
use self::url::Url;

pub use self::error::Error;

/// Maximum number of redirects that a request follows by default.
const REDIRECTS_MAX: u32 = 10;
/// Headers that describe a body, which a redirect can drop.
const BODY_HEADERS: [&str; 5] =
    ["content-type", "content-length", "content-encoding", "content-language", "content-location"];
/// Headers that are not sent to another origin.
const SECRET_HEADERS: [&str; 2] = ["authorization", "cookie"];

/// Time of the monotonic clock, in nanoseconds, at which an exchange times out.
type Deadline = Option<u64>;

/// Creates a request with the method GET.
pub fn get(url: impl Into<String>) -> Request {
    Request::new("GET", url)
}

/// Creates a request with the method POST.
pub fn post(url: impl Into<String>) -> Request {
    Request::new("POST", url)
}

/// A request. [`send`](Self::send) sends it.
#[derive(Debug)]
#[must_use]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Body,
    timeout: Option<Duration>,
    redirects_max: u32,
    /// Error of an earlier step.
    error: Option<Error>,
}

/// Body of a request.
enum Body {
    None,
    Bytes(Vec<u8>),
    #[cfg_attr(not(target_arch = "wasm32"), expect(dead_code, reason = "tests send nothing"))]
    Source(Box<dyn Read>),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Source(_) => f.write_str("Source"),
        }
    }
}

/// Address and method of one request of an exchange.
struct Hop {
    url: Url,
    method: String,
}

/// Status and headers of a response.
struct Head {
    status: u16,
    headers: Vec<(String, String)>,
}

impl Head {
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }
}

impl Request {
    /// Creates a request. `method` is in capitals, such as `PUT`. `url` is absolute and begins with
    /// `https://` or `http://`; it is checked when the request is sent.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Body::None,
            timeout: None,
            redirects_max: REDIRECTS_MAX,
            error: None,
        }
    }

    /// Adds a header. Headers of the connection, such as `host`, cannot be sent.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Body::Bytes(body.into());
        self
    }

    /// Sets the body to a value as JSON, and its type unless there is a header `content-type`.
    pub fn json(mut self, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(bytes) => self.body = Body::Bytes(bytes),
            Err(error) => {
                self.error = Some(Error::Body(format!("the body is not JSON: {error}")));
            }
        }
        if self.has_header("content-type") {
            return self;
        }
        self.header("content-type", "application/json")
    }

    /// Sets the body to everything that `source` returns. It is read in parts while it is sent, so
    /// it can be larger than memory. It is sent in chunks unless there is a header
    /// `content-length`.
    pub fn body_from(mut self, source: impl Read + 'static) -> Self {
        self.body = Body::Source(Box::new(source));
        self
    }

    /// Sets the timeout of the exchange, from sending the request to the end of the response's
    /// body. Without it, the timeouts of the host and of the call apply.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the maximum number of redirects to follow; 10 by default. With 0, a redirect is a
    /// response like any other.
    ///
    /// 301 and 302 turn POST into GET, 303 turns each method but HEAD into GET, and 307 and 308
    /// repeat the request. If they ask for a body of [`body_from`](Self::body_from) again, the
    /// redirect is returned as the response. `authorization` and `cookie` are not sent to another
    /// origin.
    pub fn redirects_max(mut self, redirects_max: u32) -> Self {
        self.redirects_max = redirects_max;
        self
    }

    /// Sends the request and waits for the head of the response. A status of 400 or more is not an
    /// error.
    ///
    /// # Errors
    /// [`Error`].
    pub fn send(self) -> Result<Response, Error> {
        self.start()?.wait()
    }

    /// Sends the request with its body and does not wait for the response. Requests that are
    /// started one after the other run at the same time:
    ///
    /// ```
    /// # use cofferdam_sdk::http;
    /// # fn tool() -> Result<Vec<u16>, http::Error> {
    /// let urls = ["https://example.com/a", "https://example.com/b"];
    /// let pending: Vec<_> = urls.map(|url| http::get(url).start()).into_iter().collect::<Result<_, _>>()?;
    /// pending.into_iter().map(|request| Ok(request.wait()?.status())).collect()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error`] if the request is invalid, or if its body cannot be read or sent in time.
    pub fn start(mut self) -> Result<PendingRequest, Error> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        let hop = Hop { url: Url::parse(&self.url)?, method: std::mem::take(&mut self.method) };
        let deadline = self.timeout.map(|timeout| {
            let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
            exchange::now().saturating_add(timeout)
        });
        self.add_length(&hop.method);
        let exchange = Exchange::start(&hop, &self.headers, &mut self.body, deadline)?;
        Ok(PendingRequest { request: self, hop, deadline, exchange })
    }

    fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(found, _)| found.eq_ignore_ascii_case(name))
    }

    /// Adds the header `content-length` if the length is known and the method may have a body.
    fn add_length(&mut self, method: &str) {
        let length = match &self.body {
            Body::Bytes(bytes) => bytes.len(),
            Body::None if matches!(method, "POST" | "PUT" | "PATCH") => 0,
            _ => return,
        };
        if !self.has_header("content-length") {
            self.headers.push(("content-length".to_owned(), length.to_string()));
        }
    }
}

/// A request that was sent. Dropping it cancels the request.
#[must_use]
pub struct PendingRequest {
    request: Request,
    hop: Hop,
    deadline: Deadline,
    exchange: Exchange,
}

impl fmt::Debug for PendingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequest").field("request", &self.request).finish_non_exhaustive()
    }
}

impl PendingRequest {
    /// Waits for the head of the response and follows redirects.
    ///
    /// # Errors
    /// [`Error`].
    pub fn wait(self) -> Result<Response, Error> {
        let Self { mut request, mut hop, deadline, mut exchange } = self;
        let mut redirects_left = request.redirects_max;
        loop {
            let (head, incoming) = exchange.head(&hop.url, deadline)?;
            let Some(next) = next_hop(&request, &hop, &head)? else {
                return Ok(Response { url: hop.url, head, incoming, deadline });
            };
            // Ends the exchange, so that its connection is free for the next hop.
            #[cfg_attr(
                not(target_arch = "wasm32"),
                expect(clippy::drop_non_drop, reason = "nothing is open")
            )]
            drop(incoming);
            if redirects_left == 0 {
                let count = request.redirects_max;
                return Err(Error::Redirect(format!("stopped after {count} redirects")));
            }
            redirects_left -= 1;
            if !next.url.has_same_origin(&hop.url) {
                request.headers.retain(|(name, _)| !is_in(name, &SECRET_HEADERS));
            }
            if next.method != hop.method {
                request.body = Body::None;
                request.headers.retain(|(name, _)| !is_in(name, &BODY_HEADERS));
            }
            hop = next;
            exchange = Exchange::start(&hop, &request.headers, &mut request.body, deadline)?;
        }
    }
}

/// Returns the request that a redirect asks for. `None` if the response is no redirect to follow.
fn next_hop(request: &Request, hop: &Hop, head: &Head) -> Result<Option<Hop>, Error> {
    let Some(location) = head.header("location").filter(|_| request.redirects_max > 0) else {
        return Ok(None);
    };
    let becomes_get = match head.status {
        301 | 302 => hop.method == "POST",
        303 => hop.method != "HEAD",
        307 | 308 => false,
        _ => return Ok(None),
    };
    if !becomes_get && matches!(request.body, Body::Source(_)) {
        return Ok(None);
    }
    let url = hop.url.join(location).map_err(|_| {
        Error::Redirect(format!(
            "{} redirects to `{location}`, which is not a valid URL",
            hop.url.authority
        ))
    })?;
    let method = if becomes_get { "GET".to_owned() } else { hop.method.clone() };
    Ok(Some(Hop { url, method }))
}

fn is_in(name: &str, names: &[&str]) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// A response. Its body is read with [`bytes`](Self::bytes), [`text`](Self::text) or
/// [`json`](Self::json), or in parts as a [`Read`]. Dropping the response closes its connection.
pub struct Response {
    url: Url,
    head: Head,
    incoming: BodyStream,
    deadline: Deadline,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.head.status)
            .field("url", &self.url())
            .field("headers", &self.head.headers)
            .finish_non_exhaustive()
    }
}

impl Response {
    /// Returns the status, such as 200.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// Returns the URL of the last request, after redirects.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.to_string()
    }

    /// Returns the first header of this name, in any case. Bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }

    /// Returns all headers, in the order in which they arrived.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.head.headers.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Returns the response unless its status is 400 or more.
    ///
    /// # Errors
    /// [`Error::Status`].
    pub fn error_for_status(self) -> Result<Self, Error> {
        match self.status() {
            status @ 400.. => Err(Error::Status { status, url: self.url() }),
            _ => Ok(self),
        }
    }

    /// Reads the rest of the body.
    ///
    /// # Errors
    /// [`Error`] if the body ends early or takes too long.
    pub fn bytes(mut self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match self.read_part(&mut buffer)? {
                0 => return Ok(bytes),
                length => bytes.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            }
        }
    }

    /// Reads the rest of the body as UTF-8.
    ///
    /// # Errors
    /// [`Error::Body`] if it is not UTF-8, or the error of [`bytes`](Self::bytes).
    pub fn text(self) -> Result<String, Error> {
        let url = self.url();
        String::from_utf8(self.bytes()?)
            .map_err(|_| Error::Body(format!("the body of {url} is not UTF-8 text")))
    }

    /// Reads the rest of the body as JSON.
    ///
    /// # Errors
    /// [`Error::Body`] if it is not JSON of this type, or the error of [`bytes`](Self::bytes).
    pub fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let url = self.url();
        serde_json::from_slice(&self.bytes()?)
            .map_err(|error| Error::Body(format!("the body of {url} is not as expected: {error}")))
    }

    fn read_part(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        if buffer.is_empty() {
            return Ok(0);
        }
        self.incoming.read(buffer, &self.url, self.deadline)
    }
}

/// An error is an [`Error`] in an [`io::Error`].
impl Read for Response {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(self.read_part(buffer)?)
    }
}

#[cfg(test)]
mod tests;
