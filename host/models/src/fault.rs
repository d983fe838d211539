//! Errors of requests and replies.
//!
//! Messages quote the provider, because only it knows, for example, which model it lacks. Quotes
//! are truncated, keys are redacted, and characters that could control a terminal are escaped.

use std::time::Duration;

use cofferdam_agent::{ChatError, ChatErrorKind};
use cofferdam_tool::text::is_hostile_char;

use super::fields::{self, Fields};

/// Maximum number of characters shown of a provider's message.
const SAID_CHARS_MAX: usize = 600;
/// OpenAI's code for an exhausted balance; waiting does not help.
const OUT_OF_MONEY: &str = "insufficient_quota";

/// Reason why a reply cannot be used.
#[derive(Debug)]
pub(super) enum ReplyError {
    /// The provider reports an error.
    Said(ProviderMessage),
    /// The reply does not have the form that the API defines.
    Malformed(&'static str),
    /// Something exceeds a limit. Holds its name and a verb.
    TooLarge(&'static str),
    /// The reply ends before it is complete.
    CutOff,
}

/// Error as reported by a provider.
#[derive(Debug, Default)]
pub(super) struct ProviderMessage {
    pub(super) kind: Option<ChatErrorKind>,
    pub(super) text: String,
    /// Field of the request that the error is about.
    pub(super) parameter: Option<String>,
    /// Code of the details, which says more than the type of the error.
    pub(super) code: Option<String>,
    /// True if the same request would fail again, although errors of this kind are usually
    /// transient.
    pub(super) is_lasting: bool,
}

/// An error, and whether to retry.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) error: ChatError,
    pub(super) is_retried: bool,
    /// Field of the request that the provider complains about.
    pub(super) parameter: Option<String>,
    /// Code of the provider for the error.
    pub(super) code: Option<String>,
}

impl Fault {
    /// Creates an error that is not retried.
    pub(super) fn new(kind: ChatErrorKind, message: impl Into<String>) -> Self {
        Self::from(ChatError::new(kind, message))
    }

    /// Creates a transient error, which is retried.
    pub(super) fn passing(kind: ChatErrorKind, message: impl Into<String>) -> Self {
        Self { is_retried: true, ..Self::new(kind, message) }
    }

    pub(super) fn after(mut self, wait: Option<Duration>) -> Self {
        self.error.retry_after = wait;
        self
    }
}

impl From<ChatError> for Fault {
    fn from(error: ChatError) -> Self {
        Self { error, is_retried: false, parameter: None, code: None }
    }
}

impl ProviderMessage {
    /// Reads the error from a body.
    pub(super) fn read(body: &str) -> Self {
        first_object(body)
            .and_then(|body| Self::in_body(&body))
            .unwrap_or_else(|| Self::plain(body))
    }

    /// Returns the error in an object, if the object reports one.
    pub(super) fn in_object(body: &Fields<'_>) -> Option<Self> {
        let is_error = body.raw("error").is_some()
            || ["type", "object"].iter().any(|key| body.text(key).as_deref() == Some("error"));
        if is_error { Self::in_body(body) } else { None }
    }

    fn in_body(body: &Fields<'_>) -> Option<Self> {
        if let Some(error) = body.object("error") {
            return Some(Self::of(&error));
        }
        if let Some(text) = body.some_text("error") {
            return Some(Self { text, ..Self::of(body) });
        }
        ["message", "detail"].iter().any(|key| body.raw(key).is_some()).then(|| Self::of(body))
    }

    fn of(error: &Fields<'_>) -> Self {
        let words: Vec<_> =
            ["code", "type", "status"].iter().filter_map(|key| error.some_text(key)).collect();
        let by_number =
            error.count("code").and_then(|code| u16::try_from(code).ok()).and_then(kind_of_status);
        let text = error.some_text("message").or_else(|| error.raw("detail").map(str::to_owned));
        Self {
            kind: by_number.or_else(|| words.iter().find_map(|word| kind_of_word(word))),
            text: text.or_else(|| words.first().cloned()).unwrap_or_default(),
            parameter: error.some_text("param"),
            code: error.object("details").and_then(|details| details.some_text("error_code")),
            is_lasting: words.iter().any(|word| word == OUT_OF_MONEY),
        }
    }

    fn plain(body: &str) -> Self {
        let body = body.trim();
        let text = if is_page(body) { "an HTML page" } else { body };
        Self { text: text.to_owned(), ..Self::default() }
    }
}

/// Returns whether a string is HTML or XML.
pub(super) fn is_page(text: &str) -> bool {
    text.trim_start().starts_with('<')
}

/// Returns the kind of error for an HTTP status; `None` if the status is not an error.
pub(super) fn kind_of_status(status: u16) -> Option<ChatErrorKind> {
    Some(match status {
        401 | 403 => ChatErrorKind::Unauthorized,
        408 => ChatErrorKind::Timeout,
        429 | 529 => ChatErrorKind::Overloaded,
        400..=499 => ChatErrorKind::Rejected,
        500..=599 => ChatErrorKind::Server,
        _ => return None,
    })
}

/// Returns the kind of error for a provider's error code.
fn kind_of_word(word: &str) -> Option<ChatErrorKind> {
    Some(match word {
        "authentication_error" | "permission_error" | "invalid_api_key" => {
            ChatErrorKind::Unauthorized
        }
        "overloaded_error" | "rate_limit_error" | "rate_limit_exceeded" | OUT_OF_MONEY => {
            ChatErrorKind::Overloaded
        }
        "invalid_request_error" | "not_found_error" | "request_too_large" | "invalid_prompt" => {
            ChatErrorKind::Rejected
        }
        "timeout_error" => ChatErrorKind::Timeout,
        "api_error" | "server_error" => ChatErrorKind::Server,
        _ => return None,
    })
}

/// Returns a third-party string for display: without keys, on one line, and truncated.
pub(super) fn shown(text: &str, without_keys: impl Fn(&str) -> String) -> String {
    let text = without_keys(text);
    let mut shown = String::new();
    for c in text.trim().chars().take(SAID_CHARS_MAX) {
        match c {
            '\n' | '\t' => shown.push(' '),
            c if is_hostile_char(c) => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    if text.trim().chars().count() > SAID_CHARS_MAX {
        shown.push('…');
    }
    shown
}

/// Returns the innermost cause of an error, which is the most specific one.
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}

/// Parses a JSON object, or the first one of a list: Gemini sends its errors in a list.
fn first_object(json: &str) -> Option<Fields<'_>> {
    let first = || fields::elements(json)?.into_iter().next().and_then(Fields::read);
    Fields::read(json).or_else(first)
}

/// Parses a JSON object, or returns the error that it reports.
pub(super) fn checked<'j>(json: &'j str) -> Result<Fields<'j>, ReplyError> {
    let what =
        if is_page(json) { "an HTML page instead of JSON" } else { "what is not a JSON object" };
    let said = first_object(json).and_then(|fields| ProviderMessage::in_object(&fields));
    match said {
        Some(said) => Err(ReplyError::Said(said)),
        None => Fields::read(json).ok_or(ReplyError::Malformed(what)),
    }
}

/// Returns a string field's value, or the JSON of any other field as it was written.
pub(super) fn text_or_json(raw: &str) -> String {
    fields::text(raw).unwrap_or_else(|| raw.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &str) -> (String, Option<ChatErrorKind>) {
        let said = ProviderMessage::read(body);
        (said.text, said.kind)
    }

    #[test]
    fn what_a_provider_says_is_found_in_every_form() {
        let kinds = |text: &str, kind| (text.to_owned(), kind);
        let anthropic =
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        assert_eq!(said(anthropic), kinds("Overloaded", Some(ChatErrorKind::Overloaded)));
        let router = r#"{"error":{"code":502,"message":"no upstream"}}"#;
        assert_eq!(said(router), kinds("no upstream", Some(ChatErrorKind::Server)));
        assert_eq!(said(r#"{"error":"model not found"}"#), kinds("model not found", None));
        assert_eq!(said(r#"{"detail":[{"loc":["body"]}]}"#), kinds(r#"[{"loc":["body"]}]"#, None));
        assert_eq!(said("<html><body>502</body></html>"), kinds("an HTML page", None));
        let gemini =
            r#"[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]"#;
        assert_eq!(said(gemini), kinds("API key not valid", Some(ChatErrorKind::Rejected)));
        assert!(matches!(checked(gemini), Err(ReplyError::Said(_))));
        assert_eq!(said("[]"), kinds("[]", None));
        assert_eq!(said(" upstream\n"), kinds("upstream", None));
        assert!(ProviderMessage::read(r#"{"error":{"code":"insufficient_quota"}}"#).is_lasting);
    }

    #[test]
    fn what_is_shown_has_a_length_and_no_control_characters() {
        let text = format!("a\u{1b}[2J\u{202e}b\u{3164}\nkey {}", "x".repeat(2000));
        let shown = shown(&text, |text| text.replace("key", "[secret key]"));
        assert!(shown.starts_with("a\\u{1b}[2J\\u{202e}b\\u{3164} [secret key] xxx"), "{shown}");
        assert!(shown.ends_with('…') && shown.chars().count() < 700);
    }
}
