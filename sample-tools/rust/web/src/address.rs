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
}
