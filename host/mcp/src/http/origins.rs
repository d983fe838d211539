//! Web pages of other origins that may call: responses to browsers according to the Fetch standard
//! (CORS).

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use url::{Origin, Url};

/// Response headers that a page may read.
const EXPOSED: &str = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After";
/// Methods that a page may use.
const METHODS: &str = "GET, POST, DELETE";
/// Seconds that a browser may cache the response to a preflight request.
const AGE_MAX: &str = "600";
const REQUEST_PRIVATE_NETWORK: &str = "access-control-request-private-network";
const ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");

/// Configured origins.
pub(super) struct Origins(Vec<Origin>);

impl Origins {
    pub(super) fn new(origins: &[String]) -> Self {
        Self(origins.iter().filter_map(|origin| parse(origin)).collect())
    }

    /// Returns the value of `Origin` if it is a configured origin.
    pub(super) fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut values = headers.get_all(header::ORIGIN).iter();
        let (value, another) = (values.next()?, values.next());
        let origin = parse(value.to_str().ok()?)?;
        (another.is_none() && self.0.contains(&origin)).then(|| value.clone())
    }
}

fn parse(text: &str) -> Option<Origin> {
    let origin = Url::parse(text).ok()?.origin();
    origin.is_tuple().then_some(origin)
}

/// Returns whether a request is a CORS preflight.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ORIGIN)
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Fills in the response to a preflight request of an allowed origin.
pub(super) fn permit<B>(asked: &HeaderMap, response: &mut Response<B>) {
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(AGE_MAX));
    // Allowing all header names gives a page nothing that its origin does not: the names are
    // `Authorization` and those of MCP, some of which are derived from argument names.
    if let Some(names) =
        asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS).filter(|names| are_names(names))
    {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    if asked.get(REQUEST_PRIVATE_NETWORK).is_some_and(|value| value == "true") {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    for name in
        ["access-control-request-method", "access-control-request-headers", REQUEST_PRIVATE_NETWORK]
    {
        headers.append(header::VARY, HeaderValue::from_static(name));
    }
}

fn are_names(names: &HeaderValue) -> bool {
    let names = names.to_str().unwrap_or_default();
    names.split(',').all(|name| HeaderName::from_bytes(name.trim().as_bytes()).is_ok())
}

/// Lets a page of an allowed origin read a response, whatever it contains.
pub(super) fn expose<B>(origin: HeaderValue, response: &mut Response<B>) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_compared_as_a_browser_writes_it() {
        let origins =
            Origins::new(&["https://app.example:443".into(), "http://localhost:5173".into()]);
        let is_allowed = |origins_sent: &[&str]| {
            let mut headers = HeaderMap::new();
            for origin in origins_sent {
                headers.append(header::ORIGIN, origin.parse().unwrap());
            }
            origins.allowed(&headers).is_some()
        };
        assert!(is_allowed(&["https://app.example"]) && is_allowed(&["http://localhost:5173"]));
        for other in [
            "http://app.example",
            "https://app.example:444",
            "https://app.example.evil",
            "http://localhost",
            "null",
            "file://",
            "",
        ] {
            assert!(!is_allowed(&[other]), "{other}");
        }
        assert!(!is_allowed(&["https://app.example", "https://evil.example"]) && !is_allowed(&[]));
    }
}
