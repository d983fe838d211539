//! Two tools that replace a long list of tools: one finds tools, the other calls a tool that was
//! found.

use std::collections::BTreeSet;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::catalog::{Catalog, CatalogEntry};
use super::principal::Principal;

/// Name of the tool that finds tools.
pub(super) const SEARCH: &str = "tools_search";
/// Name of the tool that calls a found tool.
pub(super) const CALL: &str = "tools_call";
/// Default number of tools that a search returns; [`SHOWN_MAX`] is the maximum.
const SHOWN: usize = 5;
const SHOWN_MAX: usize = 20;
/// Maximum length of a query, in characters. The rest is ignored.
const QUERY_CHARS_MAX: usize = 1000;

/// Returns the definitions of the two tools.
pub(super) fn tools(count: usize) -> Vec<Tool> {
    let search = Tool::new(
        SEARCH,
        format!(
            "Finds tools by what they do, among {count}. Say in a few words what you need. Gives names, descriptions and input \
             schemas; call what fits with {CALL}."
        ),
        object(json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What the tool should do, in a few \
                 words."},
                "limit": {"type": "integer", "minimum": 1, "maximum": SHOWN_MAX, "default": SHOWN,
                    "description": "How many tools to show."},
            },
            "required": ["query"],
            "additionalProperties": false,
        })),
    )
    .with_annotations(ToolAnnotations::new().read_only(true).open_world(false));
    let call = Tool::new(
        CALL,
        format!("Calls a tool that {SEARCH} has found."),
        object(json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": format!("The tool's name, as {SEARCH} \
                 shows it.")},
                "arguments": {"type": "object", "description": "Arguments that satisfy the tool's \
                 input schema."},
            },
            "required": ["name"],
            "additionalProperties": false,
        })),
    );
    vec![search, call]
}

/// Returns the tools that match a query best, best first.
pub(super) fn search(
    catalog: &Catalog,
    principal: &Principal,
    arguments: &JsonObject,
) -> Result<Value, String> {
    let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
    let wanted = words(&query.chars().take(QUERY_CHARS_MAX).collect::<String>());
    if wanted.is_empty() {
        return Err(format!("Missing required argument 'query' for '{SEARCH}'."));
    }
    let limit = arguments
        .get("limit")
        .and_then(Value::as_u64)
        .and_then(|limit| usize::try_from(limit).ok());
    let limit = limit.unwrap_or(SHOWN).clamp(1, SHOWN_MAX);
    let mut found: Vec<(usize, &CatalogEntry)> = catalog
        .listed(principal)
        .map(|entry| (score(entry, &wanted), entry))
        .filter(|(score, _)| *score > 0)
        .collect();
    // The sort is stable: tools with the same score stay in the order of the list.
    found.sort_by(|(left, _), (right, _)| right.cmp(left));
    let shown = |(_, entry): &(usize, &CatalogEntry)| {
        json!({
            "name": entry.wire,
            "description": entry.definition.description,
            "inputSchema": *entry.tool().input_schema,
        })
    };
    Ok(
        json!({"tools": found.iter().take(limit).map(shown).collect::<Vec<_>>(), "found": found.len()}),
    )
}

/// Returns the score of an entry. Words in the name count most, then those in the title and the
/// description. A query word that is only the beginning of a word counts half.
fn score(entry: &CatalogEntry, wanted: &BTreeSet<String>) -> usize {
    let definition = &entry.definition;
    let name = words(definition.name.as_str());
    let title = words(definition.title.as_deref().unwrap_or_default());
    let description = words(&definition.description);
    let in_words = |words: &BTreeSet<String>, word: &str| {
        if words.contains(word) {
            2
        } else {
            usize::from(word.len() > 2 && words.iter().any(|other| other.starts_with(word)))
        }
    };
    wanted
        .iter()
        .map(|word| {
            4 * in_words(&name, word) + 2 * in_words(&title, word) + in_words(&description, word)
        })
        .sum()
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// Returns the name and the arguments of the tool that [`CALL`] calls.
pub(super) fn inner(mut arguments: JsonObject) -> (String, JsonObject) {
    let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let inner = match arguments.remove("arguments") {
        Some(Value::Object(inner)) => inner,
        _ => JsonObject::new(),
    };
    (name, inner)
}
