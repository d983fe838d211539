//! Sentences that describe constraints in a description.

use super::numbers::is_number_format;
use serde_json::{Map, Value};

/// Longest value that a sentence shows, in bytes. A longer one would crowd out the author's own
/// description.
const SHOWN_BYTES_MAX: usize = 200;

/// Returns a sentence for the meaning of a keyword, or `None` for one that allows everything.
pub(super) fn sentence(keyword: &str, value: &Value) -> Option<String> {
    let shown = || shown(value);
    let count =
        |one: &str, many: &str| if is_one(value) { one.to_owned() } else { many.to_owned() };
    let text = match keyword {
        "minLength" => format!("At least {value} {}.", count("character", "characters")),
        "maxLength" => format!("At most {value} {}.", count("character", "characters")),
        "minItems" => format!("At least {value} {}.", count("item", "items")),
        "maxItems" => format!("At most {value} {}.", count("item", "items")),
        "minContains" => format!("At least {value} of the items as `contains` says."),
        "maxContains" => format!("At most {value} of the items as `contains` says."),
        "minProperties" => format!("At least {value} {}.", count("key", "keys")),
        "maxProperties" => format!("At most {value} {}.", count("key", "keys")),
        "minimum" => format!("At least {value}."),
        "maximum" => format!("At most {value}."),
        "exclusiveMinimum" => format!("Greater than {value}."),
        "exclusiveMaximum" => format!("Less than {value}."),
        "multipleOf" => format!("A multiple of {value}."),
        "uniqueItems" if *value == Value::Bool(true) => "No item twice.".to_owned(),
        "uniqueItems" => return None,
        "pattern" => match value.as_str().filter(|pattern| pattern.len() <= SHOWN_BYTES_MAX) {
            Some(pattern) => format!("Matches the regular expression {pattern}"),
            None => "Matches a regular expression that is too long to show.".to_owned(),
        },
        "format" => return format(value.as_str()?),
        "default" => match shown() {
            Some(value) => format!("Default: {value}."),
            None => "Has a default.".to_owned(),
        },
        "examples" => format!("Examples: {}.", value.as_array().and_then(|values| list(values))?),
        "prefixItems" => "The items have an order, first to last as listed.".to_owned(),
        "dependentRequired" => return dependent(value.as_object()?),
        "anyOf" | "oneOf" => return alternatives(value.as_array()?),
        _ => match shown() {
            Some(value) => format!("Also subject to `{keyword}`: {value}."),
            None => format!("Also subject to a rule (`{keyword}`) that is too long to show."),
        },
    };
    Some(text)
}

/// Describes a format. Number formats become ranges; those that no model would exceed are not
/// mentioned.
fn format(name: &str) -> Option<String> {
    let range = match name {
        "int8" => "-128 to 127.",
        "int16" => "-32768 to 32767.",
        "uint8" => "0 to 255.",
        "uint16" => "0 to 65535.",
        "uint32" | "uint64" => "Not negative.",
        name if is_number_format(name) => return None,
        _ => return (name.len() <= SHOWN_BYTES_MAX).then(|| format!("Format: {name}.")),
    };
    Some(range.to_owned())
}

/// Describes alternatives by the arguments that they require. Returns `None` if one requires none.
fn alternatives(branches: &[Value]) -> Option<String> {
    let names = |branch: &Value| {
        let required = branch.get("required")?.as_array()?;
        let names: Vec<_> =
            required.iter().filter_map(Value::as_str).map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| names.join(" and "))
    };
    let named: Option<Vec<_>> = branches.iter().map(names).collect();
    let text =
        named.map(|named| named.join(", or ")).filter(|text| text.len() <= 2 * SHOWN_BYTES_MAX)?;
    Some(format!("Needs {text}."))
}

fn dependent(lists: &Map<String, Value>) -> Option<String> {
    let one = |(name, needed): (&String, &Value)| {
        let needed = needed.as_array()?;
        let needed: Vec<_> =
            needed.iter().filter_map(Value::as_str).map(|name| format!("`{name}`")).collect();
        (!needed.is_empty()).then(|| format!("With `{name}`, {} is needed.", needed.join(", ")))
    };
    let text = lists.iter().filter_map(one).collect::<Vec<_>>().join(" ");
    (!text.is_empty() && text.len() <= 2 * SHOWN_BYTES_MAX).then_some(text)
}

fn list(values: &[Value]) -> Option<String> {
    let text = values.iter().take(3).map(Value::to_string).collect::<Vec<_>>().join(", ");
    (!text.is_empty() && text.len() <= SHOWN_BYTES_MAX).then_some(text)
}

fn shown(value: &Value) -> Option<String> {
    let text = value.to_string();
    (text.len() <= SHOWN_BYTES_MAX).then_some(text)
}

fn is_one(value: &Value) -> bool {
    value.as_f64() == Some(1.0)
}

/// Appends sentences to a description, each once.
pub(super) fn describe(schema: &mut Map<String, Value>, sentences: &[String]) {
    let mut text =
        schema.get("description").and_then(Value::as_str).unwrap_or_default().trim_end().to_owned();
    let before = text.len();
    for sentence in sentences {
        if text.contains(sentence.as_str()) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(if text.ends_with(['.', '!', '?', ':']) { " " } else { ". " });
        }
        text.push_str(sentence);
    }
    if text.len() > before {
        schema.insert("description".to_owned(), Value::String(text));
    }
}
