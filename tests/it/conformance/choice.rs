//! Rows of `choice.jsonl`: the answers of choice behaviors, their parsing, and their effects on a
//! run.

mod runs;

use std::sync::Arc;

use cofferdam_agent::ChoiceBehavior;
use cofferdam_agent::choice::{
    ChoiceConfiguration, ChoiceContext, FunctionName, FunctionRegistry, PromptSettings,
    RegisteredFunction, ServiceSettings, depth, nested,
};
use cofferdam_tool::declaration::Declaration;
use serde_json::{Map, Value, json};

use super::agent::{block_on, compare};
use super::{Row, expect_same, same};

pub(crate) fn run(row: &Row) -> Result<(), String> {
    match row.op.as_str() {
        "configure" => compare(&row.expect, &configured(row)?),
        "load" | "options" => compare(&row.expect, &loaded(row)?),
        "name" => {
            let name = FunctionName::new(row.text("name")?);
            compare(
                &row.expect,
                &object(json!({"plugin": name.plugin(), "function": name.function()}))?,
            )
        }
        "attempts" | "nested" => compare(&row.expect, &counted(row)?),
        "prompt" => {
            let settings = prompt(row)?;
            expect_settings(&row.expect, settings.as_ref(), |code| code)
        }
        "override" => overridden(row),
        "concurrent" => runs::concurrent(row),
        "call_unadvertised" => runs::call_unadvertised(row),
        "manual" => runs::manual(row),
        other => Err(format!("unknown operation `{other}`")),
    }
}

fn object(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(format!("{other} is not an object")),
    }
}

fn error(error: impl ToString) -> Map<String, Value> {
    Map::from_iter([("error".to_owned(), error.to_string().into())])
}

/// Returns a function that can be advertised.
fn function(name: &str) -> Result<RegisteredFunction, String> {
    let name = FunctionName::new(name);
    let declaration = Declaration::new(name.function(), "A function.", r#"{"type":"object"}"#);
    let definition = declaration.compile().map_err(|error| error.to_string())?;
    Ok(RegisteredFunction::new(name.plugin(), Arc::new(definition)))
}

/// Returns the registry of a row: plugin → functions. Functions under the empty name have no
/// plugin.
fn registry(row: &Row) -> Result<Option<FunctionRegistry>, String> {
    let Some(plugins) = row.get("registry") else { return Ok(None) };
    let mut registry = FunctionRegistry::new();
    for (plugin, functions) in plugins.as_object().ok_or("`registry` is not an object")? {
        for name in texts(functions)? {
            registry.add(function(&format!("{plugin}.{name}"))?);
        }
    }
    Ok(Some(registry))
}

fn texts(value: &Value) -> Result<Vec<&str>, String> {
    let texts = value.as_array().ok_or_else(|| format!("{value} is not a list"))?.iter();
    texts.map(|text| text.as_str().ok_or_else(|| format!("{text} is not text"))).collect()
}

/// Returns a behavior that is set in code. The parts that can be written as JSON are parsed from
/// JSON.
fn in_code(code: &Value) -> Result<ChoiceBehavior, String> {
    let known = ["type", "functions", "options", "auto_invoke", "instances"];
    if let Some(other) =
        code.as_object().and_then(|code| code.keys().find(|key| !known.contains(&key.as_str())))
    {
        return Err(format!("unknown part `{other}` of a behaviour"));
    }
    let mut behavior = ChoiceBehavior::from_value(code).map_err(|error| error.to_string())?;
    if let Some(auto_invoke) = code.get("auto_invoke").and_then(Value::as_bool) {
        behavior = behavior.auto_invoke(auto_invoke);
    }
    if let Some(instances) = code.get("instances").filter(|instances| !instances.is_null()) {
        let instances =
            texts(instances)?.into_iter().map(function).collect::<Result<Vec<_>, _>>()?;
        behavior = behavior.instances(instances);
    }
    Ok(behavior)
}

/// Returns the behavior of a row; the inner error is that of parsing it.
fn behavior(row: &Row) -> Result<Result<ChoiceBehavior, String>, String> {
    if let Some(code) = row.get("code") {
        return in_code(code).map(Ok);
    }
    let read = match (row.get("json"), row.get("yaml")) {
        (Some(Value::String(text)), _) => ChoiceBehavior::from_json(text),
        (Some(json), _) => ChoiceBehavior::from_value(json),
        (None, Some(Value::String(text))) => ChoiceBehavior::from_yaml(text),
        (None, _) => return Err("the row has no behaviour".to_owned()),
    };
    Ok(read.map_err(|error| error.to_string()))
}

fn index(row: &Row, name: &str) -> Result<usize, String> {
    let Some(value) = row.get(name) else { return Ok(0) };
    value
        .as_u64()
        .and_then(|index| usize::try_from(index).ok())
        .ok_or_else(|| format!("`{name}` is not a number"))
}

fn configured(row: &Row) -> Result<Map<String, Value>, String> {
    let behavior = match behavior(row)? {
        Ok(behavior) => behavior,
        Err(refused) => return Ok(error(refused)),
    };
    let registry = registry(row)?;
    let context = ChoiceContext {
        registry: registry.as_ref(),
        request_index: index(row, "request_index")?,
        depth: index(row, "depth")?,
        ..ChoiceContext::default()
    };
    match behavior.configure(&context) {
        Ok(configuration) => object(written(&configuration)),
        Err(refused) => Ok(error(refused)),
    }
}

fn written(configuration: &ChoiceConfiguration) -> Value {
    let names = |functions: &Vec<RegisteredFunction>| {
        functions.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    json!({
        "choice": configuration.choice.as_str(),
        "functions": configuration.functions.as_ref().map(names),
        "auto_invoke": configuration.auto_invoke,
        "options": ChoiceBehavior::auto().options(configuration.options).to_value()["options"],
    })
}

fn loaded(row: &Row) -> Result<Map<String, Value>, String> {
    let behavior = match behavior(row)? {
        Ok(behavior) => behavior,
        Err(refused) => return Ok(error(refused)),
    };
    let mut loaded = object(behavior.to_value())?;
    let context =
        ChoiceContext { registry: Some(&FunctionRegistry::new()), ..ChoiceContext::default() };
    if let Ok(configuration) = behavior.functions([""; 0]).configure(&context) {
        loaded.insert("auto_invoke".to_owned(), configuration.auto_invoke.into());
    }
    Ok(loaded)
}

/// The caller counts requests and nested calls. Nesting is real here: call in call.
fn counted(row: &Row) -> Result<Map<String, Value>, String> {
    fn at_depth(levels: usize) -> std::pin::Pin<Box<dyn Future<Output = usize>>> {
        Box::pin(
            async move { if levels == 0 { depth() } else { nested(at_depth(levels - 1)).await } },
        )
    }
    let levels = index(row, "depth")?;
    let depth = block_on(async { Ok(at_depth(levels).await) })?;
    let registry = registry(row)?.unwrap_or_default();
    let request_index = index(row, "request_index")?;
    let context = ChoiceContext {
        registry: Some(&registry),
        request_index,
        depth,
        ..ChoiceContext::default()
    };
    let behavior = match row.get("json").or_else(|| row.get("code")) {
        Some(_) => behavior(row)??,
        None => ChoiceBehavior::auto(),
    };
    object(written(&behavior.configure(&context).map_err(|error| error.to_string())?))
}

/// Returns the settings that a prompt file has for the service of the row.
fn prompt(row: &Row) -> Result<Result<ServiceSettings, String>, String> {
    let read = match (row.get("json").or_else(|| row.get("prompt")), row.get("yaml")) {
        (Some(Value::String(text)), _) => PromptSettings::from_json(text),
        // As a string, like the content of a file.
        (Some(json), _) => PromptSettings::from_json(&json.to_string()),
        (None, Some(Value::String(text))) => PromptSettings::from_yaml(text),
        (None, _) => return Err("the row has no prompt".to_owned()),
    };
    let service = row.get("service").and_then(Value::as_str).unwrap_or("default");
    let settings = read.map(|prompt| prompt.service(service).cloned().unwrap_or_default());
    Ok(settings.map_err(|error| error.to_string()))
}

/// Compares the settings of a service. Parts of a behavior and of extension data that are not
/// expected are ignored.
fn expect_settings(
    expect: &Value,
    settings: Result<&ServiceSettings, &String>,
    chosen: impl FnOnce(Option<ChoiceBehavior>) -> Option<ChoiceBehavior>,
) -> Result<(), String> {
    let settings = match settings {
        Ok(settings) => settings,
        Err(refused) => return compare(expect, &error(refused)),
    };
    if settings.extension_data.contains_key("function_choice_behavior") {
        return Err("the behaviour is among the extension data".to_owned());
    }
    let behavior = chosen(settings.behavior.clone());
    for (name, expected) in expect.as_object().ok_or("`expect` is not an object")? {
        match name.as_str() {
            "behavior" => expect_behavior(expected, behavior.as_ref())?,
            "extension_data" => {
                expect_parts(expected, &Value::Object(settings.extension_data.clone()))?
            }
            "type" => expect_same(
                name,
                expected,
                &json!(behavior.as_ref().map(|behavior| behavior.kind().as_str())),
            )?,
            other => return Err(format!("unknown key `{other}` in `expect`")),
        }
    }
    Ok(())
}

fn expect_behavior(expected: &Value, behavior: Option<&ChoiceBehavior>) -> Result<(), String> {
    match (expected, behavior) {
        (Value::Null, None) => Ok(()),
        (Value::String(kind), Some(behavior)) => {
            expect_same("behavior", &json!(kind), &json!(behavior.kind().as_str()))
        }
        (Value::Object(_), Some(behavior)) => expect_parts(expected, &behavior.to_value()),
        (_, behavior) => Err(format!("expected the behaviour {expected}, got {behavior:?}")),
    }
}

fn expect_parts(expected: &Value, got: &Value) -> Result<(), String> {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            expected.iter().try_for_each(|(name, expected)| {
                let got = got.get(name).ok_or_else(|| format!("expected `{name}`, got {got:?}"))?;
                expect_parts(expected, got)
            })
        }
        _ if same(expected, got) => Ok(()),
        _ => Err(format!("expected {expected}, got {got}")),
    }
}

/// Combines a behavior that is set in code for a run with that of the prompt (`CHOICE-12`), which
/// is a file or the behavior in it.
fn overridden(row: &Row) -> Result<(), String> {
    let code = row.get("code").map(in_code).transpose()?;
    let is_behavior = row
        .get("prompt")
        .or_else(|| row.get("json"))
        .is_some_and(|prompt| prompt.get("type").is_some());
    let settings = if is_behavior {
        let given = row.get("prompt").or_else(|| row.get("json")).unwrap_or(&Value::Null);
        let behavior = ChoiceBehavior::from_value(given).map_err(|error| error.to_string())?;
        ServiceSettings { behavior: Some(behavior), ..ServiceSettings::default() }
    } else {
        prompt(row)??
    };
    let behavior = settings.behavior_or(code);
    if row.expect.get("functions").is_some() && row.expect.get("choice").is_none() {
        let behavior = behavior.as_ref().ok_or("there is no behaviour")?;
        let mut written = object(behavior.to_value())?;
        written.entry("functions").or_insert(Value::Null);
        return compare(&row.expect, &written);
    }
    if row.expect.get("behavior").is_some() || row.expect.get("type").is_some() {
        return expect_settings(&row.expect, Ok(&settings), |_| behavior);
    }
    let registry = registry(row)?.unwrap_or_default();
    let context = ChoiceContext { registry: Some(&registry), ..ChoiceContext::default() };
    let behavior = behavior.ok_or("there is no behaviour")?;
    match behavior.configure(&context) {
        Ok(configuration) => compare(&row.expect, &object(written(&configuration))?),
        Err(refused) => compare(&row.expect, &error(refused)),
    }
}
