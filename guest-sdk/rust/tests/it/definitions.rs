use std::collections::BTreeMap;

use cofferdam_sdk::{Annotations, Tool, json, testing, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How to order.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Order {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
    AsIs,
}

#[derive(Deserialize, JsonSchema)]
enum Format {
    Csv,
    Json,
}

/// A range of lines.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Lines {
    /// Counted from 1.
    first: u32,
    last: Option<u32>,
    #[serde(default)]
    reversed: bool,
}

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only the schema matters")]
struct Tree {
    name: String,
    children: Vec<Tree>,
}

/// Sorts the lines of a text.
///
/// Use it for one text, not for files:
///   they can be large.
#[tool(
    name = "sort.lines",
    title = "Sort lines",
    read_only,
    destructive = false,
    long_running = true
)]
#[expect(unused_variables, reason = "only the definition matters")]
fn sort(
    /// The text.
    text: String,
    /// How to
    /// order them.
    #[tool(default = Order::Ascending)]
    order: Order,
    lines: Option<Lines>,
    mut weights: BTreeMap<String, f32>,
    /// Where a line ends.
    #[tool(default = "\n")]
    separator: String,
    #[tool(default)] limit: usize,
    r#type: Format,
) {
    weights.clear();
}

#[test]
fn say_all_that_the_signature_says() {
    let definition = testing::definition::<sort>();
    assert_eq!(definition.name, "sort.lines");
    assert_eq!(sort::NAME, "sort.lines");
    assert_eq!(definition.title, Some("Sort lines"));
    assert_eq!(
        definition.description,
        "Sorts the lines of a text.\n\nUse it for one text, not for files:\n  they can be large."
    );
    assert_eq!(definition.output_schema, None);
    let hints = definition.annotations;
    assert_eq!((hints.read_only, hints.destructive), (Some(true), Some(false)));
    assert_eq!((hints.idempotent, hints.open_world, hints.long_running), (None, None, Some(true)));
}

#[test]
fn keep_the_order_of_the_parameters() {
    let schema = testing::definition::<sort>().input_schema;
    let names: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["text", "order", "lines", "weights", "separator", "limit", "type"]);
    assert_eq!(schema["required"], json!(["text", "weights", "type"]));
}

#[test]
fn describe_every_kind_of_parameter() {
    let schema = testing::definition::<sort>().input_schema;
    let check =
        |name: &str, expected: Value| assert_eq!(schema["properties"][name], expected, "{name}");
    check("text", json!({"type": "string", "description": "The text."}));
    check(
        "order",
        json!({
            "type": "string",
            "enum": ["as-is", "ascending", "descending"],
            "description": "How to\norder them.\n- `ascending`: Smallest first.\n- `descending`: \
             Largest first.",
            "default": "ascending",
        }),
    );
    check(
        "lines",
        json!({
            "type": ["object", "null"],
            "description": "A range of lines.",
            "properties": {
                "first": {"type": "integer", "format": "uint32", "minimum": 0, "description": "Counted from 1."},
                "last": {"type": ["integer", "null"], "format": "uint32", "minimum": 0},
                "reversed": {"type": "boolean", "default": false},
            },
            "required": ["first"],
        }),
    );
    check(
        "weights",
        json!({"type": "object", "additionalProperties": {"type": "number", "format": "float"}}),
    );
    check(
        "separator",
        json!({"type": "string", "description": "Where a line ends.", "default": "\n"}),
    );
    check("limit", json!({"type": "integer", "format": "uint32", "minimum": 0, "default": 0}));
    check("type", json!({"type": "string", "enum": ["Csv", "Json"]}));
}

/// Does nothing.
#[tool]
fn nothing() {}

#[test]
fn of_a_tool_without_parameters() {
    let definition = testing::definition::<nothing>();
    assert_eq!(definition.input_schema, json!({"type": "object", "properties": {}}));
    assert_eq!(definition.annotations, Annotations::default());
}

/// Counts the nodes.
#[tool]
fn count(tree: Tree, anything: Value) -> usize {
    let _ = (tree, anything);
    0
}

#[test]
fn refer_only_to_types_that_contain_themselves() {
    let schema = testing::definition::<count>().input_schema;
    assert_eq!(
        schema["properties"]["tree"]["properties"]["children"]["items"],
        json!({"$ref": "#/$defs/Tree"})
    );
    assert_eq!(schema["$defs"]["Tree"]["required"], json!(["name", "children"]));
    // A `serde_json::Value` may be null.
    assert_eq!(schema["required"], json!(["tree"]));
}

/// Finds lines.
#[tool(output_schema)]
fn find() -> Result<Option<Lines>, std::io::Error> {
    Ok(None)
}

/// Says how many.
#[tool(output_schema)]
fn many() -> u8 {
    0
}

#[test]
fn show_the_output_on_request() {
    let schema = testing::definition::<find>().output_schema.unwrap();
    assert_eq!(schema["type"], json!(["object", "null"]));
    assert_eq!(schema["required"], json!(["first", "last", "reversed"]));
    let schema = testing::definition::<many>().output_schema.unwrap();
    assert_eq!(schema["format"], "uint8");
}

/// Reads a line.
#[tool(group = "reading")]
fn grouped(line: u32) -> u32 {
    line
}

#[test]
fn a_group_is_the_last_key_of_the_schema() {
    let schema = testing::definition::<grouped>().input_schema;
    let last = schema.as_object().unwrap().iter().next_back();
    assert_eq!(last, Some((&"x-group".to_owned(), &json!("reading"))));
}
