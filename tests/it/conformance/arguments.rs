//! Rows of `arguments.jsonl`: decoding, presence, publishing and loading.

use cofferdam_tool::arguments::is_supplied;
use cofferdam_tool::declaration::{Declaration, DeclarationError, check_declarations};
use cofferdam_tool::{Arguments, DecodeOptions, InputSchema, InvalidArguments};
use serde_json::{Map, Value, json};

use super::{Row, expect_same};

pub(crate) fn run(row: &Row) -> Result<(), String> {
    match row.op.as_str() {
        "decode" => decode(row),
        "is_supplied" => supplied(row),
        "same_arguments" => same_arguments(row),
        "publish" => publish(row),
        "invariant" => invariant(row),
        "load" => load(row),
        "load_plugin" => load_plugin(row),
        other => Err(format!("unknown operation `{other}`")),
    }
}

fn decode(row: &Row) -> Result<(), String> {
    let schema = compile(row)?;
    let tool = row.text("tool")?;
    let decoded = match row.get("arguments") {
        Some(value) if !value.is_string() => schema.decode_value(tool, value, &options(row)?),
        text => {
            schema.decode(tool, text.and_then(Value::as_str).map(str::as_bytes), &options(row)?)
        }
    };
    compare(&row.expect, decoded)
}

fn same_arguments(row: &Row) -> Result<(), String> {
    let schema = compile(row)?;
    for field in ["first", "second"] {
        let text = row.get(field).and_then(Value::as_str).map(str::as_bytes);
        let decoded = schema.decode(row.text("tool")?, text, &options(row)?);
        compare(&row.expect, decoded).map_err(|error| format!("`{field}`: {error}"))?;
    }
    Ok(())
}

fn compare(expect: &Value, decoded: Result<Arguments, InvalidArguments>) -> Result<(), String> {
    let got = match &decoded {
        Ok(arguments) => json!({"value": arguments.value(), "dropped": arguments.dropped()}),
        Err(error) => {
            json!({"error": "invalid_arguments", "problems": problems(error), "text": error.to_string()})
        }
    };
    for (key, expected) in object(expect)? {
        let got = got.get(key).ok_or_else(|| format!("expected `{key}`, got {got}"))?;
        expect_same(key, expected, got)?;
    }
    Ok(())
}

fn problems(error: &InvalidArguments) -> Vec<Value> {
    let problem = |p: &cofferdam_tool::arguments::Problem| json!({"path": p.path, "code": p.code.as_str(), "message": p.message});
    error.problems().iter().map(problem).collect()
}

fn supplied(row: &Row) -> Result<(), String> {
    let value: Option<Value> = match row.get("json") {
        Some(text) => {
            let text = text.as_str().ok_or("`json` is not a text")?;
            Some(serde_json::from_str(text).map_err(|error| error.to_string())?)
        }
        None => None,
    };
    expect_same("is_supplied", &row.expect, &json!(is_supplied(value.as_ref())))
}

fn publish(row: &Row) -> Result<(), String> {
    expect_same("published", &row.expect, compile(row)?.published())
}

fn invariant(row: &Row) -> Result<(), String> {
    let schema = compile(row)?;
    let required = schema.published().get("required").cloned().unwrap_or_else(|| json!([]));
    let missing: Vec<String> = match schema.decode(row.text("tool")?, Some(b"{}"), &options(row)?) {
        Ok(_) => vec![],
        Err(error) => {
            let required =
                error.problems().iter().filter(|problem| problem.code.as_str() == "required");
            required.map(|problem| problem.path.clone()).collect()
        }
    };
    let expect = object(&row.expect)?;
    let expected = expect.get("fails_when_absent").ok_or("the row has no `fails_when_absent`")?;
    expect_same("published `required`", &sorted(expected), &sorted(&required))?;
    expect_same("failing when absent", &sorted(expected), &sorted(&json!(missing)))
}

fn sorted(names: &Value) -> Value {
    let mut names: Vec<String> =
        names.as_array().into_iter().flatten().map(ToString::to_string).collect();
    names.sort();
    json!(names)
}

fn load(row: &Row) -> Result<(), String> {
    let declaration = declaration(row.text("tool")?, schema_text(row)?);
    compare_load(&row.expect, check_declarations(&[declaration]).err())
}

fn load_plugin(row: &Row) -> Result<(), String> {
    let tools = row
        .get("tools")
        .or(row.get("names"))
        .and_then(Value::as_array)
        .ok_or("the row has no `tools`")?;
    let declarations: Result<Vec<_>, _> = tools.iter().map(plugin_tool).collect();
    compare_load(&row.expect, check_declarations(&declarations?).err())
}

/// Parses a tool of a plugin: a name or an object.
fn plugin_tool(tool: &Value) -> Result<Declaration, String> {
    let text = |field: &str| tool.get(field).and_then(Value::as_str);
    let name = tool.as_str().or(text("name")).ok_or("a tool has no name")?;
    let schema =
        tool.get("schema").map_or_else(|| r#"{"type":"object"}"#.to_owned(), ToString::to_string);
    let mut declaration = declaration(name, schema);
    declaration.description = text("description").unwrap_or_default().to_owned();
    Ok(declaration)
}

fn compare_load(expect: &Value, refusal: Option<DeclarationError>) -> Result<(), String> {
    let text = refusal.as_ref().map(ToString::to_string);
    for (key, expected) in object(expect)? {
        match key.as_str() {
            "refused" => expect_same("refused", expected, &json!(refusal.is_some()))
                .map_err(|error| format!("{error} {}", text.as_deref().unwrap_or_default()))?,
            "text" => expect_same("text", expected, &json!(text))?,
            "text_prefix" => {
                let prefix = expected.as_str().ok_or("`text_prefix` is not a text")?;
                if !text.as_deref().unwrap_or_default().starts_with(prefix) {
                    return Err(format!(
                        "expected a text that starts with {prefix:?}, got {text:?}"
                    ));
                }
            }
            other => return Err(format!("unknown key `{other}` in `expect`")),
        }
    }
    Ok(())
}

fn declaration(name: &str, input_schema: String) -> Declaration {
    Declaration {
        name: name.to_owned(),
        title: None,
        description: String::new(),
        input_schema,
        output_schema: None,
        annotations: Default::default(),
        group: None,
    }
}

fn compile(row: &Row) -> Result<InputSchema, String> {
    InputSchema::compile(row.text("tool")?, &schema_text(row)?).map_err(|error| error.to_string())
}

fn schema_text(row: &Row) -> Result<String, String> {
    match row.get("schema_text") {
        Some(text) => Ok(text.as_str().ok_or("`schema_text` is not a text")?.to_owned()),
        None => Ok(row.required("schema")?.to_string()),
    }
}

fn options(row: &Row) -> Result<DecodeOptions, String> {
    let mut options = DecodeOptions { strict: row.flag("strict"), ..DecodeOptions::default() };
    if let Some(bytes) = row.get("max_bytes") {
        let bytes = bytes.as_u64().and_then(|bytes| usize::try_from(bytes).ok());
        options.text_bytes_max = bytes.ok_or("`max_bytes` is not a size")?;
    }
    Ok(options)
}

fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("`expect` is not an object: {value}"))
}
