//! Rows of `labels.jsonl`: information-flow labels. Decisions of a run are made by a real run.

mod runs;
mod scenario;

use cofferdam_labels::LabelPolicy;
use cofferdam_tool::label::{
    Confidentiality, Destination, Integrity, Label, StatedBy, StatedLabels,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use self::runs::{Scene, Strange};
use super::agent::{block_on, compare};
use super::{Row, expect_same};

pub(crate) fn run(row: &Row) -> Result<(), String> {
    let known: &[&str] = match row.op.as_str() {
        "default" | "reference_shape" | "other_session" => &[],
        "combine" => &["labels"],
        "combine_principals" => &["labels", "principals", "parts"],
        "may_flow" => &["context", "maximum", "principals", "authorized"],
        "result_label" => &["meta"],
        "result_label_combined" => &["tool", "meta"],
        "stated" => &["by", "labels"],
        "argument_labels" => &["tool", "variables", "arguments", "labels"],
        "offered" => &["policy"],
        "inspect" => &["label"],
        "quarantined" => &["labels", "variables", "label", "prompt"],
        "inspect_unknown" => &["variable_id", "variable"],
        "audit" => &["decision"],
        "scenario" => &["settings", "tools", "calls"],
        other => return Err(format!("unknown operation `{other}`")),
    };
    let always = ["id", "rule", "op", "expect", "note", "differs_from_origin"];
    if let Some(unknown) = row.names().find(|name| !known.contains(name) && !always.contains(name))
    {
        return Err(format!("unknown key `{unknown}`"));
    }
    match row.op.as_str() {
        "default" => labelled(row, &Label::default()),
        "combine" => labelled(row, &Label::combine(&labels(row, "labels")?)),
        "combine_principals" => combine_principals(row),
        "may_flow" => may_flow(row),
        "result_label" => result_label(row),
        "stated" => stated(row),
        "scenario" => scenario::run(row),
        _ => block_on(in_a_run(row)),
    }
}

/// Runs the rows that are one small run each.
async fn in_a_run(row: &Row) -> Result<(), String> {
    match row.op.as_str() {
        "result_label_combined" => result_label_combined(row).await,
        "argument_labels" => argument_labels(row).await,
        "reference_shape" => runs::reference_shape(&row.expect).await,
        "offered" => expect_same("offered", &row.expect, &runs::offered(row.flag("policy")).await?),
        "inspect" => compare(&row.expect, &runs::inspect(&label(row.required("label")?)?).await?),
        "quarantined" => quarantined(row).await,
        "inspect_unknown" => {
            let id = row.get("variable_id").or(row.get("variable")).and_then(Value::as_str);
            // The row's own name is the id if there is no other.
            runs::unknown(&row.expect, id.unwrap_or(&row.id), false).await
        }
        "other_session" => runs::unknown(&row.expect, "", true).await,
        _ => runs::audit(row.text("decision")?, &row.expect).await,
    }
}

pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|error| format!("{value}: {error}"))
}

/// Parses a label of a row; missing parts have their defaults.
fn label(written: &Value) -> Result<Label, String> {
    let members = written.as_object().ok_or("a label is not an object")?;
    let known = ["integrity", "confidentiality", "principals", "metadata"];
    match members.keys().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => Err(format!("unknown key `{unknown}` of a label")),
        None => read(written),
    }
}

fn labels(row: &Row, name: &str) -> Result<Vec<Label>, String> {
    let written = row.required(name)?;
    written.as_array().ok_or_else(|| format!("`{name}` is not a list"))?.iter().map(label).collect()
}

/// Returns every part of a label that a row may check.
fn written(label: &Label) -> Map<String, Value> {
    let mut found = Map::new();
    found.insert("integrity".to_owned(), json!(label.integrity));
    found.insert("confidentiality".to_owned(), json!(label.confidentiality));
    found.insert("principals".to_owned(), json!(label.principals));
    found.insert("metadata".to_owned(), json!(label.metadata));
    found
}

fn labelled(row: &Row, label: &Label) -> Result<(), String> {
    let mut found = written(label);
    for (name, expected) in row.expect.as_object().ok_or("`expect` is not an object")? {
        // "null means none".
        let is_none = |got: &Value| *got == json!([]) || *got == json!({});
        if expected.is_null() && found.get(name).is_some_and(is_none) {
            found.insert(name.clone(), Value::Null);
        }
    }
    compare(&row.expect, &found)
}

fn combine_principals(row: &Row) -> Result<(), String> {
    let given = row
        .get("principals")
        .or(row.get("parts"))
        .or(row.get("labels"))
        .ok_or("the row has no principals")?;
    let one = |given: &Value| match given {
        Value::Array(_) => label(&json!({ "principals": given })),
        other => label(other),
    };
    let labels: Vec<_> =
        given.as_array().ok_or("no list")?.iter().map(one).collect::<Result<_, _>>()?;
    let found = Label::combine(&labels);
    match &row.expect {
        Value::Object(_) => labelled(row, &found),
        expected => expect_same("principals", &sorted(expected), &json!(found.principals)),
    }
}

/// Sorts principals: they are a set, which rows may write in any order.
fn sorted(list: &Value) -> Value {
    let mut texts: Vec<_> = list.as_array().into_iter().flatten().cloned().collect();
    texts.sort_by_key(ToString::to_string);
    Value::Array(texts)
}

fn may_flow(row: &Row) -> Result<(), String> {
    let set = |name: &str| row.get(name).map_or(Ok(Default::default()), read);
    let label = Label {
        confidentiality: read(row.required("context")?)?,
        principals: set("principals")?,
        ..Label::default()
    };
    let destination =
        Destination { max: read(row.required("maximum")?)?, authorized: set("authorized")? };
    expect_same("may flow", &row.expect, &label.may_flow(&destination).into())
}

fn result_label(row: &Row) -> Result<(), String> {
    match (meta_label(row), row.expect.is_null()) {
        (None, true) => Ok(()),
        (Some(label), false) => labelled(row, &label),
        (found, _) => Err(format!("expected {}, got {found:?}", row.expect)),
    }
}

fn meta_label(row: &Row) -> Option<Label> {
    row.get("meta").and_then(Value::as_object).and_then(Label::from_meta)
}

/// Checks which stated labels apply.
fn stated(row: &Row) -> Result<(), String> {
    let given = row.required("labels")?;
    // Unknown keys are refused; labels of a server are read from its listing.
    let labels: StatedLabels = read(given)?;
    let by = match row.text("by")? {
        "program" | "host" => StatedBy::Program,
        "server" | "plugin" | "mcp" => StatedBy::ThirdParty,
        other => return Err(format!("unknown word `{other}`")),
    };
    let meta = json!({ "ifc": given });
    let labels = match by {
        StatedBy::Program => labels,
        StatedBy::ThirdParty => StatedLabels::from_meta(meta.as_object().ok_or("no map")?),
    };
    let source = Strange { by, labels, ..Strange::named("tool") };
    let counts = LabelPolicy::new().labels_of(source.tool()?, &source);
    let mut found = written(&counts.result);
    found.insert("source_integrity".to_owned(), json!(counts.result.integrity));
    found.insert("accepts_untrusted".to_owned(), counts.accepts_untrusted.into());
    let destination = counts.destination.as_ref();
    found.insert("max_allowed_confidentiality".to_owned(), json!(destination.map(|to| to.max)));
    found.insert("authorized_principals".to_owned(), json!(destination.map(|to| &to.authorized)));
    compare(&row.expect, &found)
}

/// Returns the labels of the tool of a row.
fn tool_of(row: &Row) -> Result<StatedLabels, String> {
    let own = row.get("tool").map_or(Ok(Label::default()), |written| {
        // Rows write a tool's label either as a label or as stated labels.
        let stated = written.get("source_integrity").is_some();
        if stated { read::<StatedLabels>(written).map(of_stated) } else { label(written) }
    })?;
    Ok(StatedLabels {
        source_integrity: Some(own.integrity),
        confidentiality: Some(own.confidentiality),
        accepts_untrusted: Some(true),
        ..StatedLabels::default()
    })
}

fn of_stated(stated: StatedLabels) -> Label {
    Label {
        integrity: stated.source_integrity.unwrap_or(Integrity::Trusted),
        confidentiality: stated.confidentiality.unwrap_or(Confidentiality::Public),
        ..Label::default()
    }
}

async fn result_label_combined(row: &Row) -> Result<(), String> {
    let mut scene = Scene::new();
    let policy = LabelPolicy::new().tool("tool", tool_of(row)?);
    scene.add(Strange { said: meta_label(row), ..Strange::named("tool") })?;
    labelled(row, &scene.label_of_call(policy, "tool", &json!({})).await?)
}

async fn argument_labels(row: &Row) -> Result<(), String> {
    let name =
        ["variables", "arguments", "labels"].into_iter().find(|name| row.get(name).is_some());
    let labels = labels(row, name.ok_or("the row names no variables")?)?;
    let mut scene = Scene::new();
    scene.add(Strange::named("tool"))?;
    let ids = scene.hidden(&labels);
    // Both forms of a reference, deep in the arguments.
    let arguments = ids.iter().enumerate().map(|(index, id)| match index % 2 {
        0 => json!(id),
        _ => json!([{"type": "variable_reference", "variable_id": id}]),
    });
    let arguments = json!({ "given": arguments.collect::<Vec<_>>() });
    let policy = LabelPolicy::new().tool("tool", tool_of(row)?);
    labelled(row, &scene.label_of_call(policy, "tool", &arguments).await?)
}

async fn quarantined(row: &Row) -> Result<(), String> {
    let labels = match row.get("label") {
        Some(one) => vec![label(one)?],
        None => labels(row, if row.get("labels").is_some() { "labels" } else { "variables" })?,
    };
    compare(&row.expect, &runs::quarantined(&labels).await?)
}
