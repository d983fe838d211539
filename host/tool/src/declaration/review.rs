//! Review of a plugin's declarations, for their author.
//!
//! Findings have three weights:
//!
//! * A *refusal* keeps the plugin from loading.
//! * A *note* describes how the host reads a declaration. The author need not act on it.
//! * *Advice* concerns clients and models: names that a client cuts off, schemas that a strict mode
//!   does not accept, parameters that a model has to guess. The limits of clients are facts about
//!   third-party software, so advice never refuses anything.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::Value;

use super::{Declaration, DeclarationError};
use crate::InputSchema;
use crate::schema::{Dialect, Loss};

/// Maximum length of a tool name that fits with the prefix of every client. Clients put
/// `mcp__<server>__` before the name and limit the total to 64 characters.
const NAME_CHARS_ADVISED: usize = 40;
/// Maximum length of a function name at OpenAI, and of a prefixed name in VS Code and Codex.
const NAME_CHARS_CLIENTS: usize = 64;
/// OpenAI's limit for the description of a function. Claude Code cuts at twice as many bytes.
const DESCRIPTION_CHARS_ADVISED: usize = 1024;
/// Minimum length of a description. A shorter one hardly tells a model when to use the tool.
const DESCRIPTION_CHARS_LEAST: usize = 20;
/// Maximum advised number of tools. More of them crowd a model's context, and Cursor has this
/// limit.
const TOOLS_ADVISED: usize = 40;
/// Maximum number of remarks of one kind about one tool. Further ones would only repeat them.
const REMARKS_MAX: usize = 50;

/// Words after `JSON` in the description of a string that holds JSON.
const JSON_VALUES: [&str; 11] = [
    "array", "blob", "data", "document", "encoded", "list", "object", "payload", "string", "text",
    "value",
];
/// Words before `JSON` in such a description.
const JSON_FORMS: [&str; 5] = ["as", "in", "raw", "serialized", "valid"];
/// Words in the description of a string that leads to JSON and does not hold it.
const JSON_REFERENCES: [&str; 9] =
    ["file", "files", "jsonpath", "path", "pointer", "url", "uri", "schema", "key"];

/// Review of the declarations of one plugin.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Review {
    /// Reasons why the plugin does not load.
    pub refusals: Vec<DeclarationError>,
    /// Notes on how the host or a dialect reads a declaration.
    pub notes: Vec<Remark>,
    /// Advice for the author.
    pub advice: Vec<Remark>,
}

/// A note or a piece of advice.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Remark {
    /// Name of the rule, for scripts.
    pub rule: &'static str,
    /// Name of the tool; empty if the remark is about the plugin.
    pub tool: String,
    /// JSON Pointer into the input schema; empty if the remark is about the tool.
    pub pointer: String,
    /// One sentence without its full stop.
    pub message: String,
}

impl Remark {
    /// Returns a remark about a plugin as a whole.
    pub fn of_plugin(rule: &'static str, message: impl Into<String>) -> Self {
        Self { rule, tool: String::new(), pointer: String::new(), message: message.into() }
    }
}

/// Reviews all declarations of a plugin.
#[must_use]
pub fn review(declarations: &[Declaration]) -> Review {
    let mut review = Review { refusals: super::refusals(declarations), ..Review::default() };
    if declarations.len() > TOOLS_ADVISED {
        let message = format!(
            "{} tools are more than some clients show, keep to {TOOLS_ADVISED}",
            declarations.len()
        );
        review.advice.push(Remark::of_plugin("tools-many", message));
    }
    let mut rewritten = HashMap::new();
    for declaration in declarations.iter().take(super::TOOLS_MAX) {
        let mut tool = ReviewedTool { declaration, review: &mut review };
        tool.name(&mut rewritten);
        tool.description();
        tool.output();
        // An invalid schema is already among the refusals.
        if let Ok(schema) = InputSchema::compile("tool", &declaration.input_schema) {
            tool.schema(&schema);
        }
    }
    review
}

/// One tool under review.
struct ReviewedTool<'r> {
    declaration: &'r Declaration,
    review: &'r mut Review,
}

impl ReviewedTool<'_> {
    fn remark(&self, rule: &'static str, pointer: &str, message: String) -> Remark {
        Remark { rule, tool: self.declaration.name.clone(), pointer: pointer.to_owned(), message }
    }

    fn note(&mut self, rule: &'static str, pointer: &str, message: String) {
        let remark = self.remark(rule, pointer, message);
        self.review.notes.push(remark);
    }

    fn advise(&mut self, rule: &'static str, pointer: &str, message: impl Into<String>) {
        let remark = self.remark(rule, pointer, message.into());
        self.review.advice.push(remark);
    }

    fn name(&mut self, rewritten: &mut HashMap<String, String>) {
        let name = &self.declaration.name;
        let chars = name.chars().count();
        if chars > NAME_CHARS_CLIENTS {
            self.advise(
                "name-long",
                "",
                format!(
                    "the name has {chars} characters; OpenAI refuses \
                more than 64 and clients cut them off or drop the tool"
                ),
            );
        } else if chars > NAME_CHARS_ADVISED {
            self.advise(
                "name-long",
                "",
                format!(
                    "the name has {chars} characters; with the \
                prefix that clients add it can exceed their 64, keep to 40"
                ),
            );
        }
        let plain =
            |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
        let shown: String = self.declaration.name.chars().map(plain).collect();
        if shown != self.declaration.name {
            self.advise(
                "name-characters",
                "",
                format!(
                    "OpenAI and Anthropic take A-Z a-z 0-9 _ - in a name; clients show the tool \
                     as `{shown}`"
                ),
            );
        }
        if let Some(other) = rewritten.insert(shown.clone(), self.declaration.name.clone())
            && other != self.declaration.name
        {
            self.advise(
                "name-collides",
                "",
                format!("clients show this tool and '{other}' both as `{shown}`"),
            );
        }
    }

    fn description(&mut self) {
        let chars = self.declaration.description.trim().chars().count();
        if chars == 0 {
            self.advise(
                "description-missing",
                "",
                "the tool has no description, so a model has to guess what it does",
            );
        } else if chars < DESCRIPTION_CHARS_LEAST {
            self.advise(
                "description-short",
                "",
                format!(
                    "{chars} characters of description hardly say what the tool does and when \
                    to use it"
                ),
            );
        } else if chars > DESCRIPTION_CHARS_ADVISED {
            self.advise(
                "description-long",
                "",
                format!(
                    "the description has {chars} characters; \
                OpenAI takes {DESCRIPTION_CHARS_ADVISED} and clients cut off what comes later"
                ),
            );
        }
    }

    /// Reports an output schema that is not an object: clients of older protocol revisions accept
    /// only objects as structured results.
    fn output(&mut self) {
        let Some(declared) = &self.declaration.output_schema else { return };
        let schema: Value = serde_json::from_str(declared).unwrap_or_default();
        if schema.is_object() && schema.get("type").is_none_or(|name| name != "object") {
            self.advise(
                "output-not-object",
                "",
                "the output schema does not say \
                `\"type\": \"object\"` at the top level, which MCP clients before 2026-07-28 ask \
                for",
            );
        }
    }

    fn schema(&mut self, schema: &InputSchema) {
        for note in schema.notes() {
            self.note("required-not-needed", note.object(), note.to_string());
        }
        self.parameters(schema.published());
        self.dialects(schema);
    }

    fn parameters(&mut self, schema: &Value) {
        let mut undescribed = 0;
        for (pointer, name, property) in properties(schema) {
            if lacks_description(property) {
                undescribed += 1;
                if undescribed <= REMARKS_MAX {
                    let message = format!("parameter `{name}` has no description");
                    self.advise("parameter-description-missing", &pointer, message);
                }
            }
            if holds_json(name, property) {
                let message = format!(
                    "parameter `{name}` is a string that holds JSON, which a model has to escape; \
                     declare an object or an array, which the host checks as well"
                );
                self.advise("parameter-json-string", &pointer, message);
            }
            if !is_key(name) {
                let message = format!(
                    "Anthropic refuses the parameter name `{name}`: use 1 to 64 of A-Z a-z 0-9 _ \
                     . -"
                );
                self.advise("parameter-name", &pointer, message);
            }
        }
        if undescribed > REMARKS_MAX {
            let more = undescribed - REMARKS_MAX;
            self.advise(
                "parameter-description-missing",
                "",
                format!("{more} more parameters have no description"),
            );
        }
    }

    fn dialects(&mut self, schema: &InputSchema) {
        let mut lost: Vec<(Loss, Vec<&str>)> = Vec::new();
        let mut known = HashMap::new();
        for dialect in Dialect::ALL {
            let shown = schema.in_dialect(dialect);
            if let Some(why) =
                shown.losses.first().filter(|_| dialect.has_strict_mode() && !shown.strict)
            {
                let message =
                    format!("{dialect} is shown the schema without strict mode: {}", why.reason());
                self.advise("not-strict", &why.pointer, message);
                // The other losses concern dialects without strict mode, which report them
                // themselves.
                continue;
            }
            for loss in shown.losses {
                let index =
                    *known.entry((loss.pointer.clone(), loss.what.clone())).or_insert(lost.len());
                match lost.get_mut(index) {
                    Some((_, dialects)) => dialects.push(dialect.name()),
                    None => lost.push((loss, vec![dialect.name()])),
                }
            }
        }
        for (loss, dialects) in lost.iter().take(REMARKS_MAX) {
            self.note(
                "dialect",
                &loss.pointer,
                format!("in {} {}", dialects.join(", "), loss.what),
            );
        }
    }
}

/// Returns every property of a schema at every depth, with its pointer. Properties of definitions
/// are listed where they are declared.
fn properties(schema: &Value) -> Vec<(String, &String, &Value)> {
    let join =
        |at: &str, token: &str| format!("{at}/{}", token.replace('~', "~0").replace('/', "~1"));
    let mut found = Vec::new();
    // The keys of a map of schemas are names, not keywords.
    let mut pending = vec![(schema, String::new(), false)];
    while let Some((value, at, is_map)) = pending.pop() {
        if let Value::Array(items) = value {
            let items = items.iter().enumerate().rev();
            pending.extend(items.map(|(index, item)| (item, join(&at, &index.to_string()), false)));
            continue;
        }
        for (name, child) in value.as_object().into_iter().flatten().rev() {
            let pointer = join(&at, name);
            if at.ends_with("/properties") && is_map {
                found.push((pointer.clone(), name, child));
            }
            let opens_map = matches!(
                name.as_str(),
                "properties" | "$defs" | "definitions" | "patternProperties"
            );
            match name.as_str() {
                "default" | "const" | "enum" | "examples" if !is_map => {}
                _ => pending.push((child, pointer, opens_map && !is_map)),
            }
        }
    }
    found.sort_by(|left, right| left.0.cmp(&right.0));
    found
}

/// Returns whether a property has no description. A reference is described by its target.
fn lacks_description(property: &Value) -> bool {
    let has = |name: &str| property.get(name).is_some();
    let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
    property.is_object() && text.trim().is_empty() && !has("$ref") && !has("const")
}

/// Returns whether a property is a string whose name or description says that it holds JSON. A
/// string that names a file or a location in JSON does not count.
fn holds_json(name: &str, property: &Value) -> bool {
    let is_string = match property.get("type") {
        Some(Value::String(name)) => name == "string",
        Some(Value::Array(names)) => names.iter().any(|name| name == "string"),
        _ => false,
    };
    if !is_string || property.get("enum").is_some() || property.get("const").is_some() {
        return false;
    }
    let text = property.get("description").and_then(Value::as_str).unwrap_or_default();
    let (name, text) = (name.to_lowercase(), text.to_lowercase());
    let words: Vec<_> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    if words.iter().any(|word| JSON_REFERENCES.contains(word)) {
        return false;
    }
    let follows = |(first, second): (&&str, &&str)| {
        (*first == "json" && JSON_VALUES.contains(second))
            || (JSON_FORMS.contains(first) && *second == "json")
    };
    name == "json"
        || name.ends_with("_json")
        || name.starts_with("json_")
        || words.contains(&"stringified")
        || words.iter().zip(words.iter().skip(1)).any(follows)
}

/// Returns whether Anthropic accepts the name of a property.
fn is_key(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    (1..=64).contains(&name.len()) && name.chars().all(fits)
}
