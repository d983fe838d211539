//! URLs of requests.

use std::fmt;

use super::Error;

/// An `http` or `https` URL in the parts that a request names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Url {
    pub(super) is_secure: bool,
    /// Host in lower case, and the port unless it is that of the scheme.
    pub(super) authority: String,
    /// Path and query, beginning with `/`.
    pub(super) target: String,
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme(), self.authority, self.target)
    }
}

impl Url {
    /// Parses an absolute URL. The fragment is left out.
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        let url = url.trim_matches(|c: char| c.is_ascii_whitespace());
        let invalid =
            |reason: &str| Error::Invalid(format!("`{url}` is not a valid URL: {reason}"));
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(invalid("expected `https://` or `http://` at its beginning")),
        };
        let (authority, target) =
            rest.find(['/', '?', '#']).map_or((rest, ""), |at| rest.split_at(at));
        if authority.contains('@') {
            return Err(invalid("a user name or password in a URL is not sent"));
        }
        let authority = authority.to_ascii_lowercase();
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:[]".contains(c);
        if authority.is_empty() || authority.starts_with(':') || !authority.chars().all(is_allowed)
        {
            return Err(invalid("its host is missing or has invalid characters"));
        }
        let default_port = if is_secure { ":443" } else { ":80" };
        let authority = authority.strip_suffix(default_port).unwrap_or(&authority);
        let authority = authority.strip_suffix(':').unwrap_or(authority).to_owned();
        Ok(Self { is_secure, authority, target: target_of(target) })
    }

    /// Resolves a reference, such as the header `location` of a response from this URL.
    pub(super) fn join(&self, reference: &str) -> Result<Self, Error> {
        let reference = reference.trim_matches(|c: char| c.is_ascii_whitespace());
        if reference.starts_with("//") {
            return Self::parse(&format!("{}:{reference}", self.scheme()));
        }
        let before_path = reference.split(['/', '?', '#']).next().unwrap_or_default();
        if before_path.contains(':') {
            return Self::parse(reference);
        }
        let path = self.target.split('?').next().unwrap_or_default();
        let target = match reference.chars().next() {
            None | Some('#') => self.target.clone(),
            Some('?') => target_of(&format!("{path}{reference}")),
            Some('/') => target_of(reference),
            Some(_) => {
                let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
                target_of(&format!("{directory}/{reference}"))
            }
        };
        Ok(Self { target, ..self.clone() })
    }

    /// Returns whether servers can read the path in two ways. Of the rules for requests, only those
    /// for all paths of a host match it.
    #[cfg(any(test, target_arch = "wasm32"))]
    pub(super) fn has_ambiguous_path(&self) -> bool {
        let path = self.target.split('?').next().unwrap_or_default().to_ascii_lowercase();
        let is_escape = |digits: &str| {
            let digits = digits.get(..2).unwrap_or_default();
            digits.len() == 2
                && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
                && !matches!(digits, "2f" | "5c" | "25" | "00")
        };
        if !path.split('%').skip(1).all(is_escape) {
            return true;
        }
        let path = path.replace("%2e", ".").replace("%3b", ";");
        let below = path.strip_prefix('/').unwrap_or(&path);
        let inner = below.strip_suffix('/').unwrap_or(below);
        // Some servers strip parameters from a segment before they interpret it.
        let name = |segment: &str| segment.split(';').next().map(str::to_owned);
        !below.is_empty()
            && inner.split('/').any(|segment| {
                segment.is_empty() || matches!(name(segment).as_deref(), Some("." | ".."))
            })
    }

    pub(super) fn scheme(&self) -> &'static str {
        if self.is_secure { "https" } else { "http" }
    }

    pub(super) fn has_same_origin(&self, other: &Self) -> bool {
        self.is_secure == other.is_secure && self.authority == other.authority
    }
}

/// Returns path and query as a request sends them: without a fragment, without the segments `.` and
/// `..`, and with other characters than those of URLs percent-encoded.
fn target_of(text: &str) -> String {
    let text = text.split('#').next().unwrap_or_default();
    let (path, query) = text.find('?').map_or((text, ""), |at| text.split_at(at));
    let mut resolved: Vec<&str> = Vec::new();
    let mut segments = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | "%2e" | "%2E" => {}
            ".." => {
                resolved.pop();
            }
            _ => {
                resolved.push(segment);
                continue;
            }
        }
        if is_last {
            resolved.push("");
        }
    }
    let mut target = String::with_capacity(text.len() + 1);
    for byte in ["/", &resolved.join("/"), query].concat().bytes() {
        if byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'`' | b'\\') {
            target.push(char::from(byte));
        } else {
            target.push_str(&format!("%{byte:02X}"));
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_parsed() {
        for (url, parsed) in [
            ("https://example.com", "https://example.com/"),
            ("HTTP://Example.com:80/a?b=c#d", "http://example.com/a?b=c"),
            ("https://example.com:8443?q=1", "https://example.com:8443/?q=1"),
            ("http://[::1]:8080/", "http://[::1]:8080/"),
            ("http://a/b/./c/../d", "http://a/b/d"),
            ("http://a/../..", "http://a/"),
            ("http://a//b", "http://a//b"),
            ("http://a/ñ b?ü", "http://a/%C3%B1%20b?%C3%BC"),
        ] {
            assert_eq!(Url::parse(url).unwrap().to_string(), parsed, "{url}");
        }
        for url in
            ["", "example", "file:///a", "http://", "http:///a", "http://u:p@a/", "http://a b/"]
        {
            assert!(matches!(Url::parse(url), Err(Error::Invalid(_))), "{url}");
        }
    }

    #[test]
    fn ambiguous_paths_are_found() {
        for (path, expected) in [
            ("", false),
            ("/", false),
            ("/a/b/", false),
            ("/a%20b/c;x?d=%2F//..", false),
            ("/%C3%B1/..a/a..", false),
            ("/a/../b", false),
            ("//", true),
            ("/a//b", true),
            ("/a%2Fb", true),
            ("/a%5cb", true),
            ("/a\\b", true),
            ("/%252e", true),
            ("/%00", true),
            ("/%2e%2e/a", true),
            ("/.%2E", true),
            ("/..;x/a", true),
            ("/%", true),
            ("/%zz", true),
        ] {
            let url = Url::parse(&format!("http://a{path}")).unwrap();
            assert_eq!(url.has_ambiguous_path(), expected, "{path}");
        }
    }

    #[test]
    fn references_are_resolved() {
        let base = Url::parse("http://a/b/c/d?q").unwrap();
        for (reference, resolved) in [
            ("g", "http://a/b/c/g"),
            ("./g/", "http://a/b/c/g/"),
            ("../g?y#s", "http://a/b/g?y"),
            ("..", "http://a/b/"),
            ("/g", "http://a/g"),
            ("?y", "http://a/b/c/d?y"),
            ("", "http://a/b/c/d?q"),
            ("#s", "http://a/b/c/d?q"),
            ("//g/h", "http://g/h"),
            ("https://g", "https://g/"),
            ("g?x=a:b/c", "http://a/b/c/g?x=a:b/c"),
        ] {
            assert_eq!(base.join(reference).unwrap().to_string(), resolved, "{reference}");
        }
        assert!(base.join("mailto:x").is_err());
    }
}
