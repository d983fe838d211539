//! Names of objects.

use std::fmt;

/// Number of bytes of a name.
pub(crate) const ID_BYTES: usize = 20;

/// Number of hexadecimal digits of an abbreviated name.
const SHORT_DIGITS: usize = 12;

/// SHA-1 name of an object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Id([u8; ID_BYTES]);

impl Id {
    /// Parses exactly 40 hexadecimal digits.
    pub(crate) fn from_hex(digits: &[u8]) -> Option<Self> {
        let prefix = Prefix::from_hex(digits)?;
        (prefix.digits == ID_BYTES * 2).then_some(Self(prefix.bytes))
    }

    /// Converts exactly 20 bytes.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(crate) fn bytes(&self) -> &[u8; ID_BYTES] {
        &self.0
    }

    pub(crate) fn first_byte(&self) -> u8 {
        let [first, ..] = self.0;
        first
    }

    /// Returns the abbreviated name.
    pub(crate) fn short(&self) -> String {
        let mut digits = self.to_string();
        digits.truncate(SHORT_DIGITS);
        digits
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The first digits of a name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prefix {
    bytes: [u8; ID_BYTES],
    digits: usize,
}

impl Prefix {
    /// Parses 2 to 40 hexadecimal digits.
    pub(crate) fn from_hex(digits: &[u8]) -> Option<Self> {
        if digits.len() < 2 || digits.len() > ID_BYTES * 2 {
            return None;
        }
        let mut bytes = [0; ID_BYTES];
        for (pair, byte) in digits.chunks(2).zip(&mut bytes) {
            let mut values = pair.iter().map(|digit| char::from(*digit).to_digit(16));
            let high = values.next()??;
            let low = values.next().unwrap_or(Some(0))?;
            *byte = u8::try_from(high << 4 | low).ok()?;
        }
        Some(Self { bytes, digits: digits.len() })
    }

    pub(crate) fn first_byte(&self) -> u8 {
        let [first, ..] = self.bytes;
        first
    }

    pub(crate) fn matches(&self, id: &Id) -> bool {
        let whole = self.digits / 2;
        self.bytes.iter().zip(id.bytes()).take(whole).all(|(a, b)| a == b)
            && (self.digits.is_multiple_of(2)
                || self
                    .bytes
                    .get(whole)
                    .zip(id.bytes().get(whole))
                    .is_some_and(|(a, b)| a >> 4 == b >> 4))
    }
}

#[cfg(test)]
mod tests {
    use super::{Id, Prefix};

    const NAME: &[u8] = b"0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn names_are_hexadecimal() {
        let id = Id::from_hex(NAME).unwrap();
        assert_eq!(id.to_string().as_bytes(), NAME);
        assert_eq!(id.short(), "0123456789ab");
        for bad in [&b""[..], b"0", b"0g", &NAME[1..], &[NAME, b"0"].concat()] {
            assert_eq!(Id::from_hex(bad), None);
        }
    }

    #[test]
    fn prefixes_have_any_length() {
        let id = Id::from_hex(NAME).unwrap();
        for length in 2..=NAME.len() {
            assert!(Prefix::from_hex(&NAME[..length]).unwrap().matches(&id), "{length}");
        }
        for other in ["11", "013", "0124", "01235"] {
            assert!(!Prefix::from_hex(other.as_bytes()).unwrap().matches(&id), "{other}");
        }
    }
}
