//! Checks of the head of a request: its target host, and the media types that it accepts.

use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, header};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

/// Checks the target of a request (RFC 9112, section 3.2): there must be exactly one `Host` header,
/// and an absolute target must name the same host. The check that `Host` names this server thus
/// covers both.
pub(super) fn check_address<B>(request: &Request<B>) -> Result<(), &'static str> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, another) = (hosts.next(), hosts.next());
    let host = match (host, another) {
        (None, _) => return Err("the Host header is missing"),
        (_, Some(_)) => return Err("there is more than one Host header"),
        (Some(host), None) => {
            Authority::try_from(host.as_bytes()).map_err(|_| "the Host header is invalid")?
        }
    };
    let Some(target) = request.uri().authority() else { return Ok(()) };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(80);
    let is_http = request.uri().scheme_str().is_none_or(|scheme| scheme == "http");
    if is_http && target.host().eq_ignore_ascii_case(host.host()) && port(target) == port(&host) {
        Ok(())
    } else {
        Err("the target names another host than the Host header")
    }
}

/// Replaces `*/*`, and adds a missing `Accept`, with both media types of responses.
pub(super) fn widen_accept(headers: &mut HeaderMap) {
    let takes_both = match headers.contains_key(header::ACCEPT) {
        false => true,
        true => takes(headers, JSON) && takes(headers, EVENTS),
    };
    if takes_both {
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        );
    }
}

/// Returns whether a client accepts responses of a media type. The most specific range decides.
fn takes(headers: &HeaderMap, wanted: &str) -> bool {
    let ranges = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kind = wanted.split('/').next().unwrap_or_default();
    let fits = ranges.flat_map(|ranges| ranges.split(',')).filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let rank = match name.strip_suffix("/*") {
            _ if name == wanted => 2,
            Some("*") => 0,
            Some(prefix) if prefix == kind => 1,
            _ => return None,
        };
        let quality =
            parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        Some((
            rank,
            quality
                .and_then(|quality| quality.parse::<f32>().ok())
                .is_none_or(|quality| quality > 0.0),
        ))
    });
    fits.max().is_some_and(|(_, is_taken)| is_taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_address(target: &str, hosts: &[&str]) -> bool {
        let mut request = Request::builder().uri(target);
        for host in hosts {
            request = request.header(header::HOST, *host);
        }
        check_address(&request.body(()).unwrap()).is_ok()
    }

    #[test]
    fn a_request_names_one_host() {
        assert!(is_address("/mcp", &["localhost:80"]));
        assert!(is_address("http://LOCALHOST/mcp", &["localhost:80"]));
        assert!(!is_address("/mcp", &[]));
        assert!(!is_address("/mcp", &["localhost", "localhost"]));
        assert!(!is_address("/mcp", &["local host"]));
        assert!(!is_address("http://evil.example/mcp", &["localhost"]));
        assert!(!is_address("https://localhost/mcp", &["localhost"]));
        assert!(!is_address("http://localhost:81/mcp", &["localhost"]));
    }

    #[test]
    fn any_media_type_is_both_of_ours() {
        let widened = |accept: &[&str]| {
            let mut headers = HeaderMap::new();
            for accept in accept {
                headers.append(header::ACCEPT, accept.parse().unwrap());
            }
            widen_accept(&mut headers);
            headers
                .get(header::ACCEPT)
                .is_some_and(|accept| accept == "application/json, text/event-stream")
        };
        assert!(
            widened(&[]) && widened(&["*/*"]) && widened(&["application/json", "text/*;q=0.5"])
        );
        assert!(widened(&["text/html, */*;q=0.1"]));
        assert!(
            !widened(&["application/json"]) && !widened(&["text/html"]) && !widened(&["*/*;q=0"])
        );
        assert!(!widened(&["*/*, text/event-stream;q=0"]));
    }
}
