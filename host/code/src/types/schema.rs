//! Conversion of JSON Schema to types.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{ObjectType, Property, Type};

/// Maximum depth of a type. Deeper schemas are unknown.
const LEVELS_MAX: usize = 24;
/// Maximum number of types in one conversion. Further schemas are unknown.
const TYPES_MAX: usize = 2000;

/// Keywords that a type does not express, with their names in a hint.
const UNEXPRESSED: [&str; 16] = [
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "patternProperties",
    "propertyNames",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "unevaluatedProperties",
];

/// A schema as types.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConvertedSchema {
    /// Type of the whole.
    pub(crate) root: Type,
    /// Named types that the others refer to, by the names that they have here.
    pub(crate) named: BTreeMap<String, Type>,
    /// Parts of the root that its type does not express.
    pub(crate) hints: Vec<String>,
}

/// Converts a schema. `prefix` starts the names of its definitions, so that those of two tools
/// differ.
pub(crate) fn convert(schema: &Value, prefix: &str) -> ConvertedSchema {
    let mut converter = Converter {
        document: schema,
        prefix,
        names: BTreeMap::new(),
        pending: Vec::new(),
        types: 0,
    };
    let root = converter.convert(schema, 0);
    let mut named = BTreeMap::new();
    while let Some((name, target)) = converter.pending.pop() {
        let ty = converter.convert(target, 0);
        named.insert(name, ty);
    }
    ConvertedSchema { root, named, hints: hints(schema) }
}

struct Converter<'s> {
    document: &'s Value,
    prefix: &'s str,
    /// Names of definitions by their pointers.
    names: BTreeMap<String, String>,
    pending: Vec<(String, &'s Value)>,
    types: usize,
}

impl<'s> Converter<'s> {
    fn convert(&mut self, schema: &'s Value, level: usize) -> Type {
        self.types += 1;
        let Value::Object(schema) = schema else { return Type::Unknown };
        if level >= LEVELS_MAX || self.types > TYPES_MAX {
            return Type::Unknown;
        }
        // All parts apply at once, so that a union at the top does not hide the properties.
        let own = self.own_type(schema, level);
        let reference = schema.get("$ref").and_then(Value::as_str);
        let reference = reference.map(|pointer| self.reference(pointer));
        let any = ["anyOf", "oneOf"].map(|keyword| {
            let members = members(schema, keyword)?;
            Some(Type::union(members.iter().map(|member| self.convert(member, level + 1))))
        });
        let all = members(schema, "allOf").into_iter().flatten();
        let all: Vec<_> = all.map(|member| self.convert(member, level + 1)).collect();
        let parts = own.into_iter().chain(reference).chain(any.into_iter().flatten()).chain(all);
        let ty = Type::intersection(parts.collect::<Vec<_>>());
        match schema.get("nullable") {
            Some(Value::Bool(true)) => Type::union([ty, Type::Null]),
            _ => ty,
        }
    }

    /// Returns the type that `enum`, `const` and `type` with its keywords state.
    fn own_type(&mut self, schema: &'s Map<String, Value>, level: usize) -> Option<Type> {
        if let Some(value) = schema.get("const") {
            return Some(literal(value));
        }
        if let Some(values) = members(schema, "enum") {
            return Some(Type::union(values.iter().map(literal)));
        }
        match schema.get("type") {
            Some(Value::String(name)) => Some(self.of_type(name, schema, level)),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str);
                Some(Type::union(names.map(|name| self.of_type(name, schema, level))))
            }
            _ if schema.contains_key("properties") => Some(self.of_type("object", schema, level)),
            _ if schema.contains_key("items") || schema.contains_key("prefixItems") => {
                Some(self.of_type("array", schema, level))
            }
            _ => None,
        }
    }

    fn of_type(&mut self, name: &str, schema: &'s Map<String, Value>, level: usize) -> Type {
        match name {
            "null" => Type::Null,
            "boolean" => Type::Boolean,
            "number" => Type::Number,
            "integer" => Type::Integer,
            "string" => Type::String,
            "array" => self.array(schema, level),
            "object" => Type::Object(self.object(schema, level)),
            _ => Type::Unknown,
        }
    }

    fn array(&mut self, schema: &'s Map<String, Value>, level: usize) -> Type {
        // Before draft 2020-12, `items` held the list, and `additionalItems` the rest.
        let (first, rest) = match members(schema, "prefixItems") {
            Some(first) => (Some(first), schema.get("items")),
            None => match schema.get("items") {
                Some(Value::Array(first)) => (Some(first), schema.get("additionalItems")),
                items => (None, items),
            },
        };
        let is_closed = rest == Some(&Value::Bool(false));
        let item = rest.map_or(Type::Unknown, |rest| self.convert(rest, level + 1));
        match first {
            None => Type::Array(Box::new(item)),
            Some(first) => {
                let first = first.iter().map(|member| self.convert(member, level + 1)).collect();
                Type::Tuple(first, (!is_closed).then(|| Box::new(item)))
            }
        }
    }

    fn object(&mut self, schema: &'s Map<String, Value>, level: usize) -> ObjectType {
        let required: Vec<_> =
            members(schema, "required").into_iter().flatten().filter_map(Value::as_str).collect();
        let declared = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let properties: Vec<_> = declared
            .map(|(name, property)| Property {
                name: name.clone(),
                ty: self.convert(property, level + 1),
                is_required: required.contains(&name.as_str()),
                description: text(property, "description").or_else(|| text(property, "title")),
                hints: hints(property),
            })
            .collect();
        let rest = match schema.get("additionalProperties") {
            Some(Value::Bool(false)) => None,
            Some(rest @ Value::Object(_)) => Some(Box::new(self.convert(rest, level + 1))),
            Some(Value::Bool(true)) => Some(Box::new(Type::Unknown)),
            // By default, anything else is accepted, but only a schema without properties says
            // that it is a map.
            _ if properties.is_empty() => Some(Box::new(Type::Unknown)),
            _ => None,
        };
        ObjectType { properties, rest }
    }

    /// Returns the named type of a reference within the document.
    fn reference(&mut self, pointer: &str) -> Type {
        if let Some(name) = self.names.get(pointer) {
            return Type::Reference(name.clone());
        }
        let path = pointer.strip_prefix('#');
        let path = path.filter(|path| path.is_empty() || path.starts_with('/'));
        let Some(target) = path.and_then(|path| self.document.pointer(path)) else {
            return Type::Unknown;
        };
        let last = pointer.rsplit('/').next().unwrap_or_default();
        let name = self.name(if last == "#" { "Self" } else { last });
        self.names.insert(pointer.to_owned(), name.clone());
        self.pending.push((name.clone(), target));
        Type::Reference(name)
    }

    /// Returns a name for a definition that no other one has.
    fn name(&self, definition: &str) -> String {
        let base = format!("{}{}", self.prefix, pascal_case(definition));
        let is_taken = |name: &String| self.names.values().any(|taken| taken == name);
        let numbered = (2..).map(|number| format!("{base}{number}"));
        std::iter::once(base.clone()).chain(numbered).find(|name| !is_taken(name)).unwrap_or(base)
    }
}

/// Returns a name of letters and digits in which each word starts with a capital letter.
pub(crate) fn pascal_case(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let capitalized = words.map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    capitalized.collect()
}

fn literal(value: &Value) -> Type {
    match value {
        Value::Null => Type::Null,
        // Literal types are those of scalars.
        Value::Array(_) => Type::Array(Box::new(Type::Unknown)),
        Value::Object(_) => Type::Object(ObjectType {
            rest: Some(Box::new(Type::Unknown)),
            ..ObjectType::default()
        }),
        scalar => Type::Literal(scalar.clone()),
    }
}

fn members<'s>(schema: &'s Map<String, Value>, keyword: &str) -> Option<&'s Vec<Value>> {
    schema.get(keyword).and_then(Value::as_array)
}

fn text(schema: &Value, keyword: &str) -> Option<String> {
    schema.get(keyword).and_then(Value::as_str).map(str::to_owned)
}

/// Returns the parts of a schema that its type does not express.
fn hints(schema: &Value) -> Vec<String> {
    let Value::Object(schema) = schema else { return Vec::new() };
    let mut hints = Vec::new();
    let value = |keyword: &str| schema.get(keyword).map(Value::to_string);
    let mut range = |low: Option<String>, high: Option<String>, unit: &str| match (low, high) {
        (Some(low), Some(high)) => hints.push(format!("{low} to {high}{unit}")),
        (Some(low), None) => hints.push(format!("at least {low}{unit}")),
        (None, Some(high)) => hints.push(format!("at most {high}{unit}")),
        (None, None) => {}
    };
    range(value("minimum"), value("maximum"), "");
    range(value("minLength"), value("maxLength"), " characters");
    range(value("minItems"), value("maxItems"), " items");
    let named = [
        ("exclusiveMinimum", "more than "),
        ("exclusiveMaximum", "less than "),
        ("multipleOf", "multiple of "),
    ];
    hints.extend(
        named
            .into_iter()
            .filter_map(|(keyword, words)| Some(format!("{words}{}", value(keyword)?))),
    );
    for keyword in ["format", "pattern"] {
        if let Some(text) = schema.get(keyword).and_then(Value::as_str) {
            hints.push(format!("{keyword} {text}"));
        }
    }
    if let Some(default) = value("default") {
        hints.push(format!("default {default}"));
    }
    let also: Vec<_> =
        UNEXPRESSED.into_iter().filter(|keyword| schema.contains_key(*keyword)).collect();
    if !also.is_empty() {
        hints.push(format!("not expressed here: {}", also.join(", ")));
    }
    hints
}
