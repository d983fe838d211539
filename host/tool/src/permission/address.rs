//! IP addresses: classifies public ones and parses ranges of others.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Range of addresses: `10.0.0.0/8`, `fd00::/8`, or a single address.
///
/// An IPv4 range contains its addresses in every form, including mapped into IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressRange {
    base: IpAddr,
    prefix_bits: u8,
}

/// Error returned for a string that is not an address range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not an address or a range: write `127.0.0.1`, `10.0.0.0/8` or `fd00::/8`, with \
     no bits set past the prefix"
)]
pub struct InvalidAddressRange {
    text: String,
}

impl AddressRange {
    /// Returns whether `address` is in the range.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address.to_canonical()) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                masked(base.to_bits().into(), 32, self.prefix_bits)
                    == masked(address.to_bits().into(), 32, self.prefix_bits)
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                masked(base.to_bits(), 128, self.prefix_bits)
                    == masked(address.to_bits(), 128, self.prefix_bits)
            }
            _ => false,
        }
    }
}

/// Returns the first `prefix_bits` of a number of `width` bits.
fn masked(bits: u128, width: u8, prefix_bits: u8) -> u128 {
    let dropped = u32::from(width.saturating_sub(prefix_bits));
    bits.checked_shr(dropped).unwrap_or(0)
}

impl From<IpAddr> for AddressRange {
    fn from(address: IpAddr) -> Self {
        let base = address.to_canonical();
        Self { base, prefix_bits: if base.is_ipv4() { 32 } else { 128 } }
    }
}

impl FromStr for AddressRange {
    type Err = InvalidAddressRange;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| InvalidAddressRange { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<AddressRange> {
    let Some((address, bits)) = text.split_once('/') else {
        return Some(AddressRange::from(text.parse::<IpAddr>().ok()?));
    };
    let base: IpAddr = address.parse().ok()?;
    let prefix_bits: u8 = bits.parse().ok()?;
    let (number, width) = match base {
        IpAddr::V4(base) => (u128::from(base.to_bits()), 32),
        // A mapped address with a prefix could mean either family.
        IpAddr::V6(base) if base.to_ipv4_mapped().is_none() => (base.to_bits(), 128),
        IpAddr::V6(_) => return None,
    };
    let dropped = u32::from(width).checked_sub(u32::from(prefix_bits))?;
    let is_exact = masked(number, width, prefix_bits).checked_shl(dropped).unwrap_or(0) == number;
    is_exact.then_some(AddressRange { base, prefix_bits })
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = if self.base.is_ipv4() { 32 } else { 128 };
        if self.prefix_bits == width {
            self.base.fmt(f)
        } else {
            write!(f, "{}/{}", self.base, self.prefix_bits)
        }
    }
}

/// Returns whether `address` is on the public network: not private, loopback, link-local (where
/// clouds serve their metadata), multicast, reserved or for documentation, and not an IPv6 form
/// that embeds such an IPv4 address.
///
/// Based on the IANA registries of special-purpose addresses. Addresses not known to be public are
/// not.
#[must_use]
pub fn is_public_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = match a {
        // "This network", private, loopback, multicast, reserved and broadcast.
        0 | 10 | 127 | 224..=255 => true,
        100 => (64..=127).contains(&b), // shared by carriers
        169 => b == 254,                // link-local: metadata of clouds
        172 => (16..=31).contains(&b),  // private
        192 => {
            b == 168                                  // private
                || (b == 0 && matches!(c, 0 | 2))     // protocol assignments, documentation
                || (b == 88 && c == 99)               // relays of 6to4
                || (b == 31 && c == 196)              // AS112
                || (b == 52 && c == 193)              // AMT
                || (b == 175 && c == 48) // AS112
        }
        198 => matches!(b, 18 | 19) || (b == 51 && c == 100), // benchmarks, documentation
        203 => b == 0 && c == 113,                            // documentation
        // The metadata service of one cloud, which is not link-local.
        168 => address == Ipv4Addr::new(168, 63, 129, 16),
        _ => false,
    };
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (a, b) {
        // NAT64 has an IPv4 address at its end, 6to4 after its prefix.
        (0x64, 0xff9b) => (c, d, e, f) == (0, 0, 0, 0) && embedded(g, h),
        (0x2002, _) => embedded(b, c),
        // Protocol assignments (including Teredo), documentation.
        (0x2001, 0..=0x1ff | 0xdb8) | (0x3fff, 0..=0xfff) => false,
        // Global unicast. Everything outside is local, multicast or unassigned.
        _ => (0x2000..=0x3fff).contains(&a),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
            "5f00::1",
            "4000::1",
        ] {
            assert!(!is_public_address(address.parse().unwrap()), "{address}");
        }
        for address in [
            "8.8.8.8",
            "1.1.1.1",
            "100.128.0.1",
            "172.32.0.1",
            "192.1.0.1",
            "::ffff:8.8.8.8",
            "2606:4700::1",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(is_public_address(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn ranges() {
        let range: AddressRange = "10.0.0.0/8".parse().unwrap();
        assert!(range.contains("10.255.0.1".parse().unwrap()));
        assert!(range.contains("::ffff:10.0.0.1".parse().unwrap()));
        assert!(!range.contains("11.0.0.1".parse().unwrap()));
        assert!("0.0.0.0/0".parse::<AddressRange>().unwrap().contains("8.8.8.8".parse().unwrap()));
        assert!(!"0.0.0.0/0".parse::<AddressRange>().unwrap().contains("::1".parse().unwrap()));
        assert!("::/0".parse::<AddressRange>().unwrap().contains("::1".parse().unwrap()));
        for (text, shown) in [
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1/32", "127.0.0.1"),
            ("fd00::/8", "fd00::/8"),
            ("::ffff:1.2.3.4", "1.2.3.4"),
        ] {
            assert_eq!(text.parse::<AddressRange>().unwrap().to_string(), shown);
        }
        for bad in
            ["", "10", "10.0.0.1/8", "10.0.0.0/33", "::/129", "a/8", "10.0.0.0/-1", "::ffff:0:0/96"]
        {
            assert!(bad.parse::<AddressRange>().is_err(), "{bad}");
        }
    }
}
