//! Two tools that replace a long list of tools: one finds tools, the other calls a tool that was
//! found.

pub(super) use cofferdam_tool::search::SEARCH_TOOL as SEARCH;
use cofferdam_tool::search::{SHOWN, SHOWN_MAX, ToolQuery};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::catalog::{Catalog, CatalogEntry};
use super::principal::Principal;

/// Name of the tool that calls a found tool.
pub(super) const CALL: &str = "tools_call";

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
    let Some(query) = ToolQuery::new(query) else {
        return Err(format!("Missing required argument 'query' for '{SEARCH}'."));
    };
    let limit = arguments
        .get("limit")
        .and_then(Value::as_u64)
        .and_then(|limit| usize::try_from(limit).ok());
    let limit = limit.unwrap_or(SHOWN).clamp(1, SHOWN_MAX);
    let found = query.ranked(catalog.searchable(principal), |entry| &*entry.definition);
    let shown = |entry: &&CatalogEntry| {
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
