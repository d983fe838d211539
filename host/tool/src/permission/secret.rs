//! Secrets, and templates with placeholders for them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Value of a secret. It has no `Display` and its `Debug` hides it, so that it only becomes part of
/// a string where code calls [`expose`](Self::expose).
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(Arc<str>);

/// String with placeholders for secrets: `Bearer ${secret:github}`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretTemplate {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    Text(String),
    Secret(String),
}

/// Error returned for a string that is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSecretTemplate {
    /// A `${` is not closed, or names something other than a secret.
    #[error(
        "has a `${{` that is not `${{secret:NAME}}`; NAME is 1 to 64 characters out of A-Z a-z 0-9 _ -"
    )]
    Placeholder,
    /// The string has a control character.
    #[error("has a control character")]
    Control,
}

impl SecretText {
    /// Wraps a value.
    pub fn new(value: impl Into<Arc<str>>) -> Self {
        Self(value.into())
    }

    /// Returns the value.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// Returns whether a string can be the name of a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

impl SecretTemplate {
    /// Returns the names of the secrets that the template has placeholders for.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Secret(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// Returns the string with its secrets, which `value` looks up.
    ///
    /// # Errors
    /// The name of the first secret that `value` does not know.
    pub fn fill(&self, value: impl Fn(&str) -> Option<SecretText>) -> Result<SecretText, &str> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Secret(name) => text.push_str(value(name).ok_or(name.as_str())?.expose()),
            }
        }
        Ok(SecretText::new(text))
    }
}

impl FromStr for SecretTemplate {
    type Err = InvalidSecretTemplate;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.chars().any(char::is_control) {
            return Err(InvalidSecretTemplate::Control);
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, placeholder)) = rest.split_once("${") {
            let (name, after) = placeholder
                .strip_prefix("secret:")
                .and_then(|placeholder| placeholder.split_once('}'))
                .filter(|(name, _)| is_secret_name(name))
                .ok_or(InvalidSecretTemplate::Placeholder)?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            parts.push(Part::Secret(name.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self { parts })
    }
}

impl fmt::Display for SecretTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => f.write_str(text)?,
                Part::Secret(name) => write!(f, "${{secret:{name}}}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show() {
        assert_eq!(format!("{:?}", SecretText::new("hunter22")), "SecretText(…)");
    }

    #[test]
    fn a_template_is_filled() {
        let template: SecretTemplate = "Basic ${secret:user}:${secret:key}!".parse().unwrap();
        assert_eq!(template.secrets().collect::<Vec<_>>(), ["user", "key"]);
        assert_eq!(template.to_string(), "Basic ${secret:user}:${secret:key}!");
        let filled = template.fill(|name| Some(SecretText::new(name.to_uppercase()))).unwrap();
        assert_eq!(filled.expose(), "Basic USER:KEY!");
        assert_eq!(
            template.fill(|name| (name == "user").then(|| SecretText::new("x"))),
            Err("key")
        );
    }

    #[test]
    fn an_invalid_placeholder_is_refused() {
        for text in ["${", "${x}", "${secret:}", "${secret:a b}", "${secret:a", "${env:HOME}"] {
            assert_eq!(
                text.parse::<SecretTemplate>(),
                Err(InvalidSecretTemplate::Placeholder),
                "{text}"
            );
        }
        assert_eq!("a\r\nb".parse::<SecretTemplate>(), Err(InvalidSecretTemplate::Control));
        assert_eq!("$a {b}".parse::<SecretTemplate>().unwrap().to_string(), "$a {b}");
    }
}
