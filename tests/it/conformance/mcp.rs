//! Rows of `mcp.jsonl`. Rows with a connection are run against scripts of the crate.

use cofferdam_mcp::client::{
    self, Admission, ApprovalMode, Extras, PromptArgument, TaskOptions, ToolTable, input_schema,
    joined_meta, local_name, poll_delay, prefixed_name, prompt_schema,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{Row, expect_same, mcp_served};

pub(crate) fn run(row: &Row) -> Result<(), String> {
    let got = match row.op.as_str() {
        "local_name" => json!(local_name(row.text("remote")?)),
        "prefixed" => {
            json!(prefixed_name(row.text("name")?, row.get("prefix").and_then(Value::as_str)))
        }
        "extras" => json!(extras(row.get("configured"))?),
        "forward" => forward(row)?,
        "reload" => reload(row)?,
        "allowed" => allowed(row)?,
        "approval" => {
            let mode: ApprovalMode = row.get("mode").map(read).transpose()?.unwrap_or_default();
            json!(mode.requires(&texts(row.required("names")?)))
        }
        "prompt_schema" => {
            let arguments = row.get("arguments").map(read::<Vec<PromptArgument>>).transpose()?;
            prompt_schema(&arguments.unwrap_or_default())
        }
        "schema" => input_schema(row.get("inputSchema")),
        "delay" => {
            json!(poll_delay(row.get("server_interval_ms").and_then(Value::as_i64)).as_secs_f64())
        }
        "task_options" => task_options(row.required("options")?)?,
        "result" | "task_call" | "plain_call" | "sampling" | "no_conversion" => {
            return expect_part(row, &client::testing::play(&row.value)?);
        }
        "agent_listing" | "agent_call" | "serve" => return mcp_served::run(row),
        other => return Err(format!("unknown operation `{other}`")),
    };
    expect_same(&row.op, &row.expect, &got)
}

/// Compares only the keys that a row expects.
fn expect_part(row: &Row, got: &Value) -> Result<(), String> {
    let Some(expected) = row.expect.as_object() else {
        return expect_same(&row.op, &row.expect, got);
    };
    expected.iter().try_for_each(|(name, value)| {
        let got = got.get(name).unwrap_or(&Value::Null);
        expect_same(name, value, got)
    })
}

fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|error| error.to_string())
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn object(row: &Row, name: &str) -> Result<Map<String, Value>, String> {
    row.get(name).map_or_else(|| Ok(Map::new()), read)
}

fn extras(configured: Option<&Value>) -> Result<Extras, String> {
    configured.map_or_else(|| Ok(Extras::default()), read)
}

/// Returns a schema that declares these names, or any if `names` is not a list.
fn declaring(names: Option<&Value>) -> Value {
    let Some(names) = names else { return json!({"type": "object", "additionalProperties": true}) };
    let properties: Map<_, _> =
        texts(names).into_iter().map(|name| (name.to_owned(), json!({}))).collect();
    json!({"type": "object", "properties": properties})
}

fn forward(row: &Row) -> Result<Value, String> {
    let mut table = ToolTable::default();
    let tool = row.text("tool")?;
    table.set(tool, &declaring(row.get("declared")));
    let extras = extras(row.get("extras"))?;
    let host_values = object(row, "host_values")?;
    let forwarded = table.forward(tool, &extras, object(row, "model_arguments")?, &host_values);
    let map = |name: &str| row.get(name).map(read::<Map<String, Value>>).transpose();
    let (trace, listing) = (map("trace_meta")?, map("listing_meta")?);
    Ok(match joined_meta(row.get("host_meta"), trace.as_ref(), listing.as_ref()) {
        Ok(meta) => json!({"arguments": forwarded.arguments, "meta": meta}),
        Err(error) => json!({"error": error.to_string()}),
    })
}

fn reload(row: &Row) -> Result<Value, String> {
    let mut table = ToolTable::default();
    for declared in ["first_declares", "then_declares"] {
        table.set("t", &declaring(row.get(declared)));
    }
    let forwarded =
        table.forward("t", &Extras::default(), object(row, "model_arguments")?, &Map::new());
    Ok(json!({"arguments": forwarded.arguments}))
}

fn allowed(row: &Row) -> Result<Value, String> {
    let admission = Admission {
        allowed_tools: row.get("allowed_tools").map(read).transpose()?,
        prefix: row.get("prefix").map(read).transpose()?,
    };
    Ok(match admission.admit(texts(row.required("remote_names")?)) {
        Ok(admitted) => admitted.into_iter().map(|tool| tool.local).collect(),
        Err(error) => json!({"error": error.to_string()}),
    })
}

fn task_options(options: &Value) -> Result<Value, String> {
    let seconds = |name: &str| options.get(name).and_then(Value::as_f64);
    let cancels =
        options.get("cancel_remote_task_on_local_cancellation") != Some(&Value::Bool(false));
    Ok(match TaskOptions::new(seconds("default_ttl"), seconds("max_task_wait"), cancels) {
        Ok(_) => json!({}),
        Err(error) => json!({"error": error.to_string()}),
    })
}
