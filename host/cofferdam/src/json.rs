//! JSON output of `--json`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_engine::PluginInfo;
use cofferdam_tool::arguments::Problem;
use cofferdam_tool::outcome::ModelView;
use cofferdam_tool::output::ResourceBody;
use cofferdam_tool::{Completion, Content, InvalidArguments, Output, RefusedCall, ToolDefinition};
use serde_json::{Value, json};

/// Returns the JSON form of a call that ran: the model's view of it, and the record.
pub fn completion(completion: &Completion) -> Value {
    let shown = completion.outcome.shown();
    json!({
        "outcome": completion.outcome.word(),
        "is_error": shown.as_ref().is_some_and(|shown| shown.is_error),
        "result": shown.as_ref().map(result),
        "record": completion.record,
    })
}

/// Returns a call that did not start.
pub fn refused(refused: &RefusedCall) -> Value {
    let (code, detail) = match refused {
        RefusedCall::NoDryRun { .. } => ("no_dry_run", json!({})),
        RefusedCall::UnknownTool { nearest, .. } => ("unknown_tool", json!({"nearest": nearest})),
        RefusedCall::InvalidArguments(invalid) => {
            ("invalid_arguments", json!({"problems": problems(invalid)}))
        }
        _ => ("refused", Value::Null),
    };
    let message = refused.to_string();
    with(json!({"outcome": "refused", "is_error": true, "code": code, "message": message}), detail)
}

/// Returns the problems of invalid arguments.
pub fn problems(invalid: &InvalidArguments) -> Vec<Value> {
    let problem = |p: &Problem| {
        let problem = json!({"path": p.path, "code": p.code.as_str(), "message": p.message});
        with(problem, p.hint.as_ref().map_or(Value::Null, |hint| json!({"hint": hint})))
    };
    invalid.problems().iter().map(problem).collect()
}

/// Returns `object` with the members of `more` added.
pub fn with(mut object: Value, more: Value) -> Value {
    if let (Some(all), Value::Object(more)) = (object.as_object_mut(), more) {
        all.extend(more);
    }
    object
}

/// Returns the result as the model sees it: a value unchanged, contents as typed items.
pub(crate) fn result(shown: &ModelView) -> Value {
    match &shown.output {
        Output::Value(value) => value.clone(),
        output => json!({"contents": contents(output)}),
    }
}

/// Returns the contents of an output as typed items; none for a value.
pub(crate) fn contents(output: &Output) -> Value {
    match output {
        Output::Value(_) => json!([]),
        Output::Contents(contents) => contents.iter().map(content).collect(),
    }
}

fn content(content: &Content) -> Value {
    match content {
        Content::Text(text) => json!({"type": "text", "text": text}),
        Content::Json(value) => json!({"type": "json", "json": value}),
        Content::Blob { media_type, data } => {
            json!({"type": "blob", "media_type": media_type, "data": STANDARD.encode(data)})
        }
        Content::Resource { uri, media_type, body } => {
            let body = match body {
                ResourceBody::Text(text) => json!({"text": text}),
                ResourceBody::Blob(data) => json!({"data": STANDARD.encode(data)}),
            };
            with(json!({"type": "resource", "uri": uri, "media_type": media_type}), body)
        }
        Content::Link { uri, name, media_type } => {
            json!({"type": "link", "uri": uri, "name": name, "media_type": media_type})
        }
        _ => Value::Null,
    }
}

/// Returns a tool with its published schema.
pub fn definition(definition: &ToolDefinition) -> Value {
    json!({
        "name": definition.name,
        "title": definition.title,
        "description": definition.description,
        "input_schema": definition.input.published(),
        "output_schema": definition.output.as_ref().map(|schema| schema.published()),
        "annotations": definition.annotations,
    })
}

/// Returns a description of a component.
pub fn info(info: &PluginInfo) -> Value {
    let capabilities: Vec<_> = info
        .capabilities
        .iter()
        .map(|c| json!({"capability": c, "means": c.in_plain_words()}))
        .collect();
    json!({
        "name": info.identity.name,
        "digest": info.identity.digest,
        "component_bytes": info.component_bytes,
        "capabilities": capabilities,
        "imports": info.imports,
    })
}
