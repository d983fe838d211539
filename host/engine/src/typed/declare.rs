//! Conversion of planned functions to declarations, as if the plugin had declared its tools itself.

use cofferdam_tool::declaration::{Declaration, DeclarationError};
use cofferdam_tool::{Annotations, OutputSchema};
use serde_json::Value;

use super::Function;
use super::docs::{self, Docs, Words};
use super::schema::{self, Direction};
use super::shape::{Field, ValueShape};
use crate::LoadError;
use crate::manifest::{Manifest, ToolWords};

/// Returns the declarations of all functions. `component` contains the docs.
pub(crate) fn declarations(
    functions: &[Function],
    component: &[u8],
    manifest: &Manifest,
) -> Result<Vec<Declaration>, LoadError> {
    let parameters = |tool: &str| {
        let function = functions.iter().find(|function| function.tool == tool)?;
        Some(function.parameters.iter().map(|field| field.key.as_str()).collect())
    };
    manifest.check_words(parameters)?;
    let docs = Docs::read(component);
    functions
        .iter()
        .map(|function| declaration(function, &docs, manifest.tool(&function.tool)))
        .collect()
}

fn declaration(
    function: &Function,
    docs: &Docs,
    added: Option<&ToolWords>,
) -> Result<Declaration, LoadError> {
    let text = docs.function(function.interface.as_deref(), &function.name).unwrap_or_default();
    let words = docs::words(text).and_then(|words| check_names(function, words));
    let words = words.map_err(|reason| refusal(function, reason))?;
    let description =
        added.and_then(|added| added.description.clone()).or_else(|| words.description.clone());
    Ok(Declaration {
        name: function.tool.clone(),
        title: added.and_then(|added| added.title.clone()),
        description: description.unwrap_or_else(|| plain_description(function)),
        input_schema: input_schema(&function.parameters, &words, added).to_string(),
        output_schema: output_schema(function),
        annotations: added.map_or_else(Annotations::default, ToolWords::annotations),
        group: added.and_then(|added| added.group.clone()),
    })
}

/// Rejects docs about parameters that do not exist.
fn check_names(function: &Function, words: Words) -> Result<Words, String> {
    let is_parameter = |key: &String| function.parameters.iter().any(|field| field.key == *key);
    match words.parameters.keys().find(|key| !is_parameter(key)) {
        Some(stranger) => Err(format!("its docs are about `{stranger}`, which is not a parameter")),
        None => Ok(words),
    }
}

fn refusal(function: &Function, reason: String) -> DeclarationError {
    DeclarationError::Tool { tool: function.tool.clone(), pointer: String::new(), reason }
}

/// Returns a fallback description: a model that sees only a name at least learns that there is no
/// description.
fn plain_description(function: &Function) -> String {
    match &function.interface {
        Some(interface) => {
            format!("The function `{}` of `{interface}`; it has no description.", function.name)
        }
        None => format!("The function `{}`; it has no description.", function.name),
    }
}

fn input_schema(parameters: &[Field], words: &Words, added: Option<&ToolWords>) -> Value {
    let schemas: Vec<_> = parameters.iter().map(|field| parameter(field, words, added)).collect();
    let defaulted: Vec<_> = parameters
        .iter()
        .zip(&schemas)
        .filter(|(_, schema)| schema.get("default").is_some())
        .map(|(field, _)| field.key.clone())
        .collect();
    schema::object(parameters.iter().zip(schemas), |field| {
        schema::is_required(&field.shape, Direction::Argument) && !defaulted.contains(&field.key)
    })
}

fn parameter(field: &Field, words: &Words, added: Option<&ToolWords>) -> Value {
    let mut schema = schema::of(&field.shape, Direction::Argument);
    let said = words.parameters.get(&field.key);
    let added = added.and_then(|added| added.parameter(&field.key));
    let description = added
        .and_then(|added| added.description.clone())
        .or_else(|| said.and_then(|said| said.description.clone()));
    let default = added
        .and_then(|added| added.default.clone())
        .or_else(|| said.and_then(|said| said.default.clone()));
    let examples = added
        .and_then(|added| added.examples.clone())
        .or_else(|| said.map(|said| said.examples.clone()))
        .unwrap_or_default();
    if let Some(description) = description {
        schema::set(&mut schema, "description", description.into());
    }
    if let Some(default) = default {
        schema::set(&mut schema, "default", default);
    }
    if !examples.is_empty() {
        schema::set(&mut schema, "examples", examples.into());
    }
    schema
}

/// Returns the schema of a result that is a record. MCP has no other structured results: the schema
/// must be that of an object. A schema that breaks a limit of `ARG-42` is left out, because a tool
/// works without it.
fn output_schema(function: &Function) -> Option<String> {
    let value = match function.result.as_ref()? {
        ValueShape::Result { ok, .. } => ok.as_deref()?,
        shape => shape,
    };
    if !matches!(value, ValueShape::Record(_)) {
        return None;
    }
    let text = schema::of(value, Direction::Result).to_string();
    OutputSchema::compile(&function.tool, &text).is_ok().then_some(text)
}
