//! Redaction of payloads and names before anything is hashed or written.
//!
//! First the values of granted secrets, then tokens of known shapes, then values under names such
//! as `authorization` and `password`. One search for a few literals decides whether any pattern can
//! match, so that payloads without them cost no more than that search. Redaction protects against
//! accidents: a guest can encode a secret so that no pattern finds it.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;
use cofferdam_tool::recording::RecordedBytes;
use cofferdam_tool::redact::Redactor;
use regex::Regex;
use serde_json::Value;

use crate::RecordError;

/// Literals, one of which is in every text that a pattern matches. Case does not matter.
const MARKS: [&str; 24] = [
    "sk-",
    "sk_live",
    "rk_live",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "akia",
    "asia",
    "aiza",
    "bearer",
    "basic ",
    "eyj",
    "private key",
    "authorization",
    "cookie",
    "passw",
    "token",
    "key",
    "secret",
];

/// Tokens of known shapes.
const SHAPES: &str = r"(?x)
    -----BEGIN\ [A-Z0-9\ ]*PRIVATE\ KEY-----(?s:.*?)(?:-----END\ [A-Z0-9\ ]*PRIVATE\ KEY-----|\z)
    | \b(?:sk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{16,}
    | \bgh[pousr]_[A-Za-z0-9]{16,} | \bgithub_pat_[A-Za-z0-9_]{16,} | \bglpat-[A-Za-z0-9_-]{16,}
    | \bxox[a-z]-[A-Za-z0-9-]{8,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{12,} | \bAIza[A-Za-z0-9_-]{30,}
    | \beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?
    | \b(?i:bearer|basic)\ +[A-Za-z0-9._~+/=-]{8,}";

/// Names of values that are secrets, as a part of a pattern.
const NAMES: &str = r"(?:proxy-)?authorization|(?:set-)?cookie|passw(?:or)?d|passphrase|(?:[a-z0-9]+[-_])*token|(?:x-)?api[-_]?key|private[-_]?key|access[-_]?key(?:[-_]id)?|secret[-_]access[-_]key|(?:client[-_])?secret|accesstoken|refreshtoken|idtoken|authtoken|sessiontoken";

const REDACTED: &str = "[redacted]";

/// Members of a recording whose own members have names that a tool, a user or a server has chosen.
const FOREIGN_NAMES: [&str; 4] = ["arguments", "env", "config", "questions"];

/// Redacts text before it is hashed or written.
#[derive(Debug)]
pub(crate) struct Cleaner {
    secrets: Redactor,
    marks: AhoCorasick,
    shapes: Regex,
    /// A name with a quoted value, such as a JSON member, also inside of a JSON string.
    quoted: Regex,
    /// A name with a value that is not quoted, such as a header or a part of a query.
    bare: Regex,
    name: Regex,
}

impl Cleaner {
    pub(crate) fn new(secrets: Redactor) -> Result<Self, RecordError> {
        let failure = |error: &dyn std::fmt::Display| RecordError::Pattern(error.to_string());
        let regex = |pattern: &str| Regex::new(pattern).map_err(|error| failure(&error));
        Ok(Self {
            secrets,
            marks: AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .build(MARKS)
                .map_err(|error| failure(&error))?,
            shapes: regex(SHAPES)?,
            quoted: regex(&format!(
                r#"(?is)(\b(?:{NAMES})\\*["']\s*[:=]\s*)(?:\\*")((?:[^"\\]|\\.)*)(?:"|\z)"#
            ))?,
            bare: regex(&format!(
                r#"(?i)(\b(?:{NAMES})\s*[:=]\s*)(?:(?:bearer|basic|token)\s+)?[^\s"'&,;\\]+[^\r\n"&\\]*"#
            ))?,
            name: regex(&format!("(?i)^(?:{NAMES})$"))?,
        })
    }

    /// Returns whether there is nothing to redact in text. Also false for some text without
    /// secrets.
    pub(crate) fn is_clean(&self, text: &str) -> bool {
        !self.marks.is_match(text) && matches!(self.secrets.text(text), Cow::Borrowed(_))
    }

    /// Redacts text, such as a path or the output of a guest.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.secrets.text(text) {
            Cow::Borrowed(text) if !self.marks.is_match(text) => Cow::Borrowed(text),
            clean => Cow::Owned(self.patterns(&clean)),
        }
    }

    /// Redacts the text of a JSON value.
    pub(crate) fn json<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.secrets.text(text) {
            Cow::Borrowed(text) if !self.marks.is_match(text) => Cow::Borrowed(text),
            clean => match serde_json::from_str(&clean) {
                Ok(mut value) => {
                    self.value(&mut value);
                    Cow::Owned(value.to_string())
                }
                // A value that was cut.
                Err(_) => Cow::Owned(self.patterns(&clean)),
            },
        }
    }

    /// Redacts a message of a conversation, as JSON. Returns whether something was redacted.
    pub(crate) fn message(&self, message: &mut Value) -> bool {
        if self.is_clean(&message.to_string()) {
            return false;
        }
        let before = message.clone();
        self.value(message);
        *message != before
    }

    /// Redacts a string where it is.
    pub(crate) fn string(&self, text: &mut String) {
        if let Cow::Owned(clean) = self.text(text) {
            *text = clean;
        }
    }

    fn patterns(&self, text: &str) -> String {
        let clean = self.shapes.replace_all(text, REDACTED);
        let clean = self.quoted.replace_all(&clean, "${1}\"[redacted]\"");
        self.bare.replace_all(&clean, "${1}[redacted]").into_owned()
    }

    /// Redacts the strings of a value, and everything under the name of a secret.
    fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Object(members) => {
                let is_clean = members.keys().all(|key| !self.marks.is_match(key));
                if is_clean {
                    return members.values_mut().for_each(|member| self.value(member));
                }
                *members = std::mem::take(members)
                    .into_iter()
                    .map(|(key, member)| self.member(key, member))
                    .collect();
            }
            _ => {}
        }
    }

    /// Redacts recorded bytes. Bytes that are not text and contain a granted secret are removed.
    /// Returns whether something was redacted.
    pub(crate) fn content(&self, content: &mut RecordedBytes) -> bool {
        match content {
            RecordedBytes::Text(text) => {
                let Cow::Owned(clean) = self.text(text) else { return false };
                let is_redacted = clean != *text;
                *text = clean;
                is_redacted
            }
            RecordedBytes::Base64(_) => {
                let bytes = content.bytes().unwrap_or_default();
                let text = String::from_utf8_lossy(&bytes);
                let is_redacted = matches!(self.secrets.text(&text), Cow::Owned(_));
                if is_redacted {
                    *content = RecordedBytes::Text(REDACTED.to_owned());
                }
                is_redacted
            }
            RecordedBytes::Stored { .. } => false,
        }
    }

    /// Redacts the JSON form of a recording and keeps its structure. Returns whether something was
    /// redacted.
    pub(crate) fn recording(&self, value: &mut Value) -> bool {
        let before = value.clone();
        self.structure(value, false);
        *value != before
    }

    /// Redacts strings. Values under names of secrets are redacted if the names are those of a
    /// tool, a user or a server, and not those of the structure.
    fn structure(&self, value: &mut Value, has_foreign_names: bool) {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => match items.as_mut_slice() {
                // A header.
                [Value::String(name), value @ Value::String(_)] if self.name.is_match(name) => {
                    *value = Value::from(REDACTED);
                }
                items => items.iter_mut().for_each(|item| self.structure(item, has_foreign_names)),
            },
            Value::Object(members) if has_foreign_names => {
                *members = std::mem::take(members)
                    .into_iter()
                    .map(|(key, member)| self.member(key, member))
                    .collect();
            }
            Value::Object(members) => {
                *members = std::mem::take(members)
                    .into_iter()
                    .map(|(mut key, mut member)| {
                        let is_foreign = FOREIGN_NAMES.contains(&key.as_str());
                        self.structure(&mut member, is_foreign);
                        self.string(&mut key);
                        (key, member)
                    })
                    .collect();
            }
            _ => {}
        }
    }

    fn member(&self, mut key: String, mut value: Value) -> (String, Value) {
        if self.name.is_match(&key) {
            let is_empty = matches!(value, Value::Null | Value::Bool(_));
            return (key, if is_empty { value } else { Value::from(REDACTED) });
        }
        self.string(&mut key);
        self.value(&mut value);
        (key, value)
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_tool::permission::SecretText;
    use serde_json::json;

    use super::*;

    fn cleaner() -> Cleaner {
        let secret = SecretText::new("granted/secret");
        Cleaner::new(Redactor::new([("key", &secret)]).unwrap()).unwrap()
    }

    #[test]
    fn tokens_of_known_shapes_are_redacted() {
        let cleaner = cleaner();
        for token in [
            "sk-CANARYabcdefghij0123456789",
            "sk-proj-CANARY_abcdefghij-0123456789",
            "ghp_CANARYabcdefghij0123456789abcdefgh",
            "github_pat_CANARYabcdefghij0123456789",
            "xoxb-123456789012-CANARYabcdef",
            "AKIACANARY7EXAMPLEQQ",
            "Bearer CANARY.abcdef",
            "basic Q0FOQVJZOkNBTkFSWQCANARY==",
            "eyJhbGciOi.eyJCANARYzdWIi.CANARY-x",
            "-----BEGIN RSA PRIVATE KEY-----\nCANARY\nx\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN PRIVATE KEY-----\nCANARY",
        ] {
            for text in [
                token.to_owned(),
                format!("a {token} b"),
                format!("x={token}\n"),
                json!({"a": [format!("it is {token}")]}).to_string(),
            ] {
                let (plain, json) = (cleaner.text(&text), cleaner.json(&text));
                for clean in [plain, json] {
                    assert!(!clean.contains("CANARY"), "{text}: {clean}");
                }
            }
        }
    }

    #[test]
    fn values_under_names_of_secrets_are_redacted() {
        let cleaner = cleaner();
        for name in ["authorization", "Set-Cookie", "password", "access_token", "API-Key", "secret"]
        {
            for text in [
                json!({name: "CANARY"}).to_string(),
                json!({"x": {name: ["CANARY", {"y": "CANARY"}]}}).to_string(),
                json!({"body": json!({name: "CANARY \" CANARY"}).to_string()}).to_string(),
                format!("GET /?a=1&{name}=CANARY&b=2"),
                format!("{name}: CANARY; CANARY\r\nhost: x"),
                format!("{{\"{name}\": \"CANARY"),
            ] {
                let clean = cleaner.json(&text);
                assert!(!clean.contains("CANARY"), "{text}: {clean}");
            }
        }
        assert_eq!(cleaner.text("a granted/secret b"), "a [secret key] b");
    }

    #[test]
    fn other_text_stays() {
        let cleaner = cleaner();
        for text in ["", "hello", r#"{"a":1}"#, "the keyboard", "monkey: 5", "skill-set"] {
            assert_eq!(cleaner.text(text), text);
            assert_eq!(cleaner.json(text), text);
        }
        assert_eq!(cleaner.json(r#"{"token":null}"#), r#"{"token":null}"#);
    }
}
