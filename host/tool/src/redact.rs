//! Redacts the values of secrets.

mod spellings;

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

use self::spellings::SpellingSearch;
use crate::output::ResourceBody;
use crate::permission::SecretText;
use crate::{CallRecord, Content, Outcome, Output, ToolError, ToolFailure};

/// Shortest secret in bytes. Shorter values occur by chance in too many strings.
const SECRET_BYTES_MIN: usize = 8;
/// Longest secret in bytes. A PEM key has about 3 KiB.
const SECRET_BYTES_MAX: usize = 64 * 1024;

/// Replaces the values of secrets by `[secret NAME]` in everything that leaves a call.
///
/// Finds a value verbatim, with JSON escapes, percent-encoded, and in base64. A guest that wants to
/// leak a secret that it may read can encode it differently: redaction protects against accidents.
/// A secret that a guest must not know is bound to a request instead, where the guest never sees
/// it.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    search: SpellingSearch,
    /// Replacement for each spelling.
    replacements: Vec<String>,
}

/// Error returned for a value that cannot be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnusableSecret {
    /// The value is too short.
    #[error(
        "the secret `{name}` is shorter than {SECRET_BYTES_MIN} bytes, too short to be kept out \
         of texts"
    )]
    TooShort {
        /// Name of the secret.
        name: String,
    },
    /// The value is too long.
    #[error("the secret `{name}` is longer than {SECRET_BYTES_MAX} bytes")]
    TooLong {
        /// Name of the secret.
        name: String,
    },
}

impl Redactor {
    /// Returns a redactor for these secrets, given by name.
    ///
    /// # Errors
    /// [`UnusableSecret`] if a value cannot be redacted.
    pub fn new<'s>(
        secrets: impl IntoIterator<Item = (&'s str, &'s SecretText)>,
    ) -> Result<Self, UnusableSecret> {
        let (mut patterns, mut replacements) = (Vec::new(), Vec::new());
        for (name, secret) in secrets {
            let value = secret.expose();
            if value.len() < SECRET_BYTES_MIN {
                return Err(UnusableSecret::TooShort { name: name.to_owned() });
            }
            if value.len() > SECRET_BYTES_MAX {
                return Err(UnusableSecret::TooLong { name: name.to_owned() });
            }
            for spelling in spellings(value) {
                patterns.push(spelling);
                replacements.push(format!("[secret {name}]"));
            }
        }
        let search = SpellingSearch::new(&patterns)
            .map_err(|_| UnusableSecret::TooLong { name: "of the plugin".to_owned() })?;
        Ok(Self { search, replacements })
    }

    /// Returns whether there is nothing to redact.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.search.is_empty()
    }

    /// Redacts a string.
    #[must_use]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match self.search.replace(text.as_bytes(), &self.replacements) {
            // Spellings and their replacements are UTF-8, and so is the result.
            Some(clean) => Cow::Owned(String::from_utf8(clean).unwrap_or_default()),
            None => Cow::Borrowed(text),
        }
    }

    /// Redacts an outcome.
    #[must_use]
    pub fn outcome(&self, outcome: Outcome) -> Outcome {
        if self.is_empty() {
            return outcome;
        }
        match outcome {
            Outcome::Ok(output) => Outcome::Ok(self.output(output)),
            Outcome::Failure(failure) => Outcome::Failure(self.failure(failure)),
            Outcome::Error(error) => Outcome::Error(self.error(error)),
            Outcome::Cancelled => Outcome::Cancelled,
        }
    }

    /// Redacts the output of a tool.
    #[must_use]
    pub fn output(&self, output: Output) -> Output {
        match output {
            Output::Value(value) => Output::Value(self.value(value)),
            Output::Contents(contents) => Output::Contents(
                contents.into_iter().map(|content| self.content(content)).collect(),
            ),
        }
    }

    /// Redacts an error of a call.
    #[must_use]
    pub fn error(&self, mut error: ToolError) -> ToolError {
        error.detail = error.detail.map(|text| self.string(text));
        error.backtrace = error.backtrace.map(|text| self.string(text));
        error.with_cleaned_value(|value| self.value(value))
    }

    /// Redacts a failure that a tool reported.
    #[must_use]
    pub fn failure(&self, failure: ToolFailure) -> ToolFailure {
        ToolFailure {
            message: self.string(failure.message),
            suggestion: failure.suggestion.map(|text| self.string(text)),
            value: failure.value.map(|value| self.value(value)),
            transient: failure.transient,
            is_bare: failure.is_bare,
        }
    }

    /// Redacts everything in `record` that a guest or an engine has written.
    pub fn record(&self, record: &mut CallRecord) {
        if self.is_empty() {
            return;
        }
        let texts = [&mut record.stdout_tail, &mut record.stderr_tail];
        let optional = [&mut record.detail, &mut record.backtrace];
        for text in texts
            .into_iter()
            .chain(optional.into_iter().flatten())
            .chain(&mut record.dropped)
            .chain(&mut record.store_failures)
        {
            if let Cow::Owned(clean) = self.text(text) {
                *text = clean;
            }
        }
        for change in &mut record.files {
            if let Cow::Owned(clean) = self.text(&change.path) {
                change.path = clean;
            }
            change.diff = change.diff.take().map(|diff| self.string(diff));
        }
        record.inner.iter_mut().for_each(|inner| self.record(inner));
        for host in &mut record.hosts {
            if let Cow::Owned(clean) = self.text(&host.host) {
                host.host = clean;
            }
        }
        for refusal in &mut record.refused {
            if let Cow::Owned(clean) = self.text(&refusal.capability) {
                refusal.capability = clean;
            }
            refusal.reason = refusal.reason.take().map(|reason| self.string(reason));
        }
    }

    fn string(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Owned(clean) => clean,
            Cow::Borrowed(_) => text,
        }
    }

    /// Redacts a JSON value, including its keys.
    #[must_use]
    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.string(text)),
            Value::Array(items) => {
                Value::Array(items.into_iter().map(|item| self.value(item)).collect())
            }
            Value::Object(members) => {
                let clean = |(key, value)| (self.string(key), self.value(value));
                Value::Object(members.into_iter().map(clean).collect())
            }
            other => other,
        }
    }

    fn content(&self, content: Content) -> Content {
        match content {
            Content::Text(text) => Content::Text(self.string(text)),
            Content::Json(value) => Content::Json(self.value(value)),
            Content::Blob { media_type, data } => {
                Content::Blob { media_type: self.string(media_type), data: self.bytes(data) }
            }
            Content::Resource { uri, media_type, body } => Content::Resource {
                uri: self.string(uri),
                media_type: media_type.map(|media_type| self.string(media_type)),
                body: match body {
                    ResourceBody::Text(text) => ResourceBody::Text(self.string(text)),
                    ResourceBody::Blob(data) => ResourceBody::Blob(self.bytes(data)),
                },
            },
            Content::Link { uri, name, media_type } => Content::Link {
                uri: self.string(uri),
                name: self.string(name),
                media_type: media_type.map(|media_type| self.string(media_type)),
            },
        }
    }

    fn bytes(&self, data: Vec<u8>) -> Vec<u8> {
        self.search.replace(&data, &self.replacements).unwrap_or(data)
    }
}

/// Returns the spellings of a value that occur without an intention to hide it.
fn spellings(value: &str) -> Vec<String> {
    let json = Value::from(value).to_string();
    let json = json.trim_matches('"').to_owned();
    let (mut upper, mut lower) = (String::new(), String::new());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            upper.push(char::from(byte));
            lower.push(char::from(byte));
        } else {
            upper.push_str(&format!("%{byte:02X}"));
            lower.push_str(&format!("%{byte:02x}"));
        }
    }
    let mut spellings = vec![
        value.to_owned(),
        json,
        upper,
        lower,
        STANDARD_NO_PAD.encode(value),
        URL_SAFE_NO_PAD.encode(value),
    ];
    spellings.sort_unstable();
    spellings.dedup();
    spellings
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ErrorType, ToolError};

    const SECRET: &str = "S3cr3t/\"pass\"+word";

    fn redactor() -> Redactor {
        let (key, other) =
            (SecretText::new(SECRET), SecretText::new("S3cr3t/\"pass\"+word and more"));
        Redactor::new([("key", &key), ("other", &other)]).unwrap()
    }

    #[test]
    fn a_secret_is_hidden_in_every_plain_spelling() {
        let redactor = redactor();
        for text in [
            SECRET.to_owned(),
            json!(SECRET).to_string(),
            "S3cr3t%2F%22pass%22%2Bword".to_owned(),
            "S3cr3t%2f%22pass%22%2bword".to_owned(),
            STANDARD_NO_PAD.encode(SECRET),
            format!("Authorization: Bearer {SECRET}\n"),
        ] {
            let clean = redactor.text(&text);
            assert!(clean.contains("[secret key]") && !clean.contains("S3cr3t"), "{text}: {clean}");
        }
        assert_eq!(redactor.text(&format!("{SECRET} and more")), "[secret other]");
        assert!(matches!(redactor.text("nothing here"), Cow::Borrowed(_)));
    }

    #[test]
    fn everything_that_leaves_a_call_is_searched() {
        let redactor = redactor();
        let mut error = ToolError::new(ErrorType::TrapUnreachable).with_detail(SECRET);
        error.backtrace = Some(SECRET.to_owned());
        let failure = ToolFailure {
            message: SECRET.to_owned(),
            suggestion: Some(SECRET.to_owned()),
            value: Some(json!({ SECRET: [SECRET] })),
            ..ToolFailure::default()
        };
        let contents = vec![
            Content::Text(SECRET.to_owned()),
            Content::Json(json!([SECRET])),
            Content::Blob {
                media_type: SECRET.to_owned(),
                data: format!("x{SECRET}y").into_bytes(),
            },
            Content::Resource {
                uri: format!("a://{SECRET}"),
                media_type: Some(SECRET.to_owned()),
                body: ResourceBody::Blob(format!("x{SECRET}y").into_bytes()),
            },
            Content::Link {
                uri: SECRET.to_owned(),
                name: SECRET.to_owned(),
                media_type: Some(SECRET.to_owned()),
            },
        ];
        for outcome in [
            Outcome::Ok(Output::Value(json!({"a": [SECRET]}))),
            Outcome::Ok(Output::Contents(contents)),
            Outcome::Failure(failure),
            Outcome::Error(error),
        ] {
            let mut record = CallRecord {
                stdout_tail: SECRET.to_owned(),
                stderr_tail: SECRET.to_owned(),
                dropped: vec![SECRET.to_owned()],
                ..CallRecord::default()
            };
            let clean = redactor.outcome(outcome);
            record.set_outcome(&clean);
            redactor.record(&mut record);
            let written = format!("{clean:?} {record:?}");
            assert!(!written.contains("S3cr3t"), "{written}");
            assert!(written.contains("[secret key]"), "{written}");
        }
    }

    #[test]
    fn what_cannot_be_hidden_is_refused() {
        let (short, long) = (SecretText::new("1234567"), SecretText::new("x".repeat(65_537)));
        assert!(matches!(Redactor::new([("a", &short)]), Err(UnusableSecret::TooShort { .. })));
        assert!(matches!(Redactor::new([("a", &long)]), Err(UnusableSecret::TooLong { .. })));
        assert!(Redactor::new([]).unwrap().is_empty());
    }
}
