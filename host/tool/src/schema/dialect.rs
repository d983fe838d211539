//! Converts a declared schema to the dialects that model APIs and clients read.
//!
//! A declaration is JSON Schema 2020-12. Clients validate tools against draft-07, model APIs reject
//! combinators at the top level, and strict modes know a third of the keywords. So a schema is
//! rewritten for its reader, and constraints without a keyword in the dialect are described in a
//! few plain words in the description.
//!
//! The converted schema is only for display. Arguments are always decoded by the declaration
//! itself, so the result is the same for every dialect: a strict mode that sends null for every
//! missing argument means the same as omitting it (`ARG-6`).
//!
//! Strict mode is optional. A schema that it cannot express without losing arguments (a map, a
//! value of any type) is converted to the form that the API accepts without strict mode, and
//! [`DialectSchema::strict`] is false.
//!
//! Conversion is bounded for every declaration: copying the targets of references could turn 64 KiB
//! into gigabytes, so it has a budget and starts over without copying when the budget is used up.

mod budget;
mod circles;
mod conditions;
mod conjoin;
mod finish;
mod numbers;
mod plain;
#[cfg(test)]
mod properties;
mod root;
mod rules;
mod size;
#[cfg(test)]
mod tests;
mod words;
mod writer;

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::sites;
use crate::json;
use rules::Rules;
use writer::{SchemaWriter, Stop};

/// Prefix of the loss that disables a schema's strict mode.
const STRICT_OFF: &str = "strict mode is off: ";

/// Dialect of JSON Schema that some reader understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// JSON Schema 2020-12 as published (`ARG-36`), the dialect of MCP.
    Mcp,
    /// Keywords that all clients support, including those that validate by draft-07: no combinator
    /// at the top level, references resolved unless they form a cycle, `items` for every array with
    /// positional items, bounds instead of number formats, and a closed object for a tool without
    /// parameters.
    Portable,
    /// Function parameters of the OpenAI APIs with `strict: true`.
    OpenAiStrict,
    /// Function parameters of the OpenAI APIs without strict mode.
    OpenAi,
    /// `input_schema` of the Anthropic API, in a form that its strict mode accepts.
    Anthropic,
}

/// Error returned for a name that is not a dialect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no dialect `{name}`; known are mcp, portable, openai-strict, openai, anthropic")]
pub struct UnknownDialect {
    /// The unknown name.
    pub name: String,
}

/// A schema converted to a dialect.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct DialectSchema {
    /// Schema to show.
    pub schema: Value,
    /// True if the API's strict mode may be enabled with this schema. Always false for dialects
    /// without one.
    pub strict: bool,
    /// Constraints that the schema no longer expresses by keywords, in the order of the
    /// declaration.
    pub losses: Vec<Loss>,
}

/// A constraint that a dialect cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// JSON Pointer of the schema in the declaration.
    pub pointer: String,
    /// Description of the change, as a sentence without its full stop.
    pub what: String,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 5] =
        [Self::Mcp, Self::Portable, Self::OpenAiStrict, Self::OpenAi, Self::Anthropic];

    /// Returns the name that selects the dialect in user input.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Portable => "portable",
            Self::OpenAiStrict => "openai-strict",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    /// Returns whether the dialect is that of a strict mode.
    #[must_use]
    pub fn has_strict_mode(self) -> bool {
        matches!(self, Self::OpenAiStrict | Self::Anthropic)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        let named = Self::ALL.into_iter().find(|dialect| dialect.name() == name);
        named.ok_or_else(|| UnknownDialect { name: name.to_owned() })
    }
}

impl Loss {
    /// Returns the reason why strict mode is off, if this is that loss.
    pub(crate) fn reason(&self) -> &str {
        self.what.strip_prefix(STRICT_OFF).unwrap_or(&self.what)
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            f.write_str(&self.what)
        } else {
            write!(f, "`{}`: {}", self.pointer, self.what)
        }
    }
}

/// Closes an object that declares no properties. Strict modes require it, and nothing is lost,
/// because undeclared members are dropped.
pub(super) fn close_if_empty(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    let is_empty =
        schema.get("properties").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
    let others =
        ["additionalProperties", "patternProperties", "propertyNames", "minProperties", "required"];
    if is_empty && !others.into_iter().any(|keyword| schema.contains_key(keyword)) {
        schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
}

/// Converts a published schema to a dialect.
pub(super) fn write(published: &Value, dialect: Dialect) -> DialectSchema {
    match dialect {
        Dialect::Mcp => verbatim(published),
        Dialect::Portable => match plain::write(published) {
            Some(schema) => DialectSchema { schema, strict: false, losses: vec![] },
            None => write_by_rules(published, dialect),
        },
        Dialect::OpenAiStrict | Dialect::OpenAi | Dialect::Anthropic => {
            write_by_rules(published, dialect)
        }
    }
}

fn verbatim(published: &Value) -> DialectSchema {
    DialectSchema { schema: published.clone(), strict: false, losses: vec![] }
}

/// Converts a schema keyword by keyword, by the rules of a dialect.
fn write_by_rules(published: &Value, dialect: Dialect) -> DialectSchema {
    let text = published.to_string();
    let verbatim = || verbatim(published);
    let why = |stop: Stop| vec![stop.into_loss(dialect)];
    // The declaration was already read and located once, so this cannot fail. If it does, the
    // published form is used.
    let Ok(json) = json::read(text.as_bytes(), json::levels(text.as_bytes())) else {
        return verbatim();
    };
    let Ok(sites) = sites::locate(&json) else { return verbatim() };
    let written = |rules| SchemaWriter::new(&sites, rules).write();
    let attempt = match dialect {
        Dialect::Mcp | Dialect::OpenAi => Err(vec![]),
        Dialect::Portable => written(&rules::PORTABLE)
            .or_else(|_| written(&rules::PORTABLE_BY_REFERENCE))
            .or_else(|_| written(&rules::PORTABLE_BARE))
            .map_err(why),
        Dialect::OpenAiStrict => written(&rules::OPENAI_STRICT)
            .and_then(|written| size::check_openai(&written.0).map(|()| written))
            .map_err(why),
        Dialect::Anthropic => written(&rules::ANTHROPIC).map_err(why),
    };
    match attempt {
        Ok((schema, losses)) => DialectSchema { schema, strict: dialect.has_strict_mode(), losses },
        Err(why) => not_strict(written, why, verbatim),
    }
}

/// Converts a schema to the form that an API accepts without strict mode.
fn not_strict(
    written: impl Fn(&'static Rules) -> Result<(Value, Vec<Loss>), Stop>,
    mut losses: Vec<Loss>,
    verbatim: impl FnOnce() -> DialectSchema,
) -> DialectSchema {
    let attempt = written(&rules::LOOSE).or_else(|_| written(&rules::LOOSE_BARE));
    let Ok((schema, more)) = attempt else { return DialectSchema { losses, ..verbatim() } };
    losses.extend(more);
    DialectSchema { schema, strict: false, losses }
}

impl Stop {
    fn into_loss(self, dialect: Dialect) -> Loss {
        match self {
            Self::TooLarge => Loss {
                pointer: String::new(),
                what: format!("the schema is too large to be rewritten for {dialect}"),
            },
            Self::CannotSay { pointer, what } => {
                Loss { pointer, what: format!("{STRICT_OFF}{what}") }
            }
        }
    }
}
