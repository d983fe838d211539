//! Selects the addresses of a host that may be connected to, and classifies the others.

use std::fmt;
use std::net::IpAddr;

use cofferdam_tool::permission::{AddressRange, is_public_address};

/// Maximum number of addresses tried for one host.
const ADDRESSES_TRIED_MAX: usize = 16;

/// Kind of a non-public address, for messages. Admission does not use it: only
/// [`is_public_address`] decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressClass {
    /// An address of this machine.
    Loopback,
    /// An address of a private network.
    Private,
    /// An address of the local link, where clouds serve their metadata.
    LinkLocal,
    /// An address of a group of machines.
    Multicast,
    /// An address reserved for another purpose, or an IPv6 form that embeds a non-public address.
    Special,
}

impl AddressClass {
    /// Classifies `address`, which must not be public.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if address.is_loopback() => Self::Loopback,
            address if address.is_multicast() => Self::Multicast,
            IpAddr::V4(address) if address.is_private() => Self::Private,
            IpAddr::V4(address) if address.is_link_local() => Self::LinkLocal,
            IpAddr::V6(address) if address.is_unique_local() => Self::Private,
            IpAddr::V6(address) if address.is_unicast_link_local() => Self::LinkLocal,
            _ => Self::Special,
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address (where clouds keep their metadata)",
            Self::Multicast => "a multicast address",
            Self::Special => "a special-purpose address",
        })
    }
}

/// Returns the addresses of `found` that are public or in one of `granted`, in their order and at
/// most 16. IPv4 addresses mapped into IPv6 become plain IPv4 addresses, here and on the wire.
#[must_use]
pub fn admitted(found: &[IpAddr], granted: &[AddressRange]) -> Vec<IpAddr> {
    let is_admitted = |address: &IpAddr| {
        is_public_address(*address) || granted.iter().any(|range| range.contains(*address))
    };
    found.iter().map(IpAddr::to_canonical).filter(is_admitted).take(ADDRESSES_TRIED_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn what_is_not_admitted_is_skipped() {
        let found =
            addresses(&["127.0.0.1", "8.8.8.8", "::ffff:10.0.0.1", "::ffff:1.1.1.1", "fd00::1"]);
        assert_eq!(admitted(&found, &[]), addresses(&["8.8.8.8", "1.1.1.1"]));
        let granted = ["10.0.0.0/8".parse().unwrap()];
        assert_eq!(admitted(&found, &granted), addresses(&["8.8.8.8", "10.0.0.1", "1.1.1.1"]));
        assert_eq!(admitted(&addresses(&["8.8.8.8"; 20]), &[]).len(), 16);
    }

    #[test]
    fn classes_have_names() {
        for (address, class) in [
            ("127.0.0.1", AddressClass::Loopback),
            ("::1", AddressClass::Loopback),
            ("::ffff:127.0.0.1", AddressClass::Loopback),
            ("10.0.0.1", AddressClass::Private),
            ("fd00::1", AddressClass::Private),
            ("169.254.169.254", AddressClass::LinkLocal),
            ("fe80::1", AddressClass::LinkLocal),
            ("224.0.0.1", AddressClass::Multicast),
            ("64:ff9b::7f00:1", AddressClass::Special),
            ("0.0.0.0", AddressClass::Special),
        ] {
            assert_eq!(AddressClass::of(address.parse().unwrap()), class, "{address}");
        }
    }
}
