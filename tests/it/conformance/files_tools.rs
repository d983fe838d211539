//! Rows of `files_tools.jsonl`: the file-access tools on every kind of store, and calls as
//! transactions.
//!
//! The rows of one scenario are steps on one store, so the state of a scenario is stored between
//! rows.

mod stores;
mod transactions;

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};

use cofferdam_files::FileAccessTools;
use cofferdam_tool::{CallContext, Outcome, Output, ToolSource as _, Toolset};
use serde_json::{Map, Value, json};

use self::stores::Scenario;
use super::{Row, expect_same};

/// Running scenarios by name.
static SCENARIOS: LazyLock<Mutex<HashMap<String, Vec<Scenario>>>> = LazyLock::new(Mutex::default);

pub(crate) fn run(row: &Row) -> Result<(), String> {
    match row.op.as_str() {
        "" | "tool" => runtime().block_on(step(row)),
        "transaction" => runtime().block_on(transactions::run(row)),
        "offered" => offered(row),
        "decode_tool" => decode(row),
        "conformance" => conformance(row),
        "instructions" => instructions(row),
        other => Err(format!("unknown operation `{other}`")),
    }
}

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        runtime.expect("the runtime starts")
    })
}

/// Makes one call of a tool, on every store of the scenario.
async fn step(row: &Row) -> Result<(), String> {
    let name = row.get("scenario").and_then(Value::as_str).unwrap_or(&row.id).to_owned();
    let is_first = row.get("step").is_none_or(|step| step == 1);
    let scenarios_so_far = || SCENARIOS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = scenarios_so_far().remove(&name).filter(|_| !is_first);
    let scenarios = match known {
        Some(scenarios) => scenarios,
        None => stores::scenarios(row).await?,
    };
    let (tool, arguments) = (row.text("tool")?, row.required("args")?.to_string());
    let mut result = Ok(());
    for scenario in &scenarios {
        let answer = answer(&scenario.toolset, tool, &arguments).await;
        let compared = answer.and_then(|answer| compare(&row.expect, &answer));
        result = result.and(compared.map_err(|error| format!("{}: {error}", scenario.kind)));
    }
    scenarios_so_far().insert(name, scenarios);
    result
}

async fn answer(toolset: &Toolset, tool: &str, arguments: &str) -> Result<Value, String> {
    let called = toolset.call(tool, Some(arguments.as_bytes()), &CallContext::new("row")).await;
    match called.map_err(|refused| refused.to_string())?.outcome {
        Outcome::Ok(Output::Value(value)) => Ok(value),
        other => Err(format!("ended as {other:?}")),
    }
}

fn compare(expect: &Value, answer: &Value) -> Result<(), String> {
    for (key, expected) in object(expect)? {
        match key.as_str() {
            "text" | "json" => expect_same(key, expected, answer)?,
            "text_prefix" => {
                let prefix = expected.as_str().ok_or("`text_prefix` is not a text")?;
                if !answer.as_str().is_some_and(|text| text.starts_with(prefix)) {
                    return Err(format!(
                        "expected a text that starts with {prefix:?}, got {answer}"
                    ));
                }
            }
            other => return Err(format!("unknown key `{other}` in `expect`")),
        }
    }
    Ok(())
}

fn offered(row: &Row) -> Result<(), String> {
    let tools = stores::tools(stores::with_settings(
        stores::mode(row.text("mode")?)?,
        row.get("settings"),
    )?)?;
    let names = || tools.definitions().iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
    for (key, expected) in object(&row.expect)? {
        let got = match key.as_str() {
            "tools" => json!(names()),
            "needs_approval" => {
                json!(
                    names()
                        .into_iter()
                        .filter(|name| tools.needs_approval(name))
                        .collect::<Vec<_>>()
                )
            }
            other => return Err(format!("unknown key `{other}` in `expect`")),
        };
        expect_same(key, expected, &got)?;
    }
    Ok(())
}

fn decode(row: &Row) -> Result<(), String> {
    let tools = stores::tools(Default::default())?;
    let name = row.text("tool")?;
    let definition = tools.definitions().iter().find(|tool| tool.name.as_str() == name).cloned();
    let input = &definition.ok_or_else(|| format!("no tool `{name}`"))?.input;
    let decoded =
        input.decode(name, Some(row.required("args")?.to_string().as_bytes()), &Default::default());
    let got = match &decoded {
        Ok(arguments) => json!({"value": arguments.value(), "dropped": arguments.dropped()}),
        Err(error) => json!({"error": error.to_string()}),
    };
    for (key, expected) in object(&row.expect)? {
        let got = got.get(key).ok_or_else(|| format!("expected `{key}`, got {got}"))?;
        // Compares only the keys of the row: the tool also returns defaults.
        match (key.as_str(), expected) {
            ("value", Value::Object(members)) => {
                for (name, member) in members {
                    expect_same(name, member, got.get(name).unwrap_or(&Value::Null))?;
                }
            }
            ("error", Value::String(text))
                if got.as_str().is_some_and(|got| got.contains(text)) => {}
            _ => expect_same(key, expected, got)?,
        }
    }
    Ok(())
}

/// Runs every scenario that lists a kind of store, on that kind only.
fn conformance(row: &Row) -> Result<(), String> {
    let kind = row.text("store")?;
    let known = "every scenario of tools.jsonl that lists this store gives the expected answers";
    if row.expect != known {
        return Err(format!("unknown expectation {}", row.expect));
    }
    stores::every_row(kind, |row| runtime().block_on(step(row)))
}

fn instructions(row: &Row) -> Result<(), String> {
    let tools = stores::tools(Default::default())?;
    let text = tools.instructions().unwrap_or_default().to_lowercase();
    for (key, expected) in object(&row.expect)? {
        let words = match key.as_str() {
            "mentions" => expected.as_array().ok_or("`mentions` is not a list")?,
            other => return Err(format!("unknown key `{other}` in `expect`")),
        };
        let missing: Vec<_> =
            words.iter().filter(|word| !text.contains(word.as_str().unwrap_or("\0"))).collect();
        if !missing.is_empty() {
            return Err(format!("the instructions do not mention {missing:?}"));
        }
    }
    Ok(())
}

fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("not an object: {value}"))
}

/// File tools with default options over an empty store.
type Tools = FileAccessTools;
