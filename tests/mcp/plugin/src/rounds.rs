//! Tools whose questions a client may answer with its next request.
//!
//! A question for which the suite has a name has that name. The host handles the suite's state of a
//! request: each of these tools asks and goes on.

use cofferdam_sdk::client::{self, Answer, Kind, Question, Reply};
use cofferdam_sdk::serde_json::Value;
use cofferdam_sdk::{ToolFailure, json, tool};

/// Returns a form with one field.
pub(crate) fn form(message: &str, field: &str, kind: &str) -> Question {
    Question::form(
        message,
        json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]}),
    )
}

/// Returns the value of the one field of a form.
pub(crate) fn field(answer: &Answer, field: &str) -> Option<Value> {
    match answer {
        Answer::Form(Reply::Accepted(form)) => form.get(field).cloned(),
        _ => None,
    }
}

fn text(answer: &Answer, name: &str) -> String {
    field(answer, name).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn sample(prompt: &str, tokens_max: u32) -> Question {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    Question::sample(json!({"messages": [message], "maxTokens": tokens_max}))
}

fn user_name() -> Question {
    form("What is your name?", "name", "string").named("user_name")
}

/// Asks for a name.
#[tool]
pub fn test_input_required_result_elicitation() -> Result<String, ToolFailure> {
    Ok(format!("Hello, {}!", text(&client::ask(user_name())?, "name")))
}

/// Asks the model.
#[tool]
pub fn test_input_required_result_sampling() -> Result<String, ToolFailure> {
    let answer =
        client::ask(sample("What is the capital of France?", 100).named("capital_question"))?;
    let Answer::Message(message) = answer else { return Err(ToolFailure::new("no message")) };
    Ok(client::text(&message).unwrap_or_default())
}

/// Asks for the client's roots.
#[tool]
pub fn test_input_required_result_list_roots() -> Result<String, ToolFailure> {
    let answer = client::ask(Question::roots().named("client_roots"))?;
    let Answer::Roots(roots) = answer else { return Err(ToolFailure::new("no roots")) };
    let uris: Vec<_> = roots.into_iter().map(|root| root.uri).collect();
    Ok(format!("Client roots: {}", uris.join(", ")))
}

fn confirm() -> Result<String, ToolFailure> {
    let answer = client::ask(form("Please confirm", "ok", "boolean").named("confirm"))?;
    match field(&answer, "ok") {
        Some(Value::Bool(true)) => Ok("Confirmed: state-ok".to_owned()),
        _ => Ok("Not confirmed: state-ok".to_owned()),
    }
}

/// Asks for a confirmation.
#[tool]
pub fn test_input_required_result_request_state() -> Result<String, ToolFailure> {
    confirm()
}

/// Asks for a confirmation, with a client that tampers.
#[tool]
pub fn test_input_required_result_tampered_state() -> Result<String, ToolFailure> {
    confirm()
}

/// Asks three things at once.
#[tool]
pub fn test_input_required_result_multiple_inputs() -> Result<&'static str, ToolFailure> {
    client::ask_all(vec![
        user_name(),
        sample("Generate a greeting", 50).named("greeting"),
        Question::roots().named("client_roots"),
    ])?;
    Ok("All inputs received")
}

/// Asks one thing after another.
#[tool]
pub fn test_input_required_result_multi_round() -> Result<String, ToolFailure> {
    let name = client::ask(form("Step 1: What is your name?", "name", "string").named("step1"))?;
    let color = client::ask(
        form("Step 2: What is your favorite color?", "color", "string").named("step2"),
    )?;
    Ok(format!("{} likes {}", text(&name, "name"), text(&color, "color")))
}

/// Asks what the client can answer.
#[tool]
pub fn test_input_required_result_capabilities() -> Result<String, ToolFailure> {
    let questions = [
        (Kind::Form, user_name()),
        (Kind::Sample, sample("Generate a greeting", 50).named("greeting")),
        (Kind::Roots, Question::roots().named("client_roots")),
    ];
    let possible: Vec<_> = questions
        .into_iter()
        .filter(|(kind, _)| client::can_ask(*kind))
        .map(|(_, question)| question)
        .collect();
    let answers = client::ask_all(possible)?;
    Ok(format!("Questions that were answered: {}", answers.len()))
}
