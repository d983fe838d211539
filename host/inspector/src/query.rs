//! Queries of addresses: filters of calls, as in `cofferdam log`, and positions of pages.

use std::fmt::Write as _;
use std::time::Duration;

use cofferdam_record::{CallFilter, CallPosition, LOST, REFUSED, RUNNING, UtcTime};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::PageError;

/// Outcomes of calls.
pub(crate) const OUTCOMES: [&str; 7] =
    ["ok", "failure", "error", "cancelled", REFUSED, LOST, RUNNING];
/// Value of a filter that any refusal or change passes.
pub(crate) const ANY: &str = "*";
/// Characters of a value that stay as they are.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// Maximum number of parameters that are read.
const PARAMETERS_MAX: usize = 32;

/// Parameters of an address, without the empty ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageQuery(Vec<(String, String)>);

impl PageQuery {
    /// Parses the part of an address after the question mark. Bytes that are not UTF-8 are
    /// replaced.
    pub(crate) fn parse(text: &str) -> Self {
        let decoded = |text: &str| {
            let spaced = text.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().trim().to_owned()
        };
        let pairs = text.split('&').take(PARAMETERS_MAX).filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            let value = decoded(value);
            (!value.is_empty()).then(|| (decoded(name), value))
        });
        Self(pairs.collect())
    }

    /// Returns the first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the value of a parameter, or an empty string.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Returns the address of a path with these parameters and another value of one of them.
    pub(crate) fn with(&self, path: &str, name: &str, value: Option<&str>) -> String {
        let kept = self.0.iter().filter(|(known, _)| known != name);
        let kept = kept.map(|(name, value)| (name.as_str(), value.as_str()));
        address(path, kept.chain(value.map(|value| (name, value))))
    }

    /// Returns the filter of calls.
    pub(crate) fn filter(&self) -> Result<CallFilter, PageError> {
        let text = |name| self.get(name).map(str::to_owned);
        let part = |name| text(name).map(|part| if part == ANY { String::new() } else { part });
        let time = |name| {
            let time = self.get(name).map(UtcTime::parse_age_or_date).transpose();
            time.map_err(|error| PageError::Query(error.to_string()))
        };
        let after = self.get("after").map(str::parse::<CallPosition>).transpose();
        Ok(CallFilter {
            tool: text("tool"),
            plugin: text("plugin"),
            session: text("session"),
            outcome: self.get("outcome").map(outcome).transpose()?,
            since: time("since")?,
            until: time("until")?,
            refused: part("refused"),
            changed: part("changed"),
            slower_than: self.get("slow").map(duration).transpose()?,
            text: text("grep"),
            outer: text("outer"),
            after: after.map_err(|error| PageError::Query(error.to_string()))?,
            limit: None,
        })
    }
}

/// Returns an address with parameters.
pub(crate) fn address<'q>(
    path: &str,
    parameters: impl IntoIterator<Item = (&'q str, &'q str)>,
) -> String {
    let mut address = path.to_owned();
    let mut separator = '?';
    for (name, value) in parameters {
        // Writing to a string cannot fail.
        let _ = write!(address, "{separator}{name}={}", utf8_percent_encode(value, PLAIN));
        separator = '&';
    }
    address
}

fn outcome(text: &str) -> Result<String, PageError> {
    match OUTCOMES.contains(&text) {
        true => Ok(text.to_owned()),
        false => {
            let outcomes = OUTCOMES.join(", ");
            Err(PageError::Query(format!("invalid outcome `{text}`: expected one of {outcomes}")))
        }
    }
}

fn duration(text: &str) -> Result<Duration, PageError> {
    let invalid = || {
        let message = format!(
            "invalid duration `{text}`: expected an integer with a unit, such as 500ms or 5s"
        );
        PageError::Query(message)
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| invalid())?;
    let unit_ms = match text.strip_prefix(digits) {
        Some("ms") => 1,
        Some("s") => 1000,
        Some("m") => 60_000,
        _ => return Err(invalid()),
    };
    number.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_become_a_filter() {
        let query = PageQuery::parse(
            "tool=a%20b+c&outcome=ok&plugin=&refused=*&changed=%2Ftmp&slow=100ms&since=2026-11-24",
        );
        let filter = query.filter().unwrap();
        assert_eq!(filter.tool.as_deref(), Some("a b c"));
        assert_eq!((filter.plugin, filter.outcome.as_deref()), (None, Some("ok")));
        assert_eq!(filter.refused.as_deref(), Some(""));
        assert_eq!(filter.changed.as_deref(), Some("/tmp"));
        assert_eq!(filter.slower_than, Some(Duration::from_millis(100)));
        assert_eq!(filter.since.unwrap().to_string(), "2026-11-24T00:00:00.000000Z");
        assert!(PageQuery::parse("outcome=").filter().unwrap().outcome.is_none());
    }

    #[test]
    fn invalid_fields_are_errors() {
        for (query, message) in [
            ("outcome=other", "invalid outcome `other`: expected one of ok, failure, error"),
            ("since=soon", "`soon` is not a time"),
            ("slow=9", "invalid duration `9`"),
            ("slow=ms", "invalid duration `ms`"),
            ("after=x", "expected the position of a call"),
        ] {
            let error = PageQuery::parse(query).filter().unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn addresses_are_escaped() {
        let query = PageQuery::parse("tool=a&after=1");
        assert_eq!(query.with("/", "after", None), "/?tool=a");
        assert_eq!(query.with("/", "tool", Some("&\"<")), "/?after=1&tool=%26%22%3C");
        let value = PageQuery::parse(address("", [("q", "ü &=+")]).trim_start_matches('?'));
        assert_eq!(value.value("q"), "ü &=+");
    }
}
