//! SHA-256 digests of contents.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

/// Prefix of a digest as a string.
const ALGORITHM: &str = "sha256:";

/// SHA-256 digest of a manifest or a layer, written `sha256:` and 64 lower-case hexadecimal digits.
///
/// Other algorithms are rejected: `sha512` is optional in registries, and nothing weaker identifies
/// code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Error returned for a string that is not a SHA-256 digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected `sha256:` and 64 digits of 0-9 a-f")]
pub struct InvalidDigest;

impl Digest {
    /// Returns the digest of `content`.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    /// Returns the 64 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        HEXLOWER.encode(&self.0)
    }

    /// Returns the 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(string: &str) -> Result<Self, InvalidDigest> {
        let digits = string.strip_prefix(ALGORITHM).ok_or(InvalidDigest)?;
        let bytes = HEXLOWER.decode(digits.as_bytes()).map_err(|_| InvalidDigest)?;
        Ok(Self(bytes.try_into().map_err(|_| InvalidDigest)?))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ALGORITHM}{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let string = String::deserialize(deserializer)?;
        string.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lower_case_sha256_is_accepted() {
        let digest = Digest::of(b"");
        let shown = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest.to_string(), shown);
        assert_eq!(shown.parse(), Ok(digest));
        let upper = shown.to_uppercase();
        for invalid in
            ["", "sha256:", shown.get(..70).unwrap(), &upper, "sha512:00", &format!("{shown}0")]
        {
            assert_eq!(invalid.parse::<Digest>(), Err(InvalidDigest), "{invalid}");
        }
    }
}
