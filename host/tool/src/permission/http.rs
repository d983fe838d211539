//! Rules for HTTP requests.
//!
//! A rule is one line: `GET,HEAD https://api.example.com:8443/v1`. Without methods it applies to
//! all methods, without a port to the scheme's default port; `:*` is any port, and the path is a
//! prefix of whole segments.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use super::{Host, HostPattern, InvalidHost};

/// Longest rule in bytes.
const RULE_BYTES_MAX: usize = 2048;

/// Longest method in bytes.
const METHOD_BYTES_MAX: usize = 32;

/// Rule that matches HTTP requests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpRule {
    /// Methods that the rule matches.
    pub methods: HttpMethods,
    /// Scheme that the rule matches: plain or over TLS, never both.
    pub scheme: HttpScheme,
    /// Hosts that the rule matches.
    pub host: HostPattern,
    /// Ports that the rule matches.
    pub port: PortRule,
    /// Path prefix of whole segments, starting with `/` and not ending with it; empty for every
    /// path.
    path: String,
}

/// Scheme of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HttpScheme {
    /// HTTP without encryption.
    Http,
    /// HTTP over TLS.
    Https,
}

/// Set of request methods.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HttpMethods {
    /// Every method.
    Any,
    /// Only these methods, in upper case; at least one.
    Only(BTreeSet<String>),
}

/// Set of ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortRule {
    /// Every port.
    Any,
    /// One port.
    Exactly(u16),
}

/// Target of a request, in the form that rules match.
#[derive(Debug, Clone, Copy)]
pub struct HttpTarget<'a> {
    /// Method as sent on the wire.
    pub method: &'a str,
    /// Scheme of the URL.
    pub scheme: HttpScheme,
    /// Host of the URL.
    pub host: &'a Host,
    /// Port of the URL, or the scheme's default port if it has none.
    pub port: u16,
    /// Path of the URL, with or without a query. An empty path is `/`.
    pub path: &'a str,
}

impl HttpTarget<'_> {
    /// Returns whether a server could read the path in two ways, so that only a rule for every path
    /// matches.
    #[must_use]
    pub fn has_ambiguous_path(&self) -> bool {
        !has_one_reading(self.path.split(['?', '#']).next().unwrap_or_default())
    }
}

/// Error returned for a string that is not a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHttpRule {
    /// The string does not have the form of a rule.
    #[error(
        "write it as `GET,POST https://host:port/path`; methods, port and path may be left out"
    )]
    Form,
    /// The scheme is neither `https` nor `http`.
    #[error("has a scheme that is neither `https` nor `http`")]
    Scheme,
    /// The method is invalid.
    #[error("has a method that is not made of the letters A-Z")]
    Method,
    /// The host is invalid.
    #[error("has a host that {0}")]
    Host(InvalidHost),
    /// The port is invalid.
    #[error("has a port that is neither `*` nor a number from 1 to 65535")]
    Port,
    /// The path is one that servers could read in two ways.
    #[error(
        "has a path with `.` or `..` segments, empty segments, `%`, `\\`, `*`, `?` or `#`: write \
         a plain prefix such as `/v1/items`"
    )]
    Path,
    /// The rule is too long.
    #[error("is longer than 2048 bytes")]
    Length,
}

impl HttpScheme {
    /// Returns the port of a URL without one.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// Returns the scheme as in a URL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

impl HttpMethods {
    fn matches(&self, method: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(methods) => methods.contains(method),
        }
    }

    fn intersect(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, narrower) | (narrower, Self::Any) => Some(narrower.clone()),
            (Self::Only(a), Self::Only(b)) => {
                let both: BTreeSet<_> = a.intersection(b).cloned().collect();
                (!both.is_empty()).then_some(Self::Only(both))
            }
        }
    }
}

impl PortRule {
    /// Returns whether the rule matches `port`.
    #[must_use]
    pub fn matches(self, port: u16) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(one) => one == port,
        }
    }

    /// Returns the rule for the ports that both rules match.
    #[must_use]
    pub fn intersect(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, narrower) | (narrower, Self::Any) => Some(narrower),
            (one, another) => (one == another).then_some(one),
        }
    }
}

impl HttpRule {
    /// Returns the narrowest rule for requests like `target`: the same method, scheme, host, port
    /// and path. An operator can be offered to grant it when `target` was denied.
    ///
    /// An ambiguous path is only matched by a rule for every path. A method that no rule can name
    /// ends in `?`, so that the rule cannot be written into a configuration.
    #[must_use]
    pub fn for_target(target: &HttpTarget<'_>) -> Self {
        let methods = match method(target.method) {
            Ok(method) => HttpMethods::Only(BTreeSet::from([method])),
            Err(_) => {
                let shown: String = target.method.chars().take(METHOD_BYTES_MAX).collect();
                HttpMethods::Only(BTreeSet::from([shown + "?"]))
            }
        };
        let path = target.path.split(['?', '#']).next().unwrap_or_default();
        let path = path_prefix(path).ok().filter(|path| path.len() <= RULE_BYTES_MAX / 2);
        Self {
            methods,
            scheme: target.scheme,
            host: HostPattern::Exactly(target.host.clone()),
            port: PortRule::Exactly(target.port),
            path: path.unwrap_or_default(),
        }
    }

    /// Returns whether the rule matches a request.
    ///
    /// A path that a server could read as another one (with `..`, an encoded separator, an empty
    /// segment) is only matched by rules for every path.
    #[must_use]
    pub fn matches(&self, target: &HttpTarget<'_>) -> bool {
        self.methods.matches(target.method)
            && self.scheme == target.scheme
            && self.port.matches(target.port)
            && self.host.matches(target.host)
            && self.matches_path(target.path)
    }

    fn matches_path(&self, path: &str) -> bool {
        if self.path.is_empty() {
            return true;
        }
        let path = path.split(['?', '#']).next().unwrap_or_default();
        has_one_reading(path) && is_prefix(&self.path, path)
    }

    /// Returns the rule for the requests that both rules match, if there are any.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        if self.scheme != other.scheme {
            return None;
        }
        let path = match (is_prefix(&self.path, &other.path), is_prefix(&other.path, &self.path)) {
            (true, _) => other.path.clone(),
            (_, true) => self.path.clone(),
            _ => return None,
        };
        Some(Self {
            methods: self.methods.intersect(&other.methods)?,
            scheme: self.scheme,
            host: self.host.intersect(&other.host)?,
            port: self.port.intersect(other.port)?,
            path,
        })
    }
}

/// Returns whether `prefix` consists of the first segments of `path`.
fn is_prefix(prefix: &str, path: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether every server reads the path as the segments that it shows.
fn has_one_reading(path: &str) -> bool {
    let mut decoded = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        let (before, escape) = rest.split_at(at);
        decoded.push_str(before);
        let Some(digits) = escape.get(1..3) else { return false };
        match u8::from_str_radix(digits, 16) {
            // An encoded separator, or an encoded `%` that a server may decode again.
            Ok(b'/' | b'\\' | b'%' | 0) | Err(_) => return false,
            Ok(byte) => decoded.push(char::from(byte)),
        }
        rest = escape.get(3..).unwrap_or_default();
    }
    decoded.push_str(rest);
    let is_plain = |segment: &str| {
        // Some servers strip parameters from a segment before they interpret it.
        let name = segment.split(';').next().unwrap_or_default();
        !matches!(name, "." | "..") && !segment.contains('\\')
    };
    // The path may be empty or end with a separator. Other empty segments are ambiguous.
    let below = decoded.strip_prefix('/').unwrap_or(&decoded);
    let inner = below.strip_suffix('/').unwrap_or(below);
    below.is_empty() || inner.split('/').all(|segment| !segment.is_empty() && is_plain(segment))
}

fn method(text: &str) -> Result<String, InvalidHttpRule> {
    let is_method = (1..=METHOD_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    if is_method { Ok(text.to_owned()) } else { Err(InvalidHttpRule::Method) }
}

impl FromStr for HttpRule {
    type Err = InvalidHttpRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > RULE_BYTES_MAX {
            return Err(InvalidHttpRule::Length);
        }
        let (methods, url) = match text.trim().split_once(char::is_whitespace) {
            Some(("*", url)) => (HttpMethods::Any, url.trim_start()),
            Some((methods, url)) => {
                let methods: Result<_, _> = methods.split(',').map(method).collect();
                (HttpMethods::Only(methods?), url.trim_start())
            }
            None => (HttpMethods::Any, text.trim()),
        };
        let (scheme, rest) = url.split_once("://").ok_or(InvalidHttpRule::Form)?;
        let scheme = match scheme {
            "https" => HttpScheme::Https,
            "http" => HttpScheme::Http,
            _ => return Err(InvalidHttpRule::Scheme),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = host_and_port(authority, scheme)?;
        Ok(Self { methods, scheme, host, port, path: path_prefix(path)? })
    }
}

fn host_and_port(
    authority: &str,
    scheme: HttpScheme,
) -> Result<(HostPattern, PortRule), InvalidHttpRule> {
    // The colon of a port comes after the bracket of an IPv6 address.
    let (host, port) = match authority.rfind(':') {
        Some(at) if !authority.ends_with(']') => {
            let (host, port) = authority.split_at(at);
            (host, port_rule(port.trim_start_matches(':'))?)
        }
        _ => (authority, PortRule::Exactly(scheme.default_port())),
    };
    Ok((HostPattern::parse(host).map_err(InvalidHttpRule::Host)?, port))
}

fn port_rule(text: &str) -> Result<PortRule, InvalidHttpRule> {
    match text {
        "*" => Ok(PortRule::Any),
        number if number.bytes().all(|b| b.is_ascii_digit()) => match number.parse() {
            Ok(port) if port != 0 => Ok(PortRule::Exactly(port)),
            _ => Err(InvalidHttpRule::Port),
        },
        _ => Err(InvalidHttpRule::Port),
    }
}

fn path_prefix(path: &str) -> Result<String, InvalidHttpRule> {
    let is_ambiguous =
        path.contains(['%', '\\', '*', '?', '#', ' ']) || path.chars().any(char::is_control);
    if is_ambiguous || !has_one_reading(path) {
        return Err(InvalidHttpRule::Path);
    }
    Ok(path.strip_suffix('/').unwrap_or(path).to_owned())
}

impl fmt::Display for HttpRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let HttpMethods::Only(methods) = &self.methods {
            let methods: Vec<_> = methods.iter().map(String::as_str).collect();
            write!(f, "{} ", methods.join(","))?;
        }
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        match self.port {
            PortRule::Any => f.write_str(":*")?,
            PortRule::Exactly(port) if port == self.scheme.default_port() => {}
            PortRule::Exactly(port) => write!(f, ":{port}")?,
        }
        f.write_str(if self.path.is_empty() { "/" } else { &self.path })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(text: &str) -> HttpRule {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn admits(rule: &HttpRule, method: &str, url: &str) -> bool {
        let (scheme, rest) = url.split_once("://").unwrap();
        let scheme = if scheme == "https" { HttpScheme::Https } else { HttpScheme::Http };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (host, port) = host_and_port(authority, scheme).unwrap();
        let HostPattern::Exactly(host) = host else { panic!("{url}") };
        let PortRule::Exactly(port) = port else { panic!("{url}") };
        rule.matches(&HttpTarget { method, scheme, host: &host, port, path })
    }

    #[test]
    fn a_rule_means_what_it_says() {
        let narrow = rule("GET,HEAD https://api.example.com/v1");
        assert!(admits(&narrow, "GET", "https://api.example.com/v1"));
        assert!(admits(&narrow, "HEAD", "https://API.example.com:443/v1/items?q=../x"));
        for (method, url) in [
            ("POST", "https://api.example.com/v1"),
            ("get", "https://api.example.com/v1"),
            ("GET", "http://api.example.com/v1"),
            ("GET", "https://api.example.com:8443/v1"),
            ("GET", "https://example.com/v1"),
            ("GET", "https://api.example.com.evil.org/v1"),
            ("GET", "https://api.example.com/v10"),
            ("GET", "https://api.example.com/"),
            ("GET", "https://api.example.com"),
        ] {
            assert!(!admits(&narrow, method, url), "{method} {url}");
        }
    }

    #[test]
    fn a_path_with_two_readings_is_never_below_a_prefix() {
        let narrow = rule("https://h.example/v1");
        for path in [
            "/v1/../admin",
            "/v1/..",
            "/v1/./x",
            "/v1/%2e%2e/admin",
            "/v1/%2E./admin",
            "/v1//admin",
            "/v1/..%2fadmin",
            "/v1/..%5cadmin",
            "/v1/..\\admin",
            "/v1/%252e%252e/admin",
            "/v1/..;/admin",
            "/v1/%",
            "/v1/%0",
            "/v1/%zz",
            "/v1/%00",
        ] {
            assert!(!admits(&narrow, "GET", &format!("https://h.example{path}")), "{path}");
            assert!(
                admits(&rule("https://h.example/"), "GET", &format!("https://h.example{path}")),
                "{path}"
            );
        }
        for path in ["/v1/", "/v1/a%20b", "/v1/a.b/..c", "/v1/a?next=/../x", "/v1#/../x"] {
            assert!(admits(&narrow, "GET", &format!("https://h.example{path}")), "{path}");
        }
    }

    #[test]
    fn a_rule_has_one_spelling() {
        for (text, spelling) in [
            ("https://A.example", "https://a.example/"),
            ("* https://a.example:443/", "https://a.example/"),
            ("POST,GET  http://*.a.example:8080/x/", "GET,POST http://*.a.example:8080/x"),
            ("https://*:*/", "https://*:*/"),
            ("http://[::1]:80/", "http://[::1]/"),
        ] {
            assert_eq!(rule(text).to_string(), spelling);
            assert_eq!(rule(spelling), rule(text));
        }
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in [
            "",
            "a.example",
            "ftp://a.example",
            "HTTPS://a.example",
            "get https://a.example",
            "GET, https://a.example",
            "https://",
            "https://a.example:0",
            "https://a.example:65536",
            "https://a.example:",
            "https://a.example:+1",
            "https://user@a.example",
            "https://a.example/../x",
            "https://a.example/%41",
            "https://a.example/a?b",
            "https://a.example/a//b",
            "https://a.example//",
            "https://a*.example",
            "https://[::1",
            "https://127.1",
            "https://a.example /x",
        ] {
            assert!(text.parse::<HttpRule>().is_err(), "{text}");
        }
    }

    fn any_rule() -> impl Strategy<Value = String> {
        let methods = prop::sample::select(vec!["", "GET ", "POST ", "GET,POST ", "PUT,GET "]);
        let scheme = prop::sample::select(vec!["http", "https"]);
        let host = prop::sample::select(vec![
            "*",
            "*.b",
            "*.a.b",
            "b",
            "a.b",
            "x.a.b",
            "9.9.9.9",
            "127.0.0.1",
            "[::1]",
        ]);
        let port = prop::sample::select(vec!["", ":*", ":80", ":443", ":81"]);
        let path = prop::sample::select(vec!["", "/", "/v", "/v/w", "/vw", "/w"]);
        (methods, scheme, host, port, path)
            .prop_map(|(m, s, h, p, q)| format!("{m}{s}://{h}{p}{q}"))
    }

    fn any_request() -> impl Strategy<Value = (&'static str, String)> {
        let method = prop::sample::select(vec!["GET", "POST", "PUT", "DELETE"]);
        let scheme = prop::sample::select(vec!["http", "https"]);
        let host = prop::sample::select(vec![
            "b",
            "a.b",
            "x.a.b",
            "y.x.a.b",
            "ab",
            "9.9.9.9",
            "127.0.0.1",
            "[::1]",
        ]);
        let port = prop::sample::select(vec!["", ":80", ":443", ":81", ":82"]);
        let path = prop::sample::select(vec![
            "", "/", "/v", "/v/", "/v/w", "/v/w/x", "/vw", "/v/../w", "/w?v",
        ]);
        (method, scheme, host, port, path)
            .prop_map(|(m, s, h, p, q)| (m, format!("{s}://{h}{p}{q}")))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn an_intersection_means_exactly_what_both_mean(a in any_rule(), b in any_rule(), (method, url) in any_request()) {
            let (a, b) = (rule(&a), rule(&b));
            let by_both = admits(&a, method, &url) && admits(&b, method, &url);
            let intersection = a.intersect(&b);
            let by_intersection = intersection.as_ref().is_some_and(|rule| admits(rule, method, &url));
            prop_assert_eq!(by_both, by_intersection, "{:?}", intersection.map(|r| r.to_string()));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC{0,40}", rule_like in "[A-Z,* \
            ]{0,5}(http|https)://[a-z0-9.*\\[\\]:]{0,12}[/a-z%.;\\\\]{0,9}") {
            for text in [&text, &rule_like] {
                if let Ok(parsed) = text.parse::<HttpRule>() {
                    prop_assert_eq!(parsed.to_string().parse::<HttpRule>(), Ok(parsed));
                }
            }
        }
    }
}
