//! Tools that ask the client in the middle of a call.

use cofferdam_sdk::client::{self, Reply};
use cofferdam_sdk::serde_json::Value;
use cofferdam_sdk::{ToolFailure, json, tool};

/// Returns a reply in the words that the suite expects.
fn reply_text(reply: &Reply) -> String {
    match reply {
        Reply::Accepted(form) => format!("action=accept, content={form}"),
        Reply::Declined => "action=decline, content={}".to_owned(),
        _ => "action=cancel, content={}".to_owned(),
    }
}

/// Asks the client's model.
#[tool]
pub fn test_sampling(
    /// What to ask.
    prompt: String,
) -> Result<String, ToolFailure> {
    Ok(format!("LLM response: {}", client::sample(&prompt, 100)?))
}

/// Asks the person for a name and an address.
#[tool]
pub fn test_elicitation(
    /// What to show.
    message: String,
) -> Result<String, ToolFailure> {
    let schema = json!({
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    });
    Ok(format!("User response: {}", reply_text(&client::ask_form(message, schema)?)))
}

fn completed(message: &str, schema: Value) -> Result<String, ToolFailure> {
    Ok(format!("Elicitation completed: {}", reply_text(&client::ask_form(message, schema)?)))
}

/// Asks for a form whose fields have defaults.
#[tool]
pub fn test_elicitation_sep1034_defaults() -> Result<String, ToolFailure> {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": true},
        },
        "required": [],
    });
    completed("Please check these values.", schema)
}

/// Asks for a form with every kind of choice.
#[tool]
pub fn test_elicitation_sep1330_enums() -> Result<String, ToolFailure> {
    let titled = |nth: [&str; 3], what: &str| -> Value {
        let choice = |(number, nth)| json!({"const": format!("value{number}"), "title": format!("{nth} {what}")});
        (1..).zip(nth).map(choice).collect()
    };
    let nth = ["First", "Second", "Third"];
    let schema = json!({
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
            "titledSingle": {"type": "string", "oneOf": titled(nth, "Option")},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {
                "type": "array",
                "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
            },
            "titledMulti": {"type": "array", "items": {"anyOf": titled(nth, "Choice")}},
        },
        "required": [],
    });
    completed("Please choose.", schema)
}

/// Needs a client that has a model.
#[tool]
pub fn test_missing_capability() -> Result<String, ToolFailure> {
    client::sample("Say anything.", 10)
        .map(|_| "Required capability declared".to_owned())
        .map_err(Into::into)
}

/// Asks the person for a value.
#[tool]
pub fn test_streaming_elicitation() -> Result<String, ToolFailure> {
    let schema = json!({
        "type": "object",
        "properties": {"value": {"type": "string"}},
        "required": ["value"],
    });
    completed("Provide a value", schema)
}
