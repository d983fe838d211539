use std::collections::BTreeMap;
use std::fmt;

use cofferdam_sdk::{Blob, Content, Tool, ToolFailure, json, testing, tool};
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
struct Count {
    words: u32,
    letters: u32,
}

type Fallible<T> = Result<T, ToolFailure>;

/// A text.
#[tool]
fn text() -> String {
    "\"quoted\"".into()
}

/// A literal.
#[tool]
fn literal() -> &'static str {
    "text"
}

/// Nothing.
#[tool]
fn unit() {}

/// Nothing, if it works.
#[tool]
fn fallible_unit() -> Fallible<()> {
    Ok(())
}

/// A struct.
#[tool]
fn count() -> Fallible<Count> {
    Ok(Count { words: 2, letters: 9 })
}

/// An optional text.
#[tool]
fn optional() -> Option<String> {
    None
}

/// A list.
#[tool]
fn list() -> impl Serialize {
    vec![Some(1), None]
}

/// An image.
#[tool]
fn image() -> Result<Blob, fmt::Error> {
    Ok(Blob::new("image/png", *b"png"))
}

/// One item.
#[tool]
fn item() -> Content {
    "text".into()
}

/// Several items.
#[tool]
fn items() -> Fallible<Vec<Content>> {
    Ok(vec![Content::text("a"), Content::json(&[1])?, Content::blob("text/csv", "a,b")])
}

/// A map that JSON does not know.
#[tool]
fn unwritable() -> BTreeMap<Vec<u8>, u8> {
    BTreeMap::from([(vec![1], 1)])
}

fn check<T: Tool>(contents: &[Content], value: Value) {
    assert_eq!(testing::contents::<T>(json!({})).as_deref(), Ok(contents), "{}", T::NAME);
    assert_eq!(testing::call::<T>(json!({})), Ok(value), "{}", T::NAME);
}

#[test]
fn every_return_type_has_its_contents() {
    check::<text>(&[Content::text("\"quoted\"")], json!("\"quoted\""));
    check::<literal>(&[Content::text("text")], json!("text"));
    check::<unit>(&[], json!(null));
    check::<fallible_unit>(&[], json!(null));
    check::<count>(
        &[Content::Json(r#"{"words":2,"letters":9}"#.into())],
        json!({"words": 2, "letters": 9}),
    );
    check::<optional>(&[Content::Json("null".into())], json!(null));
    check::<list>(&[Content::Json("[1,null]".into())], json!([1, null]));
    check::<image>(
        &[Content::blob("image/png", "png")],
        json!({"media_type": "image/png", "bytes": 3}),
    );
    check::<item>(&[Content::text("text")], json!("text"));
    check::<items>(
        &[Content::text("a"), Content::Json("[1]".into()), Content::blob("text/csv", "a,b")],
        json!(["a", [1], {"media_type": "text/csv", "bytes": 3}]),
    );
}

#[test]
fn a_value_that_is_not_json_is_a_failure() {
    let failure = testing::call::<unwritable>(json!({})).unwrap_err();
    assert_eq!(failure.message(), "the result cannot be written as JSON: key must be a string");
    assert_eq!(failure.is_transient(), Some(false));
}

/// Fails in the requested way.
#[tool]
fn fail(how: String) -> Fallible<u8> {
    match how.as_str() {
        "full" => {
            Err(ToolFailure::new("the index is locked").suggestion("wait a minute").transient())
        }
        "value" => Err(ToolFailure::new("no").value(json!({"code": 7})).permanent()),
        "unwritable" => Err(ToolFailure::new("no").value(BTreeMap::from([(vec![1], 1)]))),
        other => Ok(other.parse()?),
    }
}

fn failure(how: &str) -> ToolFailure {
    testing::call::<fail>(json!({ "how": how })).unwrap_err()
}

#[test]
fn failures_keep_what_the_tool_said() {
    let full = failure("full");
    assert_eq!((full.message(), full.suggested()), ("the index is locked", Some("wait a minute")));
    assert_eq!(full.is_transient(), Some(true));
    assert_eq!(full.to_string(), "the index is locked; wait a minute");

    let value = failure("value");
    assert_eq!(
        (value.error_value(), value.is_transient()),
        (Some(&json!({"code": 7})), Some(false))
    );
    assert_eq!(failure("unwritable"), ToolFailure::new("no"));
}

#[test]
fn standard_errors_are_failures() {
    assert_eq!(failure("x").message(), "ParseIntError: invalid digit found in string");
    assert_eq!(testing::call::<fail>(json!({"how": "7"})), Ok(json!(7)));
}

#[derive(Debug)]
struct Chain(&'static str, Option<Box<Chain>>);

impl fmt::Display for Chain {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl std::error::Error for Chain {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.1.as_deref().map(|cause| cause as _)
    }
}

#[test]
fn causes_are_reported_once() {
    let chain = |first| Chain(first, Some(Box::new(Chain("no such file", None))));
    assert_eq!(
        ToolFailure::from(chain("cannot read")).message(),
        "Chain: cannot read: no such file"
    );
    assert_eq!(
        ToolFailure::from(chain("read: no such file")).message(),
        "Chain: read: no such file"
    );
}
