//! The parts of a URL that a request names.

use cofferdam_sdk::ToolFailure;

/// An `http` or `https` URL in its parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address<'u> {
    /// True for `https`.
    pub(crate) is_secure: bool,
    /// Host, and port if the URL has one.
    pub(crate) authority: &'u str,
    /// Path and query, beginning with `/`.
    pub(crate) path: String,
}

impl<'u> Address<'u> {
    /// Parses a URL. The fragment is left out, as in every request.
    pub(crate) fn parse(url: &'u str) -> Result<Self, ToolFailure> {
        let url = url.trim();
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => {
                return Err(ToolFailure::new(format!("`{url}` is not an http or https URL"))
                    .suggestion("pass a URL such as `https://example.com/index.html`"));
            }
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
        if authority.is_empty() {
            return Err(ToolFailure::new(format!("`{url}` has no host")));
        }
        if authority.contains('@') {
            return Err(ToolFailure::new("a URL with a user name or password is not sent")
                .suggestion("leave out everything up to `@`"));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { is_secure, authority, path })
    }
}

/// Resolves a reference, which may be relative, against the address of a page. Returns none if the
/// page has no address, or the reference is not one that can be opened, such as `javascript:`.
pub(crate) fn resolve(base: &str, reference: &str) -> Option<String> {
    let reference: String = reference.trim().chars().filter(|it| !it.is_control()).collect();
    let reference = reference.replace(' ', "%20");
    if let Some(scheme) = scheme(&reference) {
        let is_known = matches!(&*scheme, "http" | "https" | "mailto" | "tel" | "ftp");
        return is_known.then_some(reference);
    }
    let (scheme, rest) = base.split_once("://")?;
    if reference.starts_with("//") {
        return Some(format!("{scheme}:{reference}"));
    }
    let rest = rest.split('#').next().unwrap_or_default();
    let (authority, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
    let (own_path, query) = path.find('?').map_or((path, ""), |at| path.split_at(at));
    let (new_path, suffix) =
        reference.find(['?', '#']).map_or((&*reference, ""), |at| reference.split_at(at));
    if new_path.is_empty() {
        let query = if suffix.starts_with('?') { "" } else { query };
        return Some(format!("{scheme}://{authority}{own_path}{query}{suffix}"));
    }
    let directory = match own_path.rfind('/') {
        _ if new_path.starts_with('/') => "",
        Some(end) => own_path.get(..=end).unwrap_or_default(),
        None => "/",
    };
    let path = without_dots(&format!("{directory}{new_path}"));
    Some(format!("{scheme}://{authority}{path}{suffix}"))
}

/// Returns the scheme of an absolute URL in lower case.
fn scheme(url: &str) -> Option<String> {
    let (scheme, _) = url.split_once(':')?;
    let is_scheme = scheme.starts_with(|it: char| it.is_ascii_alphabetic())
        && scheme.chars().all(|it| it.is_ascii_alphanumeric() || "+-.".contains(it));
    is_scheme.then(|| scheme.to_ascii_lowercase())
}

/// Resolves `.` and `..` in a path that begins with `/`.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    if path.ends_with("/.") || path.ends_with("/..") {
        parts.push("");
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> (bool, String, String) {
        let address = Address::parse(url).unwrap();
        (address.is_secure, address.authority.to_owned(), address.path)
    }

    #[test]
    fn urls_are_split_into_parts() {
        let parts =
            |secure, authority: &str, path: &str| (secure, authority.to_owned(), path.to_owned());
        assert_eq!(parsed("https://example.com"), parts(true, "example.com", "/"));
        assert_eq!(
            parsed("HTTP://example.com:8080/a?b=c#d"),
            parts(false, "example.com:8080", "/a?b=c")
        );
        assert_eq!(parsed("https://example.com?q=1"), parts(true, "example.com", "/?q=1"));
    }

    #[test]
    fn what_is_not_a_url_is_refused() {
        for url in [
            "",
            "example.com",
            "file:///etc/passwd",
            "https://",
            "https:///a",
            "https://user:pw@example.com/",
        ] {
            assert!(Address::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn references_are_resolved() {
        let base = "https://example.com/a/b/c?q=1#f";
        for (reference, expected) in [
            ("d", "https://example.com/a/b/d"),
            ("./d/", "https://example.com/a/b/d/"),
            ("../d?x#y", "https://example.com/a/d?x#y"),
            ("../../../d", "https://example.com/d"),
            ("..", "https://example.com/a/"),
            ("/d", "https://example.com/d"),
            ("//other.example/d", "https://other.example/d"),
            ("?x", "https://example.com/a/b/c?x"),
            ("#y", "https://example.com/a/b/c?q=1#y"),
            ("", "https://example.com/a/b/c?q=1"),
            (" a\n b ", "https://example.com/a/b/a%20b"),
            ("HTTP://x.example", "HTTP://x.example"),
            ("mailto:a@b.example", "mailto:a@b.example"),
        ] {
            assert_eq!(resolve(base, reference).as_deref(), Some(expected), "{reference}");
        }
        assert_eq!(resolve("https://example.com", "a").as_deref(), Some("https://example.com/a"));
        assert_eq!(resolve(base, "javascript:alert()"), None);
        assert_eq!(resolve("", "a"), None);
    }
}
