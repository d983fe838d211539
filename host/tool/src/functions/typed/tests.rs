//! Tools that the attribute makes of functions, called through a toolset.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::functions::{FunctionEnd, FunctionTool, Functions, tool};
use crate::{CallContext, Completion, Content, Output, ToolFailure, Toolset};

async fn call<T: FunctionTool>(arguments: &str) -> Completion {
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(Functions::new("tests").with_tool::<T>().unwrap())).unwrap();
    let name = T::declaration().name;
    toolset.call(&name, Some(arguments.as_bytes()), &CallContext::new("1")).await.unwrap()
}

async fn shown_by<T: FunctionTool>(arguments: &str) -> String {
    call::<T>(arguments).await.outcome.shown().unwrap().text()
}

/// Order of the joined strings.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// As given.
    Given,
    /// From the last to the first.
    Reversed,
}

/// Joins words.
///
/// Use it for lists.
#[tool(name = "text.join", title = "Join", group = "text", read_only, destructive = false)]
fn join(
    /// The words.
    words: Vec<String>,
    /// Text between the words.
    #[tool(default = ", ")]
    separator: String,
    #[tool(default = Order::Given)] order: Order,
    limit: Option<usize>,
    context: &CallContext,
) -> Result<String, ToolFailure> {
    let mut words = words;
    if let Order::Reversed = order {
        words.reverse();
    }
    words.truncate(limit.unwrap_or(usize::MAX));
    match words.is_empty() {
        true => Err(ToolFailure::new(format!("call {} has no words", context.call_id))),
        false => Ok(words.join(&separator)),
    }
}

#[test]
fn a_declaration_is_made_of_the_signature() {
    let declaration = join::declaration();
    assert_eq!(declaration.name, "text.join");
    assert_eq!(declaration.title.as_deref(), Some("Join"));
    assert_eq!(declaration.group.as_deref(), Some("text"));
    assert_eq!(declaration.description, "Joins words.\n\nUse it for lists.");
    assert_eq!(declaration.annotations.read_only, Some(true));
    assert_eq!(declaration.annotations.destructive, Some(false));
    assert_eq!(declaration.annotations.idempotent, None);
    assert_eq!(declaration.output_schema, None);
    let order = "Order of the joined strings.\n- `given`: As given.\n- `reversed`: From the last to the first.";
    let format = format!("uint{}", usize::BITS);
    let input: Value = serde_json::from_str(&declaration.input_schema).unwrap();
    let expected = json!({
        "type": "object",
        "properties": {
            "words": {"type": "array", "items": {"type": "string"}, "description": "The words."},
            "separator": {"type": "string", "description": "Text between the words.", "default": ", "},
            "order": {"description": order, "default": "given", "type": "string", "enum": ["given", "reversed"]},
            "limit": {"type": ["integer", "null"], "format": format, "minimum": 0},
        },
        "required": ["words"],
    });
    assert_eq!(input, expected);
}

#[tokio::test]
async fn arguments_are_decoded_before_they_are_typed() {
    assert_eq!(shown_by::<join>(r#"{"words":["a","b"]}"#).await, "a, b");
    let all = r#"{"words":["a","b","c"],"separator":"","order":"Reversed","limit":"2"}"#;
    assert_eq!(shown_by::<join>(all).await, "cb");
    let nulls = r#"{"words":["a","b"],"separator":null,"limit":null}"#;
    assert_eq!(shown_by::<join>(nulls).await, "a, b");
    let empty = r#"{"error":{"message":"call 1 has no words"}}"#;
    assert_eq!(shown_by::<join>(r#"{"words":[]}"#).await, empty);
    assert_eq!(
        join(vec!["a".to_owned()], String::new(), Order::Given, None, &CallContext::new("1")),
        Ok("a".to_owned())
    );
}

/// Even number.
#[derive(Deserialize, JsonSchema)]
#[serde(try_from = "u8")]
struct Even(u8);

impl TryFrom<u8> for Even {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number % 2 {
            0 => Ok(Self(number)),
            _ => Err(format!("{number} is odd")),
        }
    }
}

/// Halves.
#[tool]
fn halve(number: Even) -> u8 {
    number.0 / 2
}

#[tokio::test]
async fn an_argument_that_its_type_rejects_is_a_failure() {
    assert_eq!(shown_by::<halve>(r#"{"number":4}"#).await, "2");
    let failure =
        r#"{"error":{"message":"Argument 'number' of 'halve' cannot be used: 3 is odd."}}"#;
    assert_eq!(shown_by::<halve>(r#"{"number":3}"#).await, failure);
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

/// Adds.
#[tool(output_schema)]
async fn add(a: i64, b: i64) -> Result<Sum, FunctionEnd> {
    let sum = a.checked_add(b).ok_or_else(|| ToolFailure::new("the sum is too large"))?;
    Ok(Sum { sum })
}

/// Parses.
#[tool]
fn parse(text: String) -> Result<u8, std::num::ParseIntError> {
    text.parse()
}

/// Does nothing.
#[tool]
async fn nothing() {}

/// Returns an item.
#[tool]
fn image() -> Content {
    Content::Blob { media_type: "image/png".to_owned(), data: vec![1] }
}

/// Returns items.
#[tool]
fn items() -> Result<Vec<Content>, ToolFailure> {
    Ok(vec![Content::Text("a".to_owned()), Content::Text("b".to_owned())])
}

/// Returns an output.
#[tool]
fn output() -> Output {
    Output::Value(json!([1]))
}

/// Returns a map that is not JSON.
#[tool]
fn pairs() -> BTreeMap<(u8, u8), u8> {
    BTreeMap::from([((1, 2), 3)])
}

#[tokio::test]
async fn return_types_become_results() {
    assert_eq!(shown_by::<add>(r#"{"a":1,"b":2}"#).await, r#"{"sum":3}"#);
    let failure = r#"{"error":{"message":"the sum is too large"}}"#;
    assert_eq!(shown_by::<add>(r#"{"a":9223372036854775807,"b":1}"#).await, failure);
    let schema: Value = serde_json::from_str(&add::declaration().output_schema.unwrap()).unwrap();
    assert_eq!(schema["required"], json!(["sum"]));
    assert_eq!(shown_by::<parse>(r#"{"text":"7"}"#).await, "7");
    assert!(shown_by::<parse>(r#"{"text":"x"}"#).await.contains("(ParseIntError)"));
    assert_eq!(shown_by::<nothing>("{}").await, "");
    assert_eq!(shown_by::<items>("{}").await, "a\nb");
    assert_eq!(shown_by::<output>("{}").await, "[1]");
    assert!(shown_by::<pairs>("{}").await.contains("(InvalidResult)"));
    let shown = call::<image>("{}").await.outcome.shown().unwrap();
    assert!(matches!(shown.output, Output::Contents(contents) if contents.len() == 1));
}

/// Panics.
#[tool]
fn panics() -> u8 {
    panic!("a secret")
}

#[tokio::test]
async fn a_panic_of_a_sync_function_is_an_error() {
    let completion = call::<panics>("{}").await;
    assert_eq!(completion.record.error_type.as_deref(), Some("Panic"));
    assert_eq!(completion.record.detail.as_deref(), Some("the function panicked: a secret"));
}
