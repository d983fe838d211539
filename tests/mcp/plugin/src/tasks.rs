//! Tools that a client may follow as tasks. A call becomes a task when it takes long or reports
//! progress.

use std::thread::sleep;
use std::time::Duration;

use cofferdam_sdk::serde_json::Value;
use cofferdam_sdk::{ToolFailure, call, client, tool};

use crate::rounds::{field, form};

/// Reports progress, which makes the call a task.
fn begin() {
    call::progress(0.0, None, Some("working"));
}

/// Greets at once.
#[tool(read_only)]
pub fn greet(
    /// Whom to greet.
    name: String,
) -> String {
    format!("Hello, {name}!")
}

/// Takes its time.
#[tool(read_only, long_running)]
pub fn slow_compute(
    /// How long, in seconds; at most an hour.
    #[tool(default = 1.0)]
    seconds: f64,
    /// What to call the work.
    #[tool(default = "compute".to_owned())]
    label: String,
) -> String {
    sleep(Duration::from_secs_f64(seconds.clamp(0.0, 3600.0)));
    format!("slow_compute({label}) done after {seconds}s")
}

/// Reports a failure after a while.
#[tool(read_only, long_running)]
pub fn failing_job() -> Result<(), ToolFailure> {
    begin();
    sleep(Duration::from_secs(1));
    Err(ToolFailure::new("failing_job: intentional tool execution error"))
}

/// Needs, after a while, what the suite's client does not declare. The protocol has an error of its
/// own for that.
#[tool(read_only, long_running)]
pub fn protocol_error_job() -> Result<String, ToolFailure> {
    begin();
    sleep(Duration::from_millis(200));
    let roots = client::roots().map_err(|error| ToolFailure::new(error.to_string()))?;
    Ok(format!("{} roots", roots.len()))
}

/// Deletes nothing, after a person has agreed.
#[tool(long_running)]
pub fn confirm_delete(
    /// What would be deleted.
    #[tool(default = "file.txt".to_owned())]
    filename: String,
) -> Result<String, ToolFailure> {
    begin();
    let answer =
        client::ask(form(&format!("Delete {filename}?"), "confirm", "boolean").named("confirm"))?;
    let confirmed = field(&answer, "confirm") == Some(Value::Bool(true));
    Ok(format!("confirm_delete({filename}): confirmed = {confirmed}"))
}

/// Asks two things at once.
#[tool(long_running)]
pub fn multi_input() -> Result<String, ToolFailure> {
    let question = |which: &str| {
        form(&format!("Provide name {which}"), "name", "string").named(format!("input-{which}"))
    };
    begin();
    let answers = client::ask_all(["a", "b"].map(question).into())?;
    let values: Vec<_> = answers
        .iter()
        .map(|answer| field(answer, "name").unwrap_or_default().to_string())
        .collect();
    Ok(format!("multi_input: {}", values.join(", ")))
}

/// Asks for a name, and then takes its time.
#[tool(long_running)]
pub fn test_tool_with_task() -> Result<String, ToolFailure> {
    let answer = client::ask(form("What is your name?", "name", "string").named("user_name"))?;
    begin();
    sleep(Duration::from_millis(200));
    let name = field(&answer, "name").and_then(|name| name.as_str().map(str::to_owned));
    Ok(format!("Hello, {}! (async)", name.unwrap_or_default()))
}
