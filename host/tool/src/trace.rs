//! Trace contexts: the position of a call in a distributed trace, in W3C's form.
//!
//! A caller that takes part in a trace gives its span to a call. The call has a span of its own
//! below it, and gives that to what it calls: other tools, agents, models and remote servers.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;

/// Position in a trace: the current span, and the one that it is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace: u128,
    span: u64,
    parent: Option<u64>,
    flags: u8,
}

/// Error returned for a string that is not a `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `00-`, 32 and 16 hexadecimal digits and flags, such as `00-…-…-01`")]
pub struct InvalidTraceContext;

impl TraceContext {
    /// Starts a trace with a new span.
    #[must_use]
    pub fn root() -> Self {
        let trace = (u128::from(random()) << 64) | u128::from(random());
        Self { trace, span: random(), parent: None, flags: 1 }
    }

    /// Returns a new span below this one.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { span: random(), parent: Some(self.span), ..*self }
    }

    /// Returns the id of the trace: 32 hexadecimal digits.
    #[must_use]
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// Returns the id of the span: 16 hexadecimal digits.
    #[must_use]
    pub fn span_id(&self) -> String {
        format!("{:016x}", self.span)
    }

    /// Returns the id of the span that this one is part of, if it is known.
    #[must_use]
    pub fn parent_id(&self) -> Option<String> {
        self.parent.map(|parent| format!("{parent:016x}"))
    }
}

/// Returns a random number that is not zero. Ids of spans need no secrecy.
fn random() -> u64 {
    RandomState::new().hash_one(()).max(1)
}

/// Writes the form of the header `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// Reads the header `traceparent`. The span is that of the sender.
impl FromStr for TraceContext {
    type Err = InvalidTraceContext;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('-');
        let mut next = |digits: usize| {
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            parts.next().filter(|part| part.len() == digits && part.bytes().all(is_digit))
        };
        let (Some(version), Some(trace), Some(span), Some(flags)) =
            (next(2), next(32), next(16), next(2))
        else {
            return Err(InvalidTraceContext);
        };
        // Later versions may have more parts; this one has not.
        let is_whole = version != "00" || parts.next().is_none();
        let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0);
        let span = u64::from_str_radix(span, 16).ok().filter(|span| *span != 0);
        let flags = u8::from_str_radix(flags, 16).ok();
        match (trace, span, flags) {
            (Some(trace), Some(span), Some(flags)) if is_whole && version != "ff" => {
                Ok(Self { trace, span, parent: None, flags })
            }
            _ => Err(InvalidTraceContext),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_written() {
        let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let caller: TraceContext = header.parse().unwrap();
        assert_eq!(caller.to_string(), header);
        let call = caller.child();
        assert_eq!(call.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(call.parent_id().as_deref(), Some("00f067aa0ba902b7"));
        assert_ne!(call.span_id(), caller.span_id());
        assert!(
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"
                .parse::<TraceContext>()
                .is_ok()
        );
        assert_ne!(TraceContext::root().trace_id(), TraceContext::root().trace_id());
    }

    #[test]
    fn other_strings_are_rejected() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-+1",
            "zé-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert!(text.parse::<TraceContext>().is_err(), "{text}");
        }
    }
}
