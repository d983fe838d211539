//! Checks of requests before anything of them is used.
//!
//! A page of another site can make a browser send requests to this machine, by its address or by
//! a name that resolves to it (DNS rebinding). Such a request has another `Host`, another `Origin`
//! or another `Sec-Fetch-Site`, and is refused. The same holds for a request of a frame.

use std::net::SocketAddr;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

/// Site of a request, as browsers state it.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Destination of a response, as browsers state it.
const FETCH_DESTINATION: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Checks requests to one address.
#[derive(Debug)]
pub(crate) struct RequestGuard {
    hosts: [String; 3],
    origins: [String; 3],
}

/// Reason to refuse a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ForeignRequest {
    #[error("expected `Host` to be the address that was printed")]
    Host,
    #[error("expected no `Origin` of another page")]
    Origin,
    #[error(
        "expected an `Origin` with the address that was printed, found none; a request that \
         changes something has to state it"
    )]
    NoOrigin,
    #[error("expected a request of the same origin; open the address in a new tab")]
    Site,
    #[error("this page cannot be shown in a frame")]
    Frame,
}

impl RequestGuard {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let port = address.port();
        let hosts = ["127.0.0.1", "localhost", "[::1]"].map(|host| format!("{host}:{port}"));
        let origins = hosts.clone().map(|host| format!("http://{host}"));
        Self { hosts, origins }
    }

    /// Checks that a request was made by a page of this server, or by the user.
    pub(crate) fn check(&self, parts: &Parts) -> Result<(), ForeignRequest> {
        let headers = &parts.headers;
        let authority = parts.uri.authority().map(http::uri::Authority::as_str);
        let is_host = |host: &str| self.hosts.iter().any(|own| own == host);
        if !single(headers, &header::HOST).is_some_and(is_host) || !authority.is_none_or(is_host) {
            return Err(ForeignRequest::Host);
        }
        let is_origin = |origin: &str| self.origins.iter().any(|own| own == origin);
        match headers.contains_key(header::ORIGIN) {
            true if single(headers, &header::ORIGIN).is_some_and(is_origin) => {}
            true => return Err(ForeignRequest::Origin),
            // Browsers state the origin of every request that may change something.
            false if only_reads(&parts.method) => {}
            false => return Err(ForeignRequest::NoOrigin),
        }
        let is_own_site = match headers.contains_key(FETCH_SITE) {
            true => {
                single(headers, &FETCH_SITE).is_some_and(|s| ["same-origin", "none"].contains(&s))
            }
            // A client without this header is not a browser of today. It may log in, not more.
            false => !headers.contains_key(header::COOKIE),
        };
        if !is_own_site {
            return Err(ForeignRequest::Site);
        }
        let frames = ["iframe", "frame", "embed", "object", "fencedframe"];
        if single(headers, &FETCH_DESTINATION).is_some_and(|to| frames.contains(&to)) {
            return Err(ForeignRequest::Frame);
        }
        Ok(())
    }
}

/// Returns whether requests with this method change nothing.
pub(crate) fn only_reads(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}

/// Returns the value of a header that occurs once.
fn single<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().and_then(|value: &HeaderValue| value.to_str().ok())?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check(method: Method, uri: &str, headers: &[(&str, &str)]) -> Result<(), ForeignRequest> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        RequestGuard::new("127.0.0.1:8080".parse().unwrap()).check(&parts)
    }

    const HOST: (&str, &str) = ("host", "127.0.0.1:8080");
    const SITE: (&str, &str) = ("sec-fetch-site", "same-origin");

    #[test]
    fn hosts_are_the_loopback_names_with_the_port() {
        for host in ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"] {
            for method in [Method::GET, Method::HEAD] {
                assert_eq!(check(method, "/", &[("host", host)]), Ok(()), "{host}");
            }
        }
        let foreign = ["localhost", "127.0.0.1:8081", "evil.example:8080", "127.0.0.1.evil:8080"];
        for host in foreign.into_iter().chain(["", "localhost:8080.", "LOCALHOST:8080 "]) {
            let checked = check(Method::GET, "/", &[("host", host)]);
            assert_eq!(checked, Err(ForeignRequest::Host), "{host}");
        }
        assert_eq!(check(Method::GET, "/", &[]), Err(ForeignRequest::Host));
        let twice = [HOST, ("host", "evil.example")];
        assert_eq!(check(Method::GET, "/", &twice), Err(ForeignRequest::Host));
        let absolute = check(Method::GET, "http://evil.example/", &[HOST]);
        assert_eq!(absolute, Err(ForeignRequest::Host));
    }

    #[test]
    fn origins_are_those_of_the_own_pages() {
        let own = ("origin", "http://localhost:8080");
        assert_eq!(check(Method::POST, "/", &[HOST, own]), Ok(()));
        for origin in ["http://localhost:3000", "https://localhost:8080", "null", ""] {
            for method in [Method::GET, Method::POST] {
                let checked = check(method, "/", &[HOST, ("origin", origin)]);
                assert_eq!(checked, Err(ForeignRequest::Origin), "{origin}");
            }
        }
        let twice = [HOST, own, ("origin", "http://evil.example")];
        assert_eq!(check(Method::POST, "/", &twice), Err(ForeignRequest::Origin));
        assert_eq!(check(Method::POST, "/", &[HOST]), Err(ForeignRequest::NoOrigin));
    }

    #[test]
    fn sites_and_frames_are_checked_for_reading_too() {
        for site in ["same-origin", "none"] {
            assert_eq!(check(Method::GET, "/", &[HOST, ("sec-fetch-site", site)]), Ok(()));
        }
        for site in ["cross-site", "same-site", "", "none, none"] {
            let checked = check(Method::GET, "/", &[HOST, ("sec-fetch-site", site)]);
            assert_eq!(checked, Err(ForeignRequest::Site), "{site}");
        }
        let cookie = ("cookie", "a=b");
        assert_eq!(check(Method::GET, "/", &[HOST, cookie]), Err(ForeignRequest::Site));
        assert_eq!(check(Method::GET, "/", &[HOST, cookie, SITE]), Ok(()));
        let frame = ("sec-fetch-dest", "iframe");
        assert_eq!(check(Method::GET, "/", &[HOST, SITE, frame]), Err(ForeignRequest::Frame));
    }
}
