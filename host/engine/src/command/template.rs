//! Templates of words on a command line.
//!
//! `{name}` is the value of a parameter: a string unchanged, anything else as JSON. `{name?}` is
//! empty and requires that the parameter is `true`. `{{` and `}}` are braces.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Parsed template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Template(Vec<TemplatePart>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum TemplatePart {
    Literal(String),
    Parameter(String),
    /// Parameter that must be true.
    Condition(String),
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// A message if a brace has no partner.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            literal.push_str(before);
            let doubled = [("{{", '{'), ("}}", '}')];
            let doubled =
                doubled.iter().find_map(|(two, one)| Some((brace.strip_prefix(two)?, *one)));
            if let Some((after, one)) = doubled {
                literal.push(one);
                rest = after;
                continue;
            }
            let named = brace.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let Some((name, after)) =
                named.filter(|(name, _)| !name.is_empty() && !name.contains('{'))
            else {
                return Err(
                    "a brace has no partner; write `{{` for `{` and `}}` for `}`".to_owned()
                );
            };
            if !literal.is_empty() {
                parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
            }
            parts.push(match name.strip_suffix('?') {
                Some(name) => TemplatePart::Condition(name.to_owned()),
                None => TemplatePart::Parameter(name.to_owned()),
            });
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal));
        }
        Ok(Self(parts))
    }

    /// Returns the parameters that the template names.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Literal(_) => None,
            TemplatePart::Parameter(name) | TemplatePart::Condition(name) => Some(name.as_str()),
        })
    }

    /// Returns the text with the values of the parameters. Returns `None` if one is absent or null,
    /// or if a condition is not true.
    pub(super) fn text(&self, values: &Map<String, Value>) -> Option<String> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                TemplatePart::Literal(literal) => text.push_str(literal),
                TemplatePart::Parameter(name) => text.push_str(&word(values.get(name)?)?),
                TemplatePart::Condition(name) => {
                    values.get(name).filter(|value| **value == Value::Bool(true))?;
                }
            }
        }
        Some(text)
    }

    /// Returns the words for which the template stands: one, or one per item if it is nothing but a
    /// parameter with a list. A condition only is no word. Returns `None` like
    /// [`text`](Self::text).
    pub(super) fn arguments(&self, values: &Map<String, Value>) -> Option<Vec<String>> {
        match self.0.as_slice() {
            [TemplatePart::Condition(_)] => self.text(values).map(|_| Vec::new()),
            [TemplatePart::Parameter(name)] => match values.get(name)? {
                Value::Array(items) => items.iter().map(word).collect(),
                value => Some(vec![word(value)?]),
            },
            _ => Some(vec![self.text(values)?]),
        }
    }
}

/// Returns a value as a word; `None` for null.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
