//! Names of tools and plugins, validated once on entry.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// Longest tool name in characters (`ARG-38`).
const TOOL_NAME_CHARS_MAX: usize = 128;
/// Longest plugin name in characters. Short enough that `<plugin>_<tool>` stays readable in a
/// client.
const PLUGIN_NAME_CHARS_MAX: usize = 64;

/// Name of a tool: 1 to 128 characters from `A-Z a-z 0-9 _ . -` (`ARG-38`). Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct ToolName(Arc<str>);

/// Configured name of a plugin: 1 to 64 characters from `A-Z a-z 0-9 _ -`. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct PluginName(Arc<str>);

/// Error returned for a string that is not a valid name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// The string is empty.
    #[error("a name must not be empty")]
    Empty,
    /// The string is too long.
    #[error("a name must not be longer than {chars_max} characters")]
    TooLong {
        /// Limit that was exceeded.
        chars_max: usize,
    },
    /// The string contains a character outside the alphabet.
    #[error("a name is made of {alphabet}, not {found:?}")]
    Character {
        /// First character that is not allowed.
        found: char,
        /// Characters that are allowed.
        alphabet: &'static str,
    },
}

impl ToolName {
    /// Validates `name` against the alphabet and length of `ARG-38`.
    ///
    /// # Errors
    /// The first rule that the string breaks.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
        check(name.into(), TOOL_NAME_CHARS_MAX, "A-Z a-z 0-9 _ . -", |c| {
            matches!(c, '_' | '.' | '-')
        })
        .map(|name| Self(name.into()))
    }
}

impl ToolName {
    /// Returns the name of a tool that `wanted` was probably meant to be (`ARG-25`).
    pub fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<Self> {
        nearest(wanted, names).and_then(|name| Self::new(name).ok())
    }
}

impl PluginName {
    /// Validates `name` against the alphabet and length of plugin names.
    ///
    /// # Errors
    /// The first rule that the string breaks.
    pub fn new(name: impl Into<String>) -> Result<Self, InvalidName> {
        check(name.into(), PLUGIN_NAME_CHARS_MAX, "A-Z a-z 0-9 _ -", |c| matches!(c, '_' | '-'))
            .map(|name| Self(name.into()))
    }
}

fn check(
    name: String,
    chars_max: usize,
    alphabet: &'static str,
    is_punctuation: fn(char) -> bool,
) -> Result<String, InvalidName> {
    if name.is_empty() {
        return Err(InvalidName::Empty);
    }
    if let Some(found) = name.chars().find(|&c| !(c.is_ascii_alphanumeric() || is_punctuation(c))) {
        return Err(InvalidName::Character { found, alphabet });
    }
    if name.len() > chars_max {
        return Err(InvalidName::TooLong { chars_max });
    }
    Ok(name)
}

macro_rules! name_impls {
    ($($name:ident),*) => {$(
        impl $name {
            /// Returns the name as a string.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(name: String) -> Result<Self, InvalidName> {
                Self::new(name)
            }
        }
        impl std::str::FromStr for $name {
            type Err = InvalidName;
            fn from_str(name: &str) -> Result<Self, InvalidName> {
                Self::new(name)
            }
        }
        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0.as_ref().to_owned()
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    )*};
}
name_impls!(ToolName, PluginName);

/// Returns the name that `wanted` was probably meant to be (`ARG-25`): the one with the smallest
/// edit distance ignoring ASCII case, at most a third of the longer name or 1, and the first of
/// several.
pub(crate) fn nearest<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_ascii_lowercase();
    let wanted_chars = wanted.chars().count();
    let mut best: Option<(usize, &str)> = None;
    for name in names {
        let name_chars = name.chars().count();
        let distance_max = (wanted_chars.max(name_chars) / 3).max(1);
        // Names of very different lengths are far apart; this also avoids comparing long names.
        if wanted_chars.abs_diff(name_chars) > distance_max {
            continue;
        }
        let distance = strsim::levenshtein(&wanted, &name.to_ascii_lowercase());
        if distance <= distance_max && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_at_most_a_third_away() {
        let names = ["file_name", "content", "overwrite"];
        let nearest = |wanted| super::nearest(wanted, names.into_iter());
        assert_eq!(nearest("filename"), Some("file_name"));
        assert_eq!(nearest("FILENAME"), Some("file_name"));
        assert_eq!(nearest("overwrit"), Some("overwrite"));
        assert_eq!(nearest("contents"), Some("content"));
        assert_eq!(nearest("q"), None);
        assert_eq!(nearest("name"), None);
        assert_eq!(super::nearest("b", ["a", "c"].into_iter()), Some("a"));
        assert_eq!(super::nearest("kitten", ["sitting"].into_iter()), None);
        assert_eq!(super::nearest("abcdef", ["abdcef"].into_iter()), Some("abdcef"));
        assert_eq!(super::nearest("", ["a", ""].into_iter()), Some(""));
    }

    #[test]
    fn tool_names_follow_the_alphabet_of_arg_38() {
        for good in ["a", "word_count", "a.b-c", "A1", &"x".repeat(128)] {
            assert!(ToolName::new(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "ä", "a/b", "a\u{0}", &"x".repeat(129)] {
            assert!(ToolName::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn plugin_names_have_no_dots() {
        assert!(PluginName::new("text-tools").is_ok());
        assert_eq!(
            PluginName::new("a.b"),
            Err(InvalidName::Character { found: '.', alphabet: "A-Z a-z 0-9 _ -" })
        );
    }
}
