//! Hosts of a network and patterns for them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Maximum length of a host name in bytes, as in DNS.
const NAME_BYTES_MAX: usize = 253;
/// Maximum length of a label of a name in bytes.
const LABEL_BYTES_MAX: usize = 63;

/// Host in the URL of a request, in normalized spelling.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A DNS name in lower case, without a final dot.
    Name(String),
    /// An IP address. An IPv4 address that is mapped into IPv6 is stored as the IPv4 address.
    Address(IpAddr),
}

/// Hosts that a rule matches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HostPattern {
    /// `*`: every host.
    Any,
    /// `*.example.com`: every name below this one, at any depth, and not the name itself.
    Below(String),
    /// One host.
    Exactly(Host),
}

/// Error returned for an invalid host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHost {
    /// Empty, too long, with an empty label, or with a character that DNS names do not have.
    #[error(
        "is not a host name: use letters, digits and `-` in labels with dots between, at most 253 \
         characters"
    )]
    Name,
    /// A name that some resolvers take for an address, such as `0x7f.1` or `2130706433`.
    #[error("is not a valid address: write IPv4 addresses as four decimal numbers")]
    AlmostAddress,
    /// A name with characters outside of ASCII.
    #[error("has characters outside of ASCII: write the name in its `xn--` form")]
    NotAscii,
    /// A `*` that is not the complete first label.
    #[error(
        "has a `*` that is not the whole first label: write `*.example.com` for all names below"
    )]
    Wildcard,
}

impl Host {
    /// Parses a host as written in a URL: a name, an IPv4 address, or an IPv6 address in brackets.
    ///
    /// # Errors
    /// [`InvalidHost`], also for a string that a resolver could read as another address than the
    /// operator would.
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        if let Some(address) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let address: Ipv6Addr = address.parse().map_err(|_| InvalidHost::AlmostAddress)?;
            return Ok(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        name(text).map(Self::Name)
    }
}

fn name(text: &str) -> Result<String, InvalidHost> {
    if !text.is_ascii() {
        return Err(InvalidHost::NotAscii);
    }
    if text.contains('*') {
        return Err(InvalidHost::Wildcard);
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    if name.len() > NAME_BYTES_MAX || !name.split('.').all(is_label) {
        return Err(InvalidHost::Name);
    }
    // URL parsers and `inet_aton` read a name whose last label is a number as an address, in octal,
    // hexadecimal or with parts left out.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x");
    if is_number { Err(InvalidHost::AlmostAddress) } else { Ok(name) }
}

impl HostPattern {
    /// Parses `*`, `*.name` or a host.
    ///
    /// # Errors
    /// [`InvalidHost`].
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        if text == "*" {
            return Ok(Self::Any);
        }
        match text.strip_prefix("*.") {
            Some(parent) => name(parent).map(Self::Below),
            None => Host::parse(text).map(Self::Exactly),
        }
    }

    /// Returns whether the pattern matches `host`.
    #[must_use]
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Below(parent), Host::Name(name)) => is_below(name, parent),
            (Self::Below(_), Host::Address(_)) => false,
            (Self::Exactly(one), host) => one == host,
        }
    }

    /// Returns the pattern for the hosts that both patterns match, if there are any.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Any, narrower) | (narrower, Self::Any) => Some(narrower.clone()),
            (Self::Exactly(host), pattern) | (pattern, Self::Exactly(host)) => {
                pattern.matches(host).then(|| Self::Exactly(host.clone()))
            }
            (Self::Below(a), Self::Below(b)) if a == b || is_below(a, b) => Some(self.clone()),
            (Self::Below(a), Self::Below(b)) if is_below(b, a) => Some(other.clone()),
            (Self::Below(_), Self::Below(_)) => None,
        }
    }
}

fn is_below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Below(parent) => write!(f, "*.{parent}"),
            Self::Exactly(host) => host.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_spelling() {
        for (text, spelling) in [
            ("Example.COM", "example.com"),
            ("example.com.", "example.com"),
            ("127.0.0.1", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[0:0:0:0:0:0:0:1]", "[::1]"),
            ("[::ffff:10.0.0.1]", "10.0.0.1"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(Host::parse(text).unwrap().to_string(), spelling, "{text}");
        }
    }

    #[test]
    fn what_a_resolver_could_read_as_another_address_is_refused() {
        for text in [
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "127.1",
            "127.0.0.01",
            "1.2.3.4.5",
            "a.1",
            "a.0x1",
            "[::1%1]",
        ] {
            assert_eq!(Host::parse(text), Err(InvalidHost::AlmostAddress), "{text}");
        }
        for text in
            ["", ".", "a..b", ".a", "a b", "a/b", "a@b", "a:1", "a%2e", &"a.".repeat(128), "a\0b"]
        {
            assert_eq!(Host::parse(text), Err(InvalidHost::Name), "{text}");
        }
        assert_eq!(Host::parse("bücher.example"), Err(InvalidHost::NotAscii));
        assert_eq!(Host::parse("a*.example"), Err(InvalidHost::Wildcard));
        assert_eq!(HostPattern::parse("*.*.example"), Err(InvalidHost::Wildcard));
    }

    #[test]
    fn a_wildcard_means_names_below_and_not_the_name_itself() {
        let pattern = HostPattern::parse("*.example.com").unwrap();
        for (host, is_meant) in [
            ("a.example.com", true),
            ("a.b.example.com", true),
            ("example.com", false),
            ("aexample.com", false),
        ] {
            assert_eq!(pattern.matches(&Host::parse(host).unwrap()), is_meant, "{host}");
        }
    }
}
