//! Prompt files: a template with variables, and settings of requests (`CHOICE-10`, `CHOICE-18`).

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

#[cfg(feature = "yaml")]
use super::read::parse_yaml;
use super::read::{object, parse_json, part};
use super::{InvalidChoice, PromptSettings};

/// Template format that is supported, and the default.
const FORMAT: &str = "semantic-kernel";
/// Maximum bytes of a rendered prompt.
const RENDERED_BYTES_MAX: usize = 16 << 20;
/// Beginning of an element that divides a prompt into messages.
const MESSAGE: &str = "<message";

/// A prompt file: settings for each service, and possibly a template of the prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PromptFile {
    /// Settings of requests.
    pub settings: PromptSettings,
    /// Template of the prompt.
    pub template: Option<PromptTemplate>,
}

/// Template of a prompt: text with variables `{{$name}}`.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptTemplate {
    parts: Vec<TemplatePart>,
    variables: BTreeMap<String, InputVariable>,
}

#[derive(Debug, Clone, PartialEq)]
enum TemplatePart {
    Text(String),
    Variable(String),
}

/// Entry of `input_variables`.
#[derive(Debug, Clone, PartialEq)]
struct InputVariable {
    default: Option<String>,
    is_required: bool,
}

/// Error returned for an invalid prompt file or for arguments that do not fit it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPrompt {
    /// The file or its settings are invalid.
    #[error(transparent)]
    Settings(#[from] InvalidChoice),
    /// The template is written in another language.
    #[error("unknown template format `{format}`; expected `{}`", FORMAT)]
    Format {
        /// Value of `template_format`.
        format: String,
    },
    /// The template has a tag that is neither a variable nor a string.
    #[error(
        "unsupported tag `{tag}` in line {line} of the template; expected a variable `{{{{$name}}}}` or \
         a string `{{{{\"text\"}}}}`"
    )]
    Tag {
        /// The tag, or its beginning.
        tag: String,
        /// Line in the template, from 1.
        line: usize,
    },
    /// The template has several messages.
    #[error("the template has `{}` elements; expected the text of one message", MESSAGE)]
    Messages,
    /// Required variables have no argument.
    #[error("missing arguments of the prompt: {}", .names.join(", "))]
    Missing {
        /// Names of the variables.
        names: Vec<String>,
    },
    /// The template has no such variable.
    #[error("the prompt has no variable `{name}`; variables: {}", listed(.known))]
    Unknown {
        /// Name of the argument.
        name: String,
        /// Names of all variables.
        known: Vec<String>,
    },
    /// The rendered prompt is too long.
    #[error("the prompt is longer than {} bytes", RENDERED_BYTES_MAX)]
    TooLarge,
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

impl PromptFile {
    /// Parses a prompt file in JSON.
    ///
    /// # Errors
    /// [`InvalidPrompt`] if the string is not JSON, or if its template or any entry of its settings
    /// is invalid.
    pub fn from_json(text: &str) -> Result<Self, InvalidPrompt> {
        Self::from_value(&parse_json(text)?)
    }

    /// Parses a prompt file in YAML; requires the feature `yaml`.
    ///
    /// # Errors
    /// Like [`from_json`](Self::from_json).
    #[cfg(feature = "yaml")]
    pub fn from_yaml(text: &str) -> Result<Self, InvalidPrompt> {
        Self::from_value(&parse_yaml(text)?)
    }

    fn from_value(prompt: &Value) -> Result<Self, InvalidPrompt> {
        let settings = PromptSettings::from_value(prompt)?;
        let prompt = object(prompt, "prompt")?;
        let text = |name| match part(prompt, name) {
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(InvalidChoice::Form { part: name, expected: "a string" }),
            None => Ok(None),
        };
        if let Some(format) = text("template_format")?.filter(|format| *format != FORMAT) {
            return Err(InvalidPrompt::Format { format: format.to_owned() });
        }
        let variables = match part(prompt, "input_variables") {
            Some(Value::Array(list)) => {
                list.iter().map(input_variable).collect::<Result<_, InvalidChoice>>()?
            }
            Some(_) => {
                let error = InvalidChoice::Form { part: "input_variables", expected: "a list" };
                return Err(error.into());
            }
            None => BTreeMap::new(),
        };
        let template = match text("template")? {
            Some(text) if text.contains(MESSAGE) => return Err(InvalidPrompt::Messages),
            Some(text) => Some(PromptTemplate { parts: parts(text)?, variables }),
            None => None,
        };
        Ok(Self { settings, template })
    }
}

fn input_variable(value: &Value) -> Result<(String, InputVariable), InvalidChoice> {
    let entry = object(value, "input_variables")?;
    let name = part(entry, "name").and_then(Value::as_str);
    let name = name.ok_or(InvalidChoice::Form { part: "name", expected: "a string" })?;
    let is_required = match part(entry, "is_required") {
        Some(Value::Bool(is_required)) => *is_required,
        Some(_) => {
            return Err(InvalidChoice::Form { part: "is_required", expected: "true or false" });
        }
        None => true,
    };
    let default = part(entry, "default").map(|default| match default {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    });
    Ok((name.to_owned(), InputVariable { default, is_required }))
}

/// Splits a template at its tags.
fn parts(template: &str) -> Result<Vec<TemplatePart>, InvalidPrompt> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((text, from_tag)) = rest.split_once("{{") {
        if !text.is_empty() {
            parts.push(TemplatePart::Text(text.to_owned()));
        }
        let Some((part, after)) = tag(from_tag) else {
            let before = template.len().saturating_sub(from_tag.len());
            let before = template.get(..before).unwrap_or_default();
            let end = from_tag.find("}}").map_or(from_tag.len(), |end| end.saturating_add(2));
            let shown = from_tag.get(..end).unwrap_or_default().chars().take(40);
            return Err(InvalidPrompt::Tag {
                tag: format!("{{{{{}", shown.collect::<String>()),
                line: before.matches('\n').count().saturating_add(1),
            });
        };
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(TemplatePart::Text(rest.to_owned()));
    }
    Ok(parts)
}

/// Parses a tag after its opening braces. Returns the part and what follows the tag.
fn tag(text: &str) -> Option<(TemplatePart, &str)> {
    let text = text.trim_start();
    let (part, rest) = match text.chars().next()? {
        '$' => {
            let text = text.get(1..)?;
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
            let (name, rest) = text.split_at_checked(end)?;
            (TemplatePart::Variable((!name.is_empty()).then(|| name.to_owned())?), rest)
        }
        quote @ ('"' | '\'') => {
            let (value, rest) = text.get(1..)?.split_once(quote)?;
            // The format has escapes in strings, which no one needs for plain text.
            (!value.contains('\\')).then_some((TemplatePart::Text(value.to_owned()), rest))?
        }
        _ => return None,
    };
    Some((part, rest.trim_start().strip_prefix("}}")?))
}

impl PromptTemplate {
    /// Returns whether the template uses or declares a variable.
    #[must_use]
    pub fn has_variable(&self, name: &str) -> bool {
        self.variables.contains_key(name) || self.used().any(|used| used == name)
    }

    fn used(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Variable(name) => Some(name.as_str()),
            TemplatePart::Text(_) => None,
        })
    }

    /// Returns the prompt with these arguments, which are inserted verbatim.
    ///
    /// # Errors
    /// [`InvalidPrompt`] if arguments are missing or unknown, or if the prompt is too long.
    pub fn render(&self, arguments: &BTreeMap<String, String>) -> Result<String, InvalidPrompt> {
        if let Some(name) = arguments.keys().find(|name| !self.has_variable(name)) {
            let known: BTreeSet<_> =
                self.used().chain(self.variables.keys().map(String::as_str)).collect();
            let known = known.into_iter().map(str::to_owned).collect();
            return Err(InvalidPrompt::Unknown { name: name.clone(), known });
        }
        let value = |name: &str| {
            let declared = self.variables.get(name);
            let default = || declared.and_then(|variable| variable.default.as_deref());
            let optional = || declared.filter(|variable| !variable.is_required).map(|_| "");
            arguments.get(name).map(String::as_str).or_else(default).or_else(optional)
        };
        let declared = self.variables.keys().map(String::as_str);
        let names: BTreeSet<_> = self.used().chain(declared).collect();
        let missing: Vec<_> = names.into_iter().filter(|name| value(name).is_none()).collect();
        if !missing.is_empty() {
            let names = missing.into_iter().map(str::to_owned).collect();
            return Err(InvalidPrompt::Missing { names });
        }
        let texts = self.parts.iter().map(|part| match part {
            TemplatePart::Text(text) => text,
            TemplatePart::Variable(name) => value(name).unwrap_or_default(),
        });
        let bytes = texts.clone().fold(0_usize, |bytes, text| bytes.saturating_add(text.len()));
        if bytes > RENDERED_BYTES_MAX {
            return Err(InvalidPrompt::TooLarge);
        }
        Ok(texts.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(yaml: &str) -> Result<PromptFile, String> {
        PromptFile::from_yaml(yaml).map_err(|error| error.to_string())
    }

    fn rendered(yaml: &str, arguments: &[(&str, &str)]) -> Result<String, String> {
        let arguments =
            arguments.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let template = file(yaml)?.template.unwrap();
        template.render(&arguments.collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_are_replaced_and_strings_are_text() {
        let template =
            "template: \"{{$a}}, {{ $a }} and {{$b_2}}{{'{{'}}{{ \\\"}}\\\" }} {x} }}\"\n";
        let prompt = rendered(template, &[("a", "{{$b_2}}"), ("b_2", "")]).unwrap();
        assert_eq!(prompt, "{{$b_2}}, {{$b_2}} and {{}} {x} }}");
        let json = PromptFile::from_json(r#"{"template": "a {{$x}}"}"#).unwrap().template.unwrap();
        assert!(json.has_variable("x") && !json.has_variable("y"));
        assert_eq!(file("execution_settings: {}\n").unwrap().template, None);
    }

    #[test]
    fn arguments_are_required_unless_the_file_says_otherwise() {
        let yaml = "\
template: '{{$a}}{{$b}}{{$c}}'
input_variables:
  - {name: a, description: The first.}
  - {name: b, default: 7}
  - {name: c, is_required: false}
  - {name: d}
";
        assert_eq!(rendered(yaml, &[("a", "1"), ("d", "x")]).unwrap(), "17");
        let all = [("a", "1"), ("b", "2"), ("c", "3"), ("d", "x")];
        assert_eq!(rendered(yaml, &all).unwrap(), "123");
        assert_eq!(rendered(yaml, &[]).unwrap_err(), "missing arguments of the prompt: a, d");
        let unknown = "the prompt has no variable `A`; variables: a, b, c, d";
        assert_eq!(rendered(yaml, &[("A", "1")]).unwrap_err(), unknown);
        let none = "the prompt has no variable `x`; variables: none";
        assert_eq!(rendered("template: hi\n", &[("x", "")]).unwrap_err(), none);
        let long = "x".repeat(RENDERED_BYTES_MAX);
        let twice = rendered("template: '{{$a}}{{$a}}'\n", &[("a", &long)]);
        assert_eq!(twice.unwrap_err(), "the prompt is longer than 16777216 bytes");
    }

    #[test]
    fn what_is_not_supported_is_refused() {
        for (yaml, expected) in [
            ("template: 1\n", "`template` must be a string"),
            (
                "template_format: handlebars\n",
                "unknown template format `handlebars`; expected `semantic-kernel`",
            ),
            (
                "template: |\n  a\n  {{time.now}}\n",
                "unsupported tag `{{time.now}}` in line 2 of the template; expected a variable `{{$name}}` or a string `{{\"text\"}}`",
            ),
            ("template: '{{$a'\n", "unsupported tag `{{$a` in line 1"),
            ("template: '{{$}}'\n", "unsupported tag `{{$}}` in line 1"),
            ("template: '{{$a $b}}'\n", "unsupported tag `{{$a $b}}` in line 1"),
            ("template: '{{\"a}}'\n", "unsupported tag"),
            (
                "template: '<message role=\"user\">hi</message>'\n",
                "the template has `<message` elements",
            ),
            ("input_variables: {a: 1}\n", "`input_variables` must be a list"),
            ("input_variables: [{default: 1}]\n", "`name` must be a string"),
            ("execution_settings: 1\n", "`execution_settings` must be an object"),
            ("[]\n", "`prompt` must be an object"),
        ] {
            let error = file(yaml).unwrap_err();
            assert!(error.starts_with(expected), "{yaml}: {error}");
        }
    }
}
