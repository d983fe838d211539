//! Schemas: references are resolved, and what only OpenAPI knows is converted or left out.

use serde_json::{Map, Value as Json, json};

/// Maximum depth of a schema.
const DEPTH_MAX: usize = 40;
/// Maximum number of schemas in an input schema, counting each use of a reference.
const SCHEMAS_MAX: usize = 2_000;
/// Maximum length of a chain of references.
const REFERENCES_MAX: usize = 20;

/// Keywords that only OpenAPI knows, or that do not help a model.
const LEFT_OUT: [&str; 8] = [
    "discriminator",
    "xml",
    "externalDocs",
    "example",
    "examples",
    "deprecated",
    "writeOnly",
    "readOnly",
];

/// Returns the value that a `$ref` refers to, or the value itself.
pub(super) fn follow<'d>(document: &'d Json, value: &'d Json) -> Result<&'d Json, String> {
    let mut value = value;
    for _ in 0..REFERENCES_MAX {
        let Some(reference) = value.get("$ref").and_then(Json::as_str) else { return Ok(value) };
        value = resolve(document, reference)?;
    }
    Err("a reference refers to itself".to_owned())
}

fn resolve<'d>(document: &'d Json, reference: &str) -> Result<&'d Json, String> {
    let Some(pointer) = reference.strip_prefix('#') else {
        return Err(format!(
            "`{reference}` is in another file: bundle the document into one file first"
        ));
    };
    document.pointer(pointer).ok_or_else(|| format!("`{reference}` does not exist"))
}

/// Inlines the references of a schema.
pub(super) fn inline(document: &Json, schema: &Json) -> Result<Json, String> {
    Inliner { document, references: Vec::new(), count: 0 }.schema(schema, 0)
}

struct Inliner<'d> {
    document: &'d Json,
    /// References that are being resolved.
    references: Vec<String>,
    count: usize,
}

impl Inliner<'_> {
    fn schema(&mut self, schema: &Json, depth: usize) -> Result<Json, String> {
        self.count += 1;
        if depth > DEPTH_MAX || self.count > SCHEMAS_MAX {
            return Err(format!(
                "its schema has more than {DEPTH_MAX} levels or {SCHEMAS_MAX} parts"
            ));
        }
        let Some(members) = schema.as_object() else {
            return match schema {
                Json::Bool(_) => Ok(schema.clone()),
                _ => Err(format!("a schema is `{schema}`, expected an object")),
            };
        };
        if let Some(reference) = members.get("$ref").and_then(Json::as_str) {
            if self.references.iter().any(|it| it == reference) {
                // A recursive schema ends where it repeats.
                let name = reference.rsplit('/').next().unwrap_or_default();
                return Ok(json!({"description": format!("Another `{name}`.")}));
            }
            let target = resolve(self.document, reference)?;
            self.references.push(reference.to_owned());
            let mut inlined = self.schema(target, depth + 1)?;
            self.references.pop();
            if let (Some(description), Some(members)) =
                (members.get("description"), inlined.as_object_mut())
            {
                members.insert("description".to_owned(), description.clone());
            }
            return Ok(inlined);
        }
        let mut inlined = Map::new();
        for (keyword, value) in members {
            if LEFT_OUT.contains(&keyword.as_str()) || keyword.starts_with("x-") {
                continue;
            }
            inlined.insert(keyword.clone(), self.keyword(keyword, value, depth)?);
        }
        convert(&mut inlined, members);
        Ok(Json::Object(inlined))
    }

    fn keyword(&mut self, keyword: &str, value: &Json, depth: usize) -> Result<Json, String> {
        match (keyword, value) {
            ("properties" | "patternProperties" | "$defs", Json::Object(schemas)) => {
                // The server sets read-only properties, not the caller.
                let is_read_only = |schema: &Json| {
                    follow(self.document, schema)
                        .is_ok_and(|it| it.get("readOnly") == Some(&Json::Bool(true)))
                };
                let schemas: Vec<_> =
                    schemas.iter().filter(|(_, schema)| !is_read_only(schema)).collect();
                schemas
                    .into_iter()
                    .map(|(name, schema)| Ok((name.clone(), self.schema(schema, depth + 1)?)))
                    .collect()
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Json::Array(schemas)) => {
                schemas.iter().map(|schema| self.schema(schema, depth + 1)).collect()
            }
            (
                "items"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "unevaluatedProperties",
                Json::Object(_),
            ) => self.schema(value, depth + 1),
            _ => Ok(value.clone()),
        }
    }
}

/// Converts keywords of OpenAPI 3.0 to JSON Schema.
fn convert(schema: &mut Map<String, Json>, original: &Map<String, Json>) {
    if schema.remove("nullable") == Some(Json::Bool(true)) {
        if let Some(Json::String(kind)) = schema.get("type").cloned() {
            schema.insert("type".to_owned(), json!([kind, "null"]));
        }
        if let Some(Json::Array(values)) = schema.get_mut("enum")
            && !values.contains(&Json::Null)
        {
            values.push(Json::Null);
        }
    }
    for (exclusive, inclusive) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")]
    {
        if let Some(is_exclusive) = schema.get(exclusive).and_then(Json::as_bool) {
            schema.remove(exclusive);
            if is_exclusive && let Some(limit) = schema.remove(inclusive) {
                schema.insert(exclusive.to_owned(), limit);
            }
        }
    }
    // Properties that were left out cannot be required.
    if let (Some(Json::Object(all)), Some(Json::Object(kept))) =
        (original.get("properties"), schema.get("properties").cloned())
        && let Some(Json::Array(required)) = schema.get_mut("required")
    {
        let is_left_out = |name: &str| all.contains_key(name) && !kept.contains_key(name);
        required.retain(|name| !name.as_str().is_some_and(is_left_out));
    }
}

/// Returns warnings about keys that cannot be set by the host.
pub(super) fn key_warnings(document: &Json) -> Vec<String> {
    let schemes = document.pointer("/components/securitySchemes").and_then(Json::as_object);
    let text = |scheme: &Json, key: &str| {
        scheme.get(key).and_then(Json::as_str).unwrap_or_default().to_owned()
    };
    schemes
        .into_iter()
        .flatten()
        .filter(|(_, scheme)| text(scheme, "type") == "apiKey" && text(scheme, "in") != "header")
        .map(|(name, scheme)| {
            format!(
                "the key `{name}` is sent in a {}, and the host sets headers only: requests go \
                 without it",
                text(scheme, "in")
            )
        })
        .collect()
}
