//! Position of a call in the order of queries, for pages.

use std::fmt;
use std::str::FromStr;

use crate::{CallEntry, UtcTime};

/// Position of a call in the order of a query: by its start, its line and its id. A later call is
/// greater.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallPosition {
    at: UtcTime,
    n: u64,
    id: String,
}

/// Error returned for a string that is not a [`CallPosition`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected the position of a call, such as `1764200000000000.17.3f2a91c0-17`")]
pub struct InvalidPosition;

impl CallPosition {
    /// Returns the start of the call.
    #[must_use]
    pub fn at(&self) -> UtcTime {
        self.at
    }
}

impl CallEntry {
    /// Returns the position of the call in the order of queries.
    #[must_use]
    pub fn position(&self) -> CallPosition {
        CallPosition { at: self.at, n: self.n, id: self.id.clone() }
    }
}

impl fmt::Display for CallPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.at.micros(), self.n, self.id)
    }
}

impl FromStr for CallPosition {
    type Err = InvalidPosition;

    fn from_str(text: &str) -> Result<Self, InvalidPosition> {
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().ok_or(InvalidPosition);
        let at = part()?.parse().map_err(|_| InvalidPosition)?;
        let n = part()?.parse().map_err(|_| InvalidPosition)?;
        Ok(Self { at: UtcTime::from_micros(at), n, id: part()?.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_a_string_and_back() {
        let entry = CallEntry { n: 7, id: "3f2a91c0-17".to_owned(), ..CallEntry::default() };
        let position = entry.position();
        assert_eq!(position.to_string(), "0.7.3f2a91c0-17");
        assert_eq!(position.to_string().parse(), Ok(position));
        for wrong in ["", "1", "1.2", "x.1.a", "1.-1.a"] {
            assert_eq!(wrong.parse::<CallPosition>(), Err(InvalidPosition), "{wrong}");
        }
    }
}
