//! Forms from schemas: the fields for the arguments of a tool.
//!
//! A form has a field for each value that it can show. What it cannot show becomes a field for
//! JSON at that position, so that every schema has a form and every value can be entered.

use serde_json::{Map, Value};

/// Maximum number of fields. Further ones are fields for JSON.
const FIELDS_MAX: usize = 300;
/// Maximum depth of fields within fields, also of schemas that contain themselves.
const DEPTH_MAX: usize = 6;
/// Maximum number of references that are followed to one schema.
const REFERENCES_MAX: usize = 8;
/// Keywords that combine schemas in a way that no single field can show.
const COMBINATIONS: [&str; 6] =
    ["allOf", "not", "if", "prefixItems", "patternProperties", "contains"];

/// Field for one value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FormField {
    /// Name of the property; empty for the whole, an item and a branch.
    pub(crate) name: String,
    /// Title that the schema states.
    pub(crate) title: Option<String>,
    /// Description that the schema states.
    pub(crate) description: Option<String>,
    /// True if the value has to be present.
    pub(crate) is_required: bool,
    /// True if the value may be null.
    pub(crate) is_nullable: bool,
    /// Value of the field at first.
    pub(crate) default: Option<Value>,
    pub(crate) kind: FieldKind,
}

/// Kind of a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FieldKind {
    /// A string, with a hint about its format.
    Text { hint: Option<String> },
    /// A number.
    Number { is_integer: bool },
    /// True or false.
    Boolean,
    /// One of some values.
    Options(Vec<Value>),
    /// Named fields.
    Object(Vec<FormField>),
    /// Any number of equal fields.
    List(Box<FormField>),
    /// Alternatives.
    Branches(Vec<FormField>),
    /// A value as JSON.
    Json,
}

/// Reads the schemas of one form.
struct FormReader<'s> {
    root: &'s Value,
    fields_left: usize,
}

impl FormField {
    /// Returns the form for the arguments of a tool, from its published schema.
    pub(crate) fn of(schema: &Value) -> Self {
        let mut reader = FormReader { root: schema, fields_left: FIELDS_MAX };
        let mut form = reader.field("", schema, true, 0);
        // The arguments as a whole are an object, also if the schema says no more than that.
        if form.kind == FieldKind::Json && schema.get("properties").is_none() {
            form.default = Some(Value::Object(Map::new()));
        }
        form
    }
}

impl FormReader<'_> {
    fn field(&mut self, name: &str, schema: &Value, is_required: bool, depth: usize) -> FormField {
        let schema = self.resolve(schema);
        let text = |key: &str| schema.get(key).and_then(Value::as_str).map(str::to_owned);
        let examples = schema.get("examples").and_then(Value::as_array);
        let example = examples.and_then(|examples| examples.first()).filter(|_| is_required);
        let (is_nullable, kind) = self.kind(schema, depth);
        FormField {
            name: name.to_owned(),
            title: text("title"),
            description: text("description"),
            is_required,
            is_nullable,
            default: schema.get("default").or(example).cloned(),
            kind,
        }
    }

    /// Follows references. A schema beside a reference, other than its words, is not shown.
    fn resolve<'v>(&self, schema: &'v Value) -> &'v Value
    where
        Self: 'v,
    {
        let mut schema = schema;
        for _ in 0..REFERENCES_MAX {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { break };
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            let Some(target) = target else { break };
            schema = target;
        }
        schema
    }

    /// Returns whether null is allowed, and the kind of the other values.
    fn kind(&mut self, schema: &Value, depth: usize) -> (bool, FieldKind) {
        let json = (false, FieldKind::Json);
        if depth > DEPTH_MAX || self.fields_left == 0 || schema.get("$ref").is_some() {
            return json;
        }
        self.fields_left -= 1;
        if COMBINATIONS.iter().any(|keyword| schema.get(keyword).is_some()) {
            return json;
        }
        if let Some(value) = schema.get("const") {
            return (false, FieldKind::Options(vec![value.clone()]));
        }
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            return (false, FieldKind::Options(values.clone()));
        }
        let branches = schema.get("oneOf").or(schema.get("anyOf")).and_then(Value::as_array);
        if let Some(branches) = branches {
            return self.branches(schema, branches, depth);
        }
        let (is_nullable, word) = match schema.get("type") {
            Some(Value::String(word)) => (false, word.as_str()),
            Some(Value::Array(words)) => {
                let words: Vec<_> = words.iter().filter_map(Value::as_str).collect();
                let others: Vec<_> = words.iter().filter(|word| **word != "null").collect();
                match others.as_slice() {
                    [word] => (words.len() > 1, **word),
                    _ => return json,
                }
            }
            _ if schema.get("properties").is_some() => (false, "object"),
            _ => return json,
        };
        (is_nullable, self.typed(word, schema, depth))
    }

    fn typed(&mut self, word: &str, schema: &Value, depth: usize) -> FieldKind {
        match word {
            "string" => {
                let hint = schema.get("format").or(schema.get("pattern")).and_then(Value::as_str);
                FieldKind::Text { hint: hint.map(str::to_owned) }
            }
            "integer" => FieldKind::Number { is_integer: true },
            "number" => FieldKind::Number { is_integer: false },
            "boolean" => FieldKind::Boolean,
            "object" => self.object(schema, depth),
            "array" => match schema.get("items") {
                Some(items) if items.is_object() => {
                    FieldKind::List(Box::new(self.field("", items, true, depth + 1)))
                }
                _ => FieldKind::Json,
            },
            _ => FieldKind::Json,
        }
    }

    fn object(&mut self, schema: &Value, depth: usize) -> FieldKind {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return FieldKind::Json;
        };
        // Undeclared properties have no field, so that such an object is JSON as a whole.
        let is_open = schema.get("additionalProperties").is_some_and(Value::is_object);
        if is_open || properties.is_empty() && depth > 0 {
            return FieldKind::Json;
        }
        let required: Vec<_> =
            schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
        let is_required = |name: &str| required.iter().any(|one| one.as_str() == Some(name));
        let mut fields: Vec<_> = properties
            .iter()
            .map(|(name, schema)| self.field(name, schema, is_required(name), depth + 1))
            .collect();
        fields.sort_by_key(|field| !field.is_required);
        FieldKind::Object(fields)
    }

    fn branches(&mut self, schema: &Value, branches: &[Value], depth: usize) -> (bool, FieldKind) {
        // Properties beside the alternatives hold for each of them.
        if ["properties", "items", "required"].iter().any(|key| schema.get(key).is_some()) {
            return (false, FieldKind::Json);
        }
        let is_null = |branch: &Value| branch.get("type").and_then(Value::as_str) == Some("null");
        let others: Vec<_> = branches.iter().filter(|branch| !is_null(branch)).collect();
        let is_nullable = others.len() < branches.len();
        match others.as_slice() {
            [] => (false, FieldKind::Json),
            [one] => {
                let one = self.resolve(one);
                let (is_also_nullable, kind) = self.kind(one, depth + 1);
                (is_nullable || is_also_nullable, kind)
            }
            several => {
                let fields = several.iter().map(|branch| self.field("", branch, true, depth + 1));
                (is_nullable, FieldKind::Branches(fields.collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind_of(schema: Value) -> FieldKind {
        let form = FormField::of(&json!({"type": "object", "properties": {"a": schema}}));
        let FieldKind::Object(mut fields) = form.kind else { panic!("{form:?}") };
        fields.remove(0).kind
    }

    #[test]
    fn each_kind_of_value_has_its_field() {
        let text = FieldKind::Text { hint: None };
        for (schema, kind) in [
            (json!({"type": "string"}), text.clone()),
            (
                json!({"type": "string", "format": "date"}),
                FieldKind::Text { hint: Some("date".to_owned()) },
            ),
            (json!({"type": "integer"}), FieldKind::Number { is_integer: true }),
            (json!({"type": ["number", "null"]}), FieldKind::Number { is_integer: false }),
            (json!({"type": "boolean"}), FieldKind::Boolean),
            (json!({"enum": ["a", 1]}), FieldKind::Options(vec![json!("a"), json!(1)])),
            (json!({"const": 1}), FieldKind::Options(vec![json!(1)])),
            (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), text),
            (json!({"type": "object"}), FieldKind::Json),
            (
                json!({"type": "object", "properties": {"b": true}, "additionalProperties": {"type": "string"}}),
                FieldKind::Json,
            ),
            (json!({"type": ["string", "integer"]}), FieldKind::Json),
            (json!({"type": "string", "not": {"const": "x"}}), FieldKind::Json),
            (json!({"$ref": "#/nowhere"}), FieldKind::Json),
            (json!(true), FieldKind::Json),
            (json!({"type": "array"}), FieldKind::Json),
        ] {
            assert_eq!(kind_of(schema.clone()), kind, "{schema}");
        }
        assert!(
            matches!(kind_of(json!({"oneOf": [{"type": "string"}, {"type": "integer"}]})), FieldKind::Branches(branches) if branches.len() == 2)
        );
        assert!(matches!(
            kind_of(json!({"type": "array", "items": {"type": "string"}})),
            FieldKind::List(_)
        ));
    }

    #[test]
    fn required_fields_come_first_and_have_their_words() {
        let form = FormField::of(&json!({
            "type": "object", "required": ["b"],
            "properties": {
                "a": {"type": "integer", "default": 3, "description": "A number."},
                "b": {"$ref": "#/$defs/name"},
            },
            "$defs": {"name": {"type": ["string", "null"], "title": "Name"}},
        }));
        let FieldKind::Object(fields) = form.kind else { panic!() };
        assert_eq!((fields[0].name.as_str(), fields[0].is_required), ("b", true));
        assert_eq!((fields[0].title.as_deref(), fields[0].is_nullable), (Some("Name"), true));
        assert_eq!(fields[1].default, Some(json!(3)));
        assert_eq!(fields[1].description.as_deref(), Some("A number."));
    }

    #[test]
    fn schemas_that_contain_themselves_and_large_ones_end_in_json() {
        let form = FormField::of(&json!({
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#"}}},
        }));
        let text = format!("{form:?}");
        assert!(text.contains("Json") && text.len() < 4000, "{text}");
        let many: Map<_, _> =
            (0..1000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        let form = FormField::of(&json!({"type": "object", "properties": many}));
        let FieldKind::Object(fields) = form.kind else { panic!() };
        assert_eq!(fields.iter().filter(|field| field.kind == FieldKind::Json).count(), 701);
    }
}
