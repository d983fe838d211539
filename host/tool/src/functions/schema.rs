//! Makes JSON Schemas from types.
//!
//! Schemas are inlined, because several model APIs mishandle `$ref`. Only recursive types stay in
//! `$defs`. [`tidy`] makes a schema easier for models without changing which values are valid.

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Builder for the schema of a tool's arguments.
#[derive(Debug)]
pub struct ObjectSchema {
    generator: SchemaGenerator,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Default for ObjectSchema {
    fn default() -> Self {
        Self::new()
    }
}

impl ObjectSchema {
    /// Creates the schema of a tool without parameters.
    #[must_use]
    pub fn new() -> Self {
        Self {
            generator: settings().into_generator(),
            properties: Map::new(),
            required: Vec::new(),
        }
    }

    /// Adds a property, which is required unless it accepts null.
    pub fn property<T: JsonSchema>(&mut self, name: &str, description: &str) {
        let schema = self.generator.subschema_for::<T>();
        if !accepts_null(schema.as_value()) {
            self.required.push(name.into());
        }
        self.insert(name, description, schema, None);
    }

    /// Adds an optional property with a default.
    pub fn defaulted<T: JsonSchema + Serialize>(
        &mut self,
        name: &str,
        description: &str,
        default: T,
    ) {
        let schema = self.generator.subschema_for::<T>();
        // A default that is not JSON cannot be published. Calls use it in any case.
        self.insert(name, description, schema, serde_json::to_value(default).ok());
    }

    fn insert(
        &mut self,
        name: &str,
        description: &str,
        mut schema: Schema,
        default: Option<Value>,
    ) {
        if !description.is_empty() {
            schema.insert("description".to_owned(), description.into());
        }
        if let Some(default) = default {
            schema.insert("default".to_owned(), default);
        }
        self.properties.insert(name.to_owned(), schema.to_value());
    }

    /// Returns the complete schema.
    #[must_use]
    pub fn finish(self) -> String {
        let mut schema = Map::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), self.properties.into());
        if !self.required.is_empty() {
            schema.insert("required".to_owned(), self.required.into());
        }
        complete(self.generator, schema.into()).to_string()
    }
}

/// Returns the schema of a serialized `T`.
pub(super) fn of_output<T: JsonSchema>() -> String {
    let mut generator = settings().for_serialize().into_generator();
    let schema = generator.subschema_for::<T>();
    complete(generator, schema).to_string()
}

fn settings() -> SchemaSettings {
    SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    })
}

fn complete(mut generator: SchemaGenerator, mut schema: Schema) -> Value {
    let definitions = generator.take_definitions(false);
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), definitions.into());
    }
    tidy(&mut schema);
    schema.to_value()
}

fn tidy(schema: &mut Schema) {
    transform_subschemas(&mut tidy, schema);
    let Some(object) = schema.as_object_mut() else { return };
    fix_size_format(object);
    join_documented_members(object);
}

/// Sets the format of `usize` and `isize`, which the decoder knows by their number of bits only.
fn fix_size_format(schema: &mut Map<String, Value>) {
    let format = schema.get("format").and_then(Value::as_str);
    let Some(format @ ("uint" | "int")) = format else { return };
    let format = format!("{format}{}", usize::BITS);
    schema.insert("format".to_owned(), format.into());
}

/// Joins the branches of an enum whose members have doc comments, which schemars writes as `oneOf`,
/// into a plain `enum`. More models understand it, and the error for an invalid value lists the
/// valid ones. The comments move to the description.
fn join_documented_members(schema: &mut Map<String, Value>) {
    let Some(branches) = schema.get("oneOf").and_then(Value::as_array) else { return };
    let mut members = Vec::new();
    let mut lines = Vec::new();
    for branch in branches {
        let (Some("string"), Some(words)) = (branch["type"].as_str(), words(branch)) else {
            return;
        };
        if let (Some(description), [word]) = (branch["description"].as_str(), words.as_slice()) {
            lines.push(format!("- `{}`: {description}", word.as_str().unwrap_or_default()));
        }
        members.extend(words);
    }
    if let Some(description) = schema.get("description").and_then(Value::as_str) {
        lines.insert(0, description.to_owned());
    }
    schema.shift_remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), members.into());
    if !lines.is_empty() {
        schema.insert("description".to_owned(), lines.join("\n").into());
    }
}

/// Returns the members of one branch of such an enum.
fn words(branch: &Value) -> Option<Vec<Value>> {
    match (branch.get("const"), branch.get("enum")) {
        (Some(word), _) => Some(vec![word.clone()]),
        (None, Some(words)) => words.as_array().cloned(),
        (None, None) => None,
    }
}

/// Returns whether null matches a schema, so that the argument is optional. A reference does not
/// count: it stands for a recursive type, which is a struct or an enum with content.
fn accepts_null(schema: &Value) -> bool {
    let null = Value::Null;
    match schema {
        Value::Bool(everything) => *everything,
        Value::Object(object) => {
            match (object.get("type"), object.get("enum"), object.get("const")) {
                (Some(Value::Array(types)), ..) => types.contains(&json!("null")),
                (Some(one), ..) => one == "null",
                (None, Some(members), _) => {
                    members.as_array().is_some_and(|members| members.contains(&null))
                }
                (None, None, Some(only)) => only.is_null(),
                (None, None, None) => match object.get("anyOf").or_else(|| object.get("oneOf")) {
                    Some(branches) => {
                        branches.as_array().is_some_and(|it| it.iter().any(accepts_null))
                    }
                    None => !object.contains_key("$ref") && !object.contains_key("allOf"),
                },
            }
        }
        _ => false,
    }
}
