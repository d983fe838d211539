//! Any strings as rules for hosts, ports and paths: parsed rules survive a round trip, and an
//! intersection permits no more than either rule.

use std::net::IpAddr;
use std::str::FromStr;

use cofferdam_tool::Permission;
use cofferdam_tool::permission::{
    AddressRange, BoundHeader, Host, HostPattern, HttpRule, HttpScheme, HttpTarget, SecretTemplate,
    SocketRule,
};

/// Parses the first lines of the input as rules, and the rest as the target of a request.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.splitn(4, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (one, other, host, path) = (line(), line(), line(), line());
    for text in [one, other] {
        round_trip::<Permission>(text);
        round_trip::<HttpRule>(text);
        round_trip::<SocketRule>(text);
        round_trip::<AddressRange>(text);
        let _ = text.parse::<BoundHeader>();
        let _ = text.parse::<SecretTemplate>();
        hosts(text, host);
    }
    if let (Ok(one), Ok(other), Ok(host)) =
        (one.parse::<HttpRule>(), other.parse::<HttpRule>(), Host::parse(host))
    {
        rules(&one, &other, &host, path);
    }
}

/// Checks that a value parsed from `text` is the same after it is written and parsed again.
fn round_trip<T: FromStr + ToString + PartialEq + std::fmt::Debug>(text: &str) {
    let Ok(rule) = text.parse::<T>() else { return };
    let written = rule.to_string();
    let again = written.parse::<T>();
    assert_eq!(again.ok().as_ref(), Some(&rule), "`{written}` is not read as it was written");
}

fn hosts(pattern: &str, host: &str) {
    let (Ok(pattern), Ok(host)) = (HostPattern::parse(pattern), Host::parse(host)) else { return };
    let exactly = HostPattern::Exactly(host.clone());
    assert_eq!(
        pattern.matches(&host),
        pattern.intersect(&exactly) == Some(exactly),
        "{pattern:?} {host:?}"
    );
    if let Host::Address(IpAddr::V6(address)) = host {
        assert!(address.to_ipv4_mapped().is_none(), "an address has one form");
    }
}

fn rules(one: &HttpRule, other: &HttpRule, host: &Host, path: &str) {
    for (method, scheme, port) in
        [("GET", HttpScheme::Https, 443), ("POST", HttpScheme::Http, 8080)]
    {
        let target = HttpTarget { method, scheme, host, port, path };
        let is_meant_by_both = one.matches(&target) && other.matches(&target);
        let both = one.intersect(other);
        let is_meant = both.as_ref().is_some_and(|both| both.matches(&target));
        assert_eq!(is_meant, is_meant_by_both, "{one} and {other} for {target:?}");
        assert!(
            HttpRule::for_target(&target).matches(&target),
            "the offered rule permits {target:?}"
        );
    }
}
