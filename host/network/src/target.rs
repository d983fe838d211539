//! Reads the target of a request in exactly one way.

use cofferdam_tool::permission::{Host, HttpScheme, HttpTarget};
use http::{Method, Uri};

use crate::InvalidTarget;

/// Target of a request.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) scheme: HttpScheme,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

impl Target {
    /// Reads the target of a request. Rejects ambiguous targets.
    pub(crate) fn of(method: &Method, uri: &Uri) -> Result<Self, InvalidTarget> {
        // A tunnel would bypass every rule, and an echo of the request would reveal what the host
        // has added to it.
        if matches!(*method, Method::CONNECT | Method::TRACE) {
            return Err(InvalidTarget::Method);
        }
        let scheme = match uri.scheme_str() {
            Some("https") => HttpScheme::Https,
            Some("http") => HttpScheme::Http,
            _ => return Err(InvalidTarget::Scheme),
        };
        let authority = uri.authority().ok_or(InvalidTarget::NoHost)?.as_str();
        if authority.contains('@') {
            return Err(InvalidTarget::UserInfo);
        }
        // The colon of a port comes after the bracket of an IPv6 address.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !authority.ends_with(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let path = uri.path();
        if !(path.is_empty() || path.starts_with('/')) {
            return Err(InvalidTarget::Path);
        }
        Ok(Self {
            scheme,
            host: Host::parse(host).map_err(InvalidTarget::Host)?,
            port: port.map_or(Ok(scheme.default_port()), number)?,
        })
    }

    /// Returns the target in the form that rules match.
    pub(crate) fn as_rules_see<'a>(&'a self, method: &'a Method, uri: &'a Uri) -> HttpTarget<'a> {
        HttpTarget {
            method: method.as_str(),
            scheme: self.scheme,
            host: &self.host,
            port: self.port,
            path: uri.path(),
        }
    }

    /// Returns the value of the `Host` header.
    pub(crate) fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            self.host.to_string()
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

fn number(port: &str) -> Result<u16, InvalidTarget> {
    let is_number = port.bytes().all(|b| b.is_ascii_digit());
    match port.parse() {
        Ok(port) if is_number && port != 0 => Ok(port),
        _ => Err(InvalidTarget::Port),
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_tool::permission::InvalidHost;

    use super::*;

    fn target(url: &str) -> Result<String, InvalidTarget> {
        let uri: Uri = url.parse().unwrap_or_else(|error| panic!("{url}: {error}"));
        let target = Target::of(&Method::GET, &uri)?;
        Ok(format!("{}:{} {}", target.host, target.port, target.authority()))
    }

    #[test]
    fn a_url_has_one_reading() {
        for (url, read) in [
            ("https://A.example", "a.example:443 a.example"),
            ("https://a.example.:443/x?y", "a.example:443 a.example"),
            ("http://a.example:8080/", "a.example:8080 a.example:8080"),
            ("http://[::1]:81/", "[::1]:81 [::1]:81"),
            ("http://[::ffff:127.0.0.1]/", "127.0.0.1:80 127.0.0.1"),
        ] {
            assert_eq!(target(url).as_deref(), Ok(read), "{url}");
        }
    }

    #[test]
    fn what_has_two_is_refused() {
        use InvalidTarget as Invalid;
        for (url, error) in [
            ("https://a.example@evil.example/", Invalid::UserInfo),
            ("https://user:pw@a.example/", Invalid::UserInfo),
            ("ftp://a.example/", Invalid::Scheme),
            ("/only/a/path", Invalid::Scheme),
            ("http://a.example:0/", Invalid::Port),
            ("http://2130706433/", Invalid::Host(InvalidHost::AlmostAddress)),
            ("http://0x7f.1/", Invalid::Host(InvalidHost::AlmostAddress)),
            ("http://0177.0.0.1/", Invalid::Host(InvalidHost::AlmostAddress)),
            ("http://127.1/", Invalid::Host(InvalidHost::AlmostAddress)),
        ] {
            assert_eq!(target(url), Err(error), "{url}");
        }
        let uri: Uri = "https://a.example/".parse().unwrap();
        for method in [Method::CONNECT, Method::TRACE] {
            assert_eq!(Target::of(&method, &uri).err(), Some(Invalid::Method));
        }
    }
}
