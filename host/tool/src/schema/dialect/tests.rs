//! Converts the schemas of `tests/dialects` to every dialect. `BLESS=1` rewrites the expected
//! forms.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::{Dialect, DialectSchema};
use crate::InputSchema;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialects")
}

fn corpus() -> BTreeMap<String, InputSchema> {
    let names = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned));
    let names = names.filter(|name| !name.ends_with(".expected"));
    let compile = |name: String| {
        let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        let schema = InputSchema::compile(&name, &text).unwrap();
        (name, schema)
    };
    names.map(compile).collect()
}

fn shown(declared: Value, dialect: Dialect) -> DialectSchema {
    InputSchema::compile("t", &declared.to_string()).unwrap().in_dialect(dialect)
}

fn parameter(declared: Value, dialect: Dialect) -> Value {
    let declared = json!({"properties": {"p": declared}, "required": ["p"]});
    let shown = shown(declared, dialect);
    assert!(shown.strict || !dialect.has_strict_mode(), "{:?}", shown.losses);
    shown.schema["properties"]["p"].clone()
}

/// Returns the faults of a schema in a dialect, by rules that are restated here independently.
pub(super) fn faults(shown: &DialectSchema, dialect: Dialect) -> Vec<String> {
    let mut checker =
        Checker { dialect, strict: shown.strict, root: &shown.schema, faults: vec![] };
    checker.root();
    checker.faults
}

struct Checker<'c> {
    dialect: Dialect,
    strict: bool,
    root: &'c Value,
    faults: Vec<String>,
}

impl Checker<'_> {
    fn fault(&mut self, at: &str, text: &str) {
        self.faults.push(format!("{at}: {text}"));
    }

    fn root(&mut self) {
        let root = self.root;
        if root["type"] != "object" || !root["properties"].is_object() {
            self.fault("", "the top level is not an object schema");
        }
        if self.dialect == Dialect::Mcp {
            return;
        }
        for keyword in ["oneOf", "anyOf", "allOf", "not", "if", "enum", "const", "$ref"] {
            if root.get(keyword).is_some() {
                self.fault("", &format!("`{keyword}` at the top level"));
            }
        }
        self.schema(root, "");
    }

    fn schema(&mut self, schema: &Value, at: &str) {
        let Some(schema) = schema.as_object() else {
            if self.strict
                || (self.dialect == Dialect::Portable && !at.ends_with("/additionalProperties"))
            {
                self.fault(at, "a schema that is true or false");
            }
            return;
        };
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            if target.is_none() {
                self.fault(at, &format!("`{reference}` leads nowhere"));
            }
            if schema.len() > 1
                && self.dialect != Dialect::OpenAi
                && (self.strict || self.dialect == Dialect::Portable)
            {
                self.fault(at, "something stands beside `$ref`");
            }
            if self.strict && self.dialect == Dialect::Anthropic && reference == "#" {
                self.fault(at, "recursion");
            }
        }
        if self.dialect == Dialect::Portable {
            if let Some(format) = schema.get("format").and_then(Value::as_str)
                && !super::rules::JSON_SCHEMA_FORMATS.contains(&format)
            {
                self.fault(at, &format!("`{format}` is not a format of JSON Schema"));
            }
            for keyword in [
                "prefixItems",
                "dependentRequired",
                "dependentSchemas",
                "unevaluatedProperties",
                "$anchor",
                "minContains",
            ] {
                if schema.contains_key(keyword) {
                    self.fault(at, &format!("`{keyword}` is not in draft-07"));
                }
            }
        }
        if self.strict {
            self.strict(schema, at);
        }
        self.below(schema, at);
    }

    fn strict(&mut self, schema: &Map<String, Value>, at: &str) {
        for keyword in [
            "allOf",
            "oneOf",
            "not",
            "if",
            "then",
            "else",
            "dependentRequired",
            "dependentSchemas",
            "patternProperties",
            "minLength",
            "maxLength",
            "uniqueItems",
            "contains",
            "default",
            "prefixItems",
            "propertyNames",
            "minProperties",
            "maxProperties",
            "examples",
            "$anchor",
        ] {
            if schema.contains_key(keyword) {
                self.fault(at, &format!("`{keyword}` is not known"));
            }
        }
        if self.dialect == Dialect::Anthropic {
            for keyword in
                ["pattern", "minimum", "maximum", "multipleOf", "maxItems", "exclusiveMinimum"]
            {
                if schema.contains_key(keyword) {
                    self.fault(at, &format!("`{keyword}` is not known"));
                }
            }
        }
        if !["type", "anyOf", "$ref"].into_iter().any(|name| schema.contains_key(name)) {
            self.fault(at, "no type");
        }
        let types = match &schema.get("type") {
            Some(Value::Array(names)) => names.clone(),
            Some(name) => vec![(*name).clone()],
            None => vec![],
        };
        if types.contains(&json!("object")) {
            self.strict_object(schema, at);
        }
        if types.contains(&json!("array")) && !schema.get("items").is_some_and(Value::is_object) {
            self.fault(at, "no items");
        }
    }

    fn strict_object(&mut self, schema: &Map<String, Value>, at: &str) {
        if schema.get("additionalProperties") != Some(&json!(false)) {
            self.fault(at, "an object that is not closed");
        }
        let names: Vec<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        let required = schema.get("required").cloned().unwrap_or_else(|| json!([]));
        if self.dialect == Dialect::OpenAiStrict && required != json!(names) {
            self.fault(at, "not every property is required");
        }
        for name in required.as_array().unwrap() {
            if !names.iter().any(|known| known == name) {
                self.fault(at, "an undeclared property is required");
            }
        }
    }

    fn below(&mut self, schema: &Map<String, Value>, at: &str) {
        for (keyword, value) in schema {
            match keyword.as_str() {
                "properties" | "patternProperties" | "$defs" | "dependentSchemas" => {
                    for (name, child) in value.as_object().unwrap() {
                        self.schema(child, &format!("{at}/{keyword}/{name}"));
                    }
                }
                "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                    for (index, child) in value.as_array().unwrap().iter().enumerate() {
                        self.schema(child, &format!("{at}/{keyword}/{index}"));
                    }
                }
                "items"
                | "additionalProperties"
                | "contains"
                | "not"
                | "if"
                | "then"
                | "else"
                | "propertyNames" => {
                    let is_flag = keyword == "additionalProperties" && value.is_boolean();
                    if !is_flag {
                        self.schema(value, &format!("{at}/{keyword}"));
                    }
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_portable_schema_has_bounds_instead_of_formats_of_numbers() {
    let form = |declared: Value| parameter(declared, Dialect::Portable);
    let integer = |format: &str| form(json!({"type": "integer", "format": format}));
    assert_eq!(integer("uint8"), json!({"type": "integer", "minimum": 0, "maximum": 255}));
    assert_eq!(integer("int16"), json!({"type": "integer", "minimum": -32768, "maximum": 32767}));
    assert_eq!(
        integer("uint32"),
        json!({"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u32})
    );
    assert_eq!(integer("uint64"), json!({"type": "integer", "minimum": 0}));
    assert_eq!(integer("int64"), json!({"type": "integer"}));
    assert_eq!(integer("uint"), json!({"type": "integer"}));
    let color = form(json!({"type": "string", "format": "color"}));
    assert_eq!(color, json!({"type": "string", "description": "Format: color."}));
    assert_eq!(form(json!({"type": "number", "format": "double"})), json!({"type": "number"}));
    let declared = json!({"type": "integer", "maximum": 9, "format": "uint8"});
    assert_eq!(form(declared), json!({"type": "integer", "maximum": 9, "minimum": 0}));
    let date = json!({"type": "string", "format": "date-time"});
    assert_eq!(form(date.clone()), date);
    let header = json!({"type": "string", "contentEncoding": "base64", "x-mcp-header": "Region"});
    assert_eq!(form(header.clone()), header, "what MCP reads stays");
}

#[test]
fn a_portable_tool_without_parameters_is_closed() {
    let none = json!({"type": "object", "properties": {}, "additionalProperties": false});
    for declared in [json!({}), json!({"type": "object", "properties": {}}), none.clone()] {
        assert_eq!(shown(declared.clone(), Dialect::Portable).schema, none, "{declared}");
    }
    let open = json!({"type": "object", "properties": {}, "additionalProperties": true});
    assert_eq!(shown(open.clone(), Dialect::Portable).schema, open);
    // A forwarded schema may be called with arguments that a remote server's schema does not name.
    let forwarded = InputSchema::forwarded(json!({"type": "object", "properties": {}}));
    let forwarded = forwarded.in_dialect(Dialect::Portable).schema;
    assert_eq!(forwarded, json!({"type": "object", "properties": {}}));
}

#[test]
fn a_portable_output_schema_takes_what_the_exact_one_takes() {
    let pair = json!([{"type": "integer", "format": "uint32"}, {"type": "string"}]);
    let declared = json!({"type": "object", "properties": {"pair": {
        "type": "array", "minItems": 2, "maxItems": 2, "prefixItems": pair
    }}});
    let schema = crate::OutputSchema::compile("t", &declared.to_string()).unwrap();
    let portable = schema.in_dialect(Dialect::Portable).schema;
    let items = &portable["properties"]["pair"]["items"]["anyOf"];
    assert_eq!(
        items,
        &json!([{"type": "integer", "minimum": 0, "maximum": u32::MAX}, {"type": "string"}])
    );
    assert!(portable.get("additionalProperties").is_none(), "{portable}");
    assert_eq!(schema.in_dialect(Dialect::Mcp).schema, declared);
}

#[test]
fn every_schema_in_every_dialect_is_as_expected() {
    let bless = std::env::var_os("BLESS").is_some();
    let corpus = corpus();
    assert!(corpus.len() >= 20, "only {} schemas", corpus.len());
    for (name, schema) in corpus {
        let mut forms = Map::new();
        for dialect in Dialect::ALL.into_iter().filter(|dialect| *dialect != Dialect::Mcp) {
            let shown = schema.in_dialect(dialect);
            let losses: Vec<_> = shown.losses.iter().map(ToString::to_string).collect();
            let form = json!({"strict": shown.strict, "losses": losses, "schema": shown.schema});
            forms.insert(dialect.name().to_owned(), form);
        }
        let path = folder().join(format!("{name}.expected.json"));
        let text = format!("{}\n", serde_json::to_string_pretty(&forms).unwrap());
        if bless {
            std::fs::write(&path, &text).unwrap();
        }
        let expected = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(expected == text, "{name} has changed: BLESS=1 writes it anew\n{text}");
    }
}

#[test]
fn every_schema_keeps_the_rules_of_its_dialect() {
    for (name, schema) in corpus() {
        for dialect in Dialect::ALL {
            let shown = schema.in_dialect(dialect);
            assert_eq!(
                faults(&shown, dialect),
                Vec::<String>::new(),
                "{name} in {dialect}: {:#}",
                shown.schema
            );
            assert!(jsonschema::draft202012::meta::is_valid(&shown.schema), "{name} in {dialect}");
            if dialect == Dialect::Portable {
                assert!(jsonschema::draft7::meta::is_valid(&shown.schema), "{name} in {dialect}");
            }
        }
    }
}

#[test]
fn mcp_is_what_is_published() {
    for (_, schema) in corpus() {
        let shown = schema.in_dialect(Dialect::Mcp);
        assert_eq!((&shown.schema, shown.losses.len()), (schema.published(), 0));
    }
}

#[test]
fn a_dialect_has_one_name() {
    for dialect in Dialect::ALL {
        assert_eq!(dialect.name().parse(), Ok(dialect));
    }
    assert_eq!(
        "gemini".parse::<Dialect>().unwrap_err().to_string(),
        "there is no dialect `gemini`; known are mcp, portable, openai-strict, openai, anthropic"
    );
}

#[test]
fn what_may_be_left_out_accepts_null() {
    let declared = json!({"properties": {
        "s": {"type": "string"}, "e": {"enum": ["a"]}, "c": {"const": 1}, "r": {"$ref": "#/$defs/r"},
        "a": {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    }, "$defs": {"r": {"type": "boolean"}}});
    let shown = shown(declared, Dialect::OpenAiStrict);
    let expected = json!({
        "s": {"type": ["string", "null"]},
        "e": {"enum": ["a", null], "type": ["string", "null"]},
        "c": {"type": ["integer", "null"], "enum": [1, null]},
        "r": {"anyOf": [{"$ref": "#/$defs/r"}, {"type": "null"}]},
        "a": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}
    });
    assert_eq!(shown.schema["properties"], expected);
    assert_eq!(shown.schema["required"], json!(["s", "e", "c", "r", "a"]));
}

#[test]
fn what_a_dialect_lacks_is_said_in_plain_words() {
    let text = json!({"type": "string", "minLength": 1, "maxLength": 8, "default": "x", "description": "A name"});
    let described = "A name. At least 1 character. At most 8 characters. Default: \"x\".";
    assert_eq!(parameter(text, Dialect::Anthropic)["description"], described);
    let list =
        json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true, "minItems": 2});
    assert_eq!(parameter(list.clone(), Dialect::OpenAiStrict)["description"], "No item twice.");
    assert_eq!(
        parameter(list, Dialect::Anthropic)["description"],
        "No item twice. At least 2 items."
    );
    let number = json!({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5});
    assert_eq!(
        parameter(number, Dialect::Anthropic)["description"],
        "Greater than 0. A multiple of 0.5."
    );
    let long = json!({"type": "string", "pattern": "a".repeat(300)});
    let too_long = "Matches a regular expression that is too long to show.";
    assert_eq!(parameter(long, Dialect::Anthropic)["description"], too_long);
}

#[test]
fn what_strict_mode_cannot_say_is_shown_without_it() {
    let cases = [
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "an object with keys of the model's choice",
        ),
        (json!({"type": "object"}), "an object with keys of the model's choice"),
        (json!({}), "a value of any type"),
        (json!({"type": "array"}), "an array of anything"),
        (json!({"type": "string", "enum": ["a"], "not": {"const": "b"}}), ""),
    ];
    for (declared, reason) in cases {
        for dialect in [Dialect::OpenAiStrict, Dialect::Anthropic] {
            let shown = shown(json!({"properties": {"p": declared}}), dialect);
            assert_eq!(shown.strict, reason.is_empty(), "{declared}");
            if !shown.strict {
                assert_eq!(
                    shown.losses[0].to_string(),
                    format!("`/properties/p`: strict mode is off: {reason}")
                );
                assert_eq!(shown.schema["properties"]["p"], declared);
            }
        }
    }
}

#[test]
fn keywords_beside_a_reference_or_alternatives_are_preserved() {
    let definitions = json!({"o": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, "q": {"type": "object", "properties": {"b": {"type": "integer"}}}});
    let shown_of = |parameter: Value| {
        let declared =
            json!({"properties": {"p": parameter}, "required": ["p"], "$defs": definitions});
        shown(declared, Dialect::OpenAiStrict)
    };
    let both = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}}, "required": ["a", "b"], "additionalProperties": false});
    let joined = shown_of(json!({"$ref": "#/$defs/o", "allOf": [{"$ref": "#/$defs/q"}]}));
    assert_eq!(joined.schema["properties"]["p"], both);
    assert_eq!(
        shown_of(json!({"allOf": [{"$ref": "#/$defs/o"}, {"$ref": "#/$defs/q"}]})).schema["properties"]
            ["p"],
        both
    );
    let alternatives = shown_of(json!({"$ref": "#/$defs/o", "anyOf": [{"$ref": "#/$defs/q"}]}));
    assert_eq!(
        alternatives.losses[0].to_string(),
        "`/properties/p`: strict mode is off: alternatives beside `properties`"
    );
    let mixed = json!({"anyOf": [{"type": "string", "enum": ["auto"]}, {"type": "integer", "enum": [0, 1]}]});
    assert_eq!(parameter(json!({"enum": ["auto", 0, 1]}), Dialect::OpenAiStrict), mixed);
}

/// Thirty definitions that each refer twice to the next are rejected at load. A schema just small
/// enough to load still becomes huge when each copy has a long list.
#[test]
fn copies_have_a_budget() {
    let members: Vec<_> = (0..2000).map(|n| format!("member {n}")).collect();
    let references: Map<_, _> =
        (0..300).map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/big"}))).collect();
    let declared = json!({"properties": references, "$defs": {"big": {"enum": members}}});
    for dialect in Dialect::ALL {
        let shown = shown(declared.clone(), dialect);
        assert!(shown.schema.to_string().len() < 100_000, "{dialect}");
        assert_eq!(faults(&shown, dialect), Vec::<String>::new());
        assert!(shown.schema.to_string().contains("$ref"), "{dialect}");
    }
}

#[test]
fn a_long_chain_of_definitions_is_not_copied_into_depth() {
    let mut definitions = Map::new();
    for n in 0..800 {
        let next = format!("#/$defs/d{}", n + 1);
        definitions.insert(format!("d{n}"), json!({"properties": {"x": {"$ref": next}}}));
    }
    definitions.insert("d800".to_owned(), json!({"type": "string"}));
    let declared = json!({"properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    for dialect in Dialect::ALL {
        let shown = shown(declared.clone(), dialect);
        assert!(crate::json::value_levels(&shown.schema) < 100, "{dialect}");
        assert_eq!(faults(&shown, dialect), Vec::<String>::new());
    }
}

#[test]
fn a_top_level_of_a_thousand_large_alternatives_is_not_merged() {
    let big: Map<_, _> =
        (0..500).map(|n| (format!("property_{n}"), json!({"type": "string"}))).collect();
    let branches: Vec<_> = (0..900).map(|_| json!({"$ref": "#/$defs/big"})).collect();
    let declared =
        json!({"type": "object", "anyOf": branches, "$defs": {"big": {"properties": big}}});
    // More nodes than a declaration may have: the first line of defense.
    assert!(InputSchema::compile("t", &declared.to_string()).is_err());
    let branches: Vec<_> = (0..19).map(|_| json!({"$ref": "#/$defs/big"})).collect();
    let big: Map<_, _> = (0..500)
        .map(|n| {
            (format!("property_{n}"), json!({"type": "string", "description": "d".repeat(60)}))
        })
        .collect();
    let declared =
        json!({"type": "object", "anyOf": branches, "$defs": {"big": {"properties": big}}});
    for dialect in Dialect::ALL {
        let shown = shown(declared.clone(), dialect);
        assert!(shown.schema.to_string().len() < 131_072, "{dialect}");
    }
}
