//! Tools that end in different ways.

use std::fmt;

use cofferdam_sdk::{Blob, Content, Link, Resource, ToolFailure, json, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A way to fail.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Plain,
    Suggestion,
    Transient,
    Permanent,
    Value,
    Empty,
    Exception,
}

#[derive(Debug)]
struct ShelfIsEmpty;

impl fmt::Display for ShelfIsEmpty {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the shelf is empty")
    }
}

impl std::error::Error for ShelfIsEmpty {}

/// Fails in the way that is asked for.
#[tool]
pub fn fail(
    /// The way to fail.
    kind: Kind,
) -> Result<(), ToolFailure> {
    let failure = ToolFailure::new("it went wrong");
    Err(match kind {
        Kind::Plain => failure,
        Kind::Suggestion => failure.suggestion("try again tomorrow"),
        Kind::Transient => failure.transient(),
        Kind::Permanent => failure.permanent(),
        Kind::Value => failure.value(json!({"code": 7, "detail": ["a", null]})),
        Kind::Empty => ToolFailure::new(""),
        Kind::Exception => return Err(ShelfIsEmpty.into()),
    })
}

/// Ends as a bug ends.
#[tool]
pub fn crash(
    /// What must not be shown.
    secret: String,
) {
    panic!("a bug near {secret}");
}

/// Returns nothing.
#[tool]
pub fn nothing() {}

/// Returns a text.
#[tool]
pub fn word() -> &'static str {
    "word"
}

/// Returns bytes that count up.
#[tool]
pub fn blob(
    /// How many.
    size: u32,
) -> Blob {
    let bytes: Vec<u8> = (0..=u8::MAX).cycle().take(size as usize).collect();
    Blob::new("application/octet-stream", bytes)
}

/// Returns contents of all kinds.
#[tool]
pub fn several() -> Result<Vec<Content>, ToolFailure> {
    Ok(vec![
        Content::text("one"),
        Content::json(&json!({"two": 2}))?,
        Content::blob("image/png", [137, 80, 78, 71]),
        Resource::text("memo:three", "three").media_type("text/plain").into(),
        Link::new("https://example.com/four.csv", "four.csv").media_type("text/csv").into(),
    ])
}

#[derive(Serialize, JsonSchema)]
pub struct Answer {
    answer: i64,
}

/// Returns the answer, whose type is declared.
#[tool(
    title = "An annotated tool",
    group = "reading",
    read_only,
    destructive = false,
    idempotent,
    open_world = false,
    output_schema
)]
pub fn annotated() -> Answer {
    Answer { answer: 42 }
}
