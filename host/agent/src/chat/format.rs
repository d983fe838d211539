//! Form of a reply, and the effort that a model makes for it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use cofferdam_tool::InputSchema;
use serde::{Deserialize, Serialize};

use super::{ChatError, ChatErrorKind};

/// Maximum number of characters of a format's name at every provider.
const NAME_CHARS_MAX: usize = 64;

/// JSON form of a reply. Cloning is cheap.
///
/// A provider enforces what its dialect of JSON Schema can express. A model may still refuse, or
/// stop at the maximum number of tokens, so the loop decodes the answer with
/// [`schema`](Self::schema) (`LOOP-65`).
#[derive(Debug, Clone)]
pub struct ResponseFormat {
    name: Arc<str>,
    description: Option<Arc<str>>,
    schema: Arc<InputSchema>,
}

/// Effort that a model makes in reasoning. Models support some of the levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Effort {
    /// No reasoning.
    None,
    /// As little as possible.
    Minimal,
    /// Less than usual.
    Low,
    /// Usual.
    Medium,
    /// More than usual.
    High,
    /// Much more than usual.
    Xhigh,
    /// As much as possible.
    Max,
}

/// Error returned when parsing an unknown effort.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no effort `{name}`; known are none, minimal, low, medium, high, xhigh, max")]
pub struct UnknownEffort {
    /// The unknown name.
    pub name: String,
}

impl ResponseFormat {
    /// Creates a format from a JSON Schema of an object. Providers show the name to the model.
    ///
    /// # Errors
    /// [`ChatErrorKind::Configuration`] if the name is not 1 to 64 characters from
    /// `A-Z a-z 0-9 _ -`, or if the schema breaks a rule for tool arguments (`ARG-38`, `ARG-42`).
    pub fn new(name: &str, schema: &str) -> Result<Self, ChatError> {
        let refused = |message: String| ChatError::new(ChatErrorKind::Configuration, message);
        let is_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_char) {
            return Err(refused(format!(
                "the name of a response format has 1 to {NAME_CHARS_MAX} characters from \
                 `A-Z a-z 0-9 _ -`, and `{name}` does not"
            )));
        }
        let schema =
            InputSchema::compile(name, schema).map_err(|error| refused(error.to_string()))?;
        Ok(Self { name: name.into(), description: None, schema: Arc::new(schema) })
    }

    /// Creates the format of a Rust type. Its name is that of the type's schema.
    ///
    /// # Errors
    /// [`ChatErrorKind::Configuration`] if the type's schema is not one of an object, or breaks
    /// another rule of [`new`](Self::new).
    #[cfg(feature = "schemars")]
    pub fn of<T: schemars::JsonSchema>() -> Result<Self, ChatError> {
        let schema = schemars::SchemaGenerator::default().into_root_schema_for::<T>();
        let name = T::schema_name();
        let name = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
        let name: String = name.take(NAME_CHARS_MAX).collect();
        Self::new(&name, &schema.as_value().to_string())
    }

    /// Sets the description of the format for the model.
    #[must_use]
    pub fn with_description(mut self, description: &str) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description, if there is one.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Returns instructions for a model whose provider has no field for the format.
    #[must_use]
    pub fn instructions(&self) -> String {
        let description = self
            .description
            .as_deref()
            .map_or_else(String::new, |description| format!(" The object is: {description}"));
        format!(
            "Answer with one JSON object, and with nothing before or after it.{description} It has \
             to be valid by this JSON Schema:\n{}",
            self.schema.published()
        )
    }

    /// Returns the schema, which decodes answers.
    #[must_use]
    pub fn schema(&self) -> &Arc<InputSchema> {
        &self.schema
    }
}

impl PartialEq for ResponseFormat {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.description) == (&other.name, &other.description)
            && (Arc::ptr_eq(&self.schema, &other.schema)
                || self.schema.published() == other.schema.published())
    }
}

impl Effort {
    /// All levels, the lowest first.
    pub const ALL: [Self; 7] =
        [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// Returns the name that providers and users write.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Effort {
    type Err = UnknownEffort;

    fn from_str(name: &str) -> Result<Self, UnknownEffort> {
        let named = Self::ALL.into_iter().find(|effort| effort.name() == name);
        named.ok_or_else(|| UnknownEffort { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_schema_that_no_provider_accepts_is_refused() {
        let object = r#"{"type":"object"}"#;
        let too_long = "x".repeat(65);
        for (name, schema) in
            [("", object), ("a.b", object), (too_long.as_str(), object), ("a", "[]"), ("a", "{")]
        {
            let error = ResponseFormat::new(name, schema).unwrap_err();
            assert_eq!(error.kind, ChatErrorKind::Configuration, "{name} {schema}");
        }
        let format = ResponseFormat::new("a-b_1", object).unwrap();
        assert_eq!(format, ResponseFormat::new("a-b_1", object).unwrap());
        assert_ne!(format, format.clone().with_description("d"));
    }

    #[test]
    fn every_effort_is_read_by_its_name() {
        for effort in Effort::ALL {
            assert_eq!(effort.to_string().parse(), Ok(effort));
            assert_eq!(serde_json::to_value(effort).unwrap(), effort.name());
        }
        assert!("highest".parse::<Effort>().is_err());
    }
}
