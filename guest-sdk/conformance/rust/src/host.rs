//! Tools that use functions of the host.

use cofferdam_sdk::files::{self, Query, Store};
use cofferdam_sdk::{ToolFailure, call, client, secrets, serde_json, tool, toolbox};
use serde::Serialize;
use serde_json::{Map, Value};

#[derive(Serialize)]
pub struct Stored {
    text: String,
    size: u64,
    files: Vec<String>,
    lines: Vec<u64>,
}

/// Creates a file in a store and looks at what is there then.
#[tool]
pub fn store(
    /// The store.
    store: String,
    /// The file.
    path: String,
    /// What to write.
    text: String,
) -> Result<Stored, ToolFailure> {
    let store = Store::named(store);
    store.create(&path, text)?;
    let mut files: Vec<_> = store.find("", "**")?.into_iter().map(|entry| entry.name).collect();
    files.sort();
    let found = store.search("", &Query::new("needle").case_sensitive())?;
    let lines =
        found.matches.into_iter().filter(|file| file.path == path).flat_map(|file| file.lines);
    Ok(Stored {
        lines: lines.map(|(number, _)| number).collect(),
        text: store.read_to_string(&path)?,
        size: store.stat(&path)?.bytes,
        files,
    })
}

/// Looks for a file that is not there.
#[tool]
pub fn missing(
    /// The store.
    store: String,
) -> Result<&'static str, ToolFailure> {
    match Store::named(store).read("nosuch.txt") {
        Ok(_) => Ok("found"),
        Err(files::Error::NotFound) => Ok("not found"),
        Err(error) => Err(error.into()),
    }
}

/// Reads a file with the standard library.
#[tool]
pub fn local_file(
    /// Where it is.
    path: String,
) -> Result<String, ToolFailure> {
    Ok(std::fs::read_to_string(path)?)
}

#[derive(Serialize)]
pub struct Called {
    has_id: bool,
    has_time_left: bool,
    cancelled: bool,
}

/// Reports steps and says what it knows of its call.
#[tool]
pub fn progress(
    /// How many steps.
    steps: u32,
) -> Called {
    for step in 1..=steps {
        call::progress(step.into(), Some(steps.into()), Some(&format!("step {step}")));
    }
    Called {
        has_id: !call::id().is_empty(),
        has_time_left: !call::time_left().is_zero(),
        cancelled: call::cancelled(),
    }
}

/// Says something to the client and prints it.
#[tool]
pub fn log(
    /// What to say.
    message: String,
) {
    client::log::warning(&message);
    eprintln!("{message} (printed)");
}

/// Calls another tool.
#[tool]
pub fn relay(
    /// The tool.
    tool: String,
    /// Its arguments.
    arguments: Map<String, Value>,
) -> Result<Value, ToolFailure> {
    toolbox::call(&tool, &arguments.into()).map_err(|error| match error {
        toolbox::Error::UnknownTool => ToolFailure::new(format!("there is no tool `{tool}`")),
        toolbox::Error::Failed(failure) => failure,
        error => error.into(),
    })
}

/// Counts the characters of a secret.
#[tool]
pub fn secret(
    /// Its name.
    name: String,
) -> Result<usize, ToolFailure> {
    let value = secrets::get(&name).ok_or_else(|| ToolFailure::new("access denied"))?;
    Ok(value.chars().count())
}
