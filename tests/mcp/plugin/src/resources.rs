//! Tools whose results are resources.

use cofferdam_sdk::serde_json::Value;
use cofferdam_sdk::{Blob, json, tool};

use crate::contents::PNG;

/// A static text
#[tool(read_only)]
pub fn static_text() -> &'static str {
    "This is the content of the static text resource."
}

/// A static image
#[tool(read_only)]
pub fn static_binary() -> Blob {
    Blob::new("image/png", PNG)
}

/// Data for an id
#[tool(read_only)]
pub fn template(
    /// Whose data.
    id: String,
) -> Value {
    json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")})
}
