use serde_json::{Value, json};

use super::*;

/// Returns the reason why a declaration is rejected, without the surrounding sentence.
fn refused(declared: &str) -> String {
    let text = InputSchema::compile("t", declared).map(|_| ()).unwrap_err().to_string();
    text.strip_prefix("Tool 't': invalid declaration at ").unwrap().trim_end_matches('.').to_owned()
}

/// Returns the reason why a declaration with one parameter is rejected.
fn parameter(schema: Value) -> String {
    refused(&json!({"type": "object", "properties": {"p": schema}}).to_string())
}

fn published(declared: Value) -> Value {
    InputSchema::compile("t", &declared.to_string()).unwrap().published().clone()
}

#[test]
fn a_forwarded_schema_takes_any_object_unchanged() {
    let declared = json!({"properties": {"a": {"type": "integer", "default": 1}}, "required": ["b"], "pattern": "("});
    let schema = InputSchema::forwarded(declared.clone());
    assert_eq!(schema.published(), &declared);
    let decode = |text: &str| schema.decode("t", Some(text.as_bytes()), &DecodeOptions::default());
    let taken = decode(r#"{"z":1.0,"a":"7","n":null}"#).unwrap();
    assert_eq!(
        (taken.to_json().as_str(), taken.dropped().len()),
        (r#"{"z":1.0,"a":"7","n":null}"#, 0)
    );
    assert_eq!(decode("").unwrap().to_json(), "{}");
    assert_eq!(decode("null").unwrap().to_json(), "{}");
    for refused in ["[]", "{", "7", r#"{"a":1e999}"#, &"[".repeat(200)] {
        assert!(decode(refused).is_err(), "{refused}");
    }
    let small = DecodeOptions { text_bytes_max: 3, ..DecodeOptions::default() };
    assert!(schema.decode("t", Some(br#"{"a":1}"#), &small).is_err());
}

#[test]
fn a_schema_that_was_never_compiled_can_be_written_in_every_dialect() {
    let deep = (0..60).fold(json!({}), |inner, _| json!({"anyOf": [inner, {"$ref": "#"}]}));
    for hostile in [
        json!({}),
        json!({"$ref": "#"}),
        json!({"$ref": "https://example.com/schema"}),
        json!({"$ref": "#/properties/none", "properties": {"a": {"$ref": "#/properties/a"}}}),
        json!({"properties": [], "required": 7, "type": ["object", 1], "enum": {}, "items": 7}),
        json!({"properties": {"a": 7, "b": null, "c": {"allOf": 1, "$defs": []}}, "anyOf": [1, null]}),
        json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}),
        deep,
    ] {
        let schema = InputSchema::forwarded(hostile);
        for dialect in [
            Dialect::Mcp,
            Dialect::Portable,
            Dialect::OpenAiStrict,
            Dialect::OpenAi,
            Dialect::Anthropic,
        ] {
            assert!(
                schema.in_dialect(dialect).schema.is_object(),
                "{dialect:?}: {}",
                schema.published()
            );
        }
    }
}

#[test]
fn the_top_level_is_an_object_schema() {
    for other in
        ["true", "false", r#"{"type":"array"}"#, r#"{"type":["object","null"]}"#, r#"{"items":{}}"#]
    {
        assert_eq!(refused(other), "'': the top level must be an object schema", "{other}");
    }
    assert_eq!(refused("[]"), "'': the value must be a schema");
    assert_eq!(refused("{"), "'': the text is not JSON, see byte 1");
    let empty = json!({"type": "object", "properties": {}});
    for declared in [json!({}), json!({"type": "object"}), json!({"type": ["object"]})] {
        assert_eq!(published(declared), empty);
    }
    let by_reference =
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"x": {}}}}});
    assert_eq!(published(by_reference)["type"], "object");
    assert!(refused(r##"{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}"##).starts_with("''"));
}

#[test]
fn each_reason_names_its_pointer() {
    let cases = [
        (json!({"type": "thing"}), "/type': there is no type 'thing'"),
        (json!({"type": ["string", "string"]}), "/type': 'string' is listed twice"),
        (
            json!({"type": []}),
            "/type': the value must be a string or a list of strings that is not empty",
        ),
        (json!({"enum": []}), "/enum': there must be at least one member"),
        (json!({"enum": [1, 1.0]}), "/enum/1': the members must differ"),
        (
            json!({"type": "integer", "enum": [1, "a"]}),
            "/enum/1': the schema's own `type` rejects the member \"a\"",
        ),
        (json!({"minimum": 2, "maximum": 1}), "/minimum': the lower bound is above `maximum`"),
        (
            json!({"exclusiveMinimum": 2, "maximum": 1}),
            "/exclusiveMinimum': the lower bound is above `maximum`",
        ),
        (
            json!({"minContains": 2, "maxContains": 1}),
            "/minContains': the lower bound is above `maxContains`",
        ),
        (
            json!({"minProperties": 2, "maxProperties": 1}),
            "/minProperties': the lower bound is above `maxProperties`",
        ),
        (json!({"multipleOf": 0}), "/multipleOf': the value must be greater than 0"),
        (
            json!({"minLength": -1}),
            "/minLength': the value must be a whole number that is not negative",
        ),
        (json!({"minimum": "1"}), "/minimum': the value must be a finite number"),
        (json!({"items": [{}]}), "/items': the value must be a schema"),
        (json!({"anyOf": []}), "/anyOf': the value must be a list of schemas that is not empty"),
        (json!({"properties": {"a": 1}}), "/properties': the value must be an object of schemas"),
        (json!({"required": ["x"]}), "/required/0': 'x' is not a declared property"),
        (
            json!({"properties": {"x": {}}, "required": ["x", "x"]}),
            "/required/1': 'x' is listed twice",
        ),
        (
            json!({"$ref": "https://example.com/x"}),
            "/$ref': references to other documents are not followed",
        ),
        (
            json!({"$ref": "other.json#/a"}),
            "/$ref': references to other documents are not followed",
        ),
        (json!({"$ref": "#/$defs/x"}), "/$ref': there is nothing at '#/$defs/x'"),
        (
            json!({"$ref": "#/properties/p/anyOf/00", "anyOf": [true]}),
            "/$ref': there is nothing at '#/properties/p/anyOf/00'",
        ),
        (
            json!({"$ref": "#/properties/p/anyOf/+0", "anyOf": [true]}),
            "/$ref': there is nothing at '#/properties/p/anyOf/+0'",
        ),
        (json!({"$ref": "#nowhere"}), "/$ref': there is nothing at '#nowhere'"),
        (json!({"$ref": "#/properties/p"}), "/$ref': the references form a cycle"),
        (
            json!({"allOf": [{"$ref": "#/properties/p"}]}),
            "/allOf/0/$ref': the references form a cycle",
        ),
        (json!({"$dynamicRef": "#x"}), "/$dynamicRef': the keyword is not supported"),
        (json!({"$id": "x"}), "/$id': `$id` is supported at the top level only"),
        (
            json!({"pattern": "(?=a)"}),
            "/pattern': the pattern is not supported: look-around, including look-ahead and \
             look-behind, is not supported",
        ),
        (
            json!({"patternProperties": {"(": {}}}),
            "/patternProperties/(': the pattern is not supported: unclosed group",
        ),
        (
            json!({"properties": {"a/b~c": {"type": "x"}}}),
            "/properties/a~1b~0c/type': there is no type 'x'",
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(parameter(schema.clone()), format!("'/properties/p{expected}"), "{schema}");
    }
    assert_eq!(
        refused(r#"{"properties":{"":{}}}"#),
        "'/properties/': a parameter name must not be empty"
    );
    assert_eq!(
        refused(r#"{"properties":{"a":{},"a":{}}}"#),
        "'/properties/a': the key 'a' occurs twice"
    );
    assert_eq!(
        refused(r#"{"x":{"examples":[{"k":1,"k":2}]}}"#),
        "'/x/examples/0/k': the key 'k' occurs twice"
    );
    assert_eq!(refused(r#"{"x":1e999}"#), "'/x': the number is out of range");
}

#[test]
fn what_looks_like_a_keyword_but_is_a_name_is_no_keyword() {
    let odd = json!({"properties": {"$ref": {"type": "integer"}, "type": {}, "$id": {}, "default": {"default": 3}}});
    assert_eq!(published(odd.clone())["properties"], odd["properties"]);
    let data = json!({"properties": {"p": {"enum": [{"$ref": "nowhere", "type": "x"}], "examples": [{"enum": []}]}}});
    published(data);
}

#[test]
fn defaults_must_decode_without_tolerance() {
    for (schema, problem) in [
        (
            json!({"type": "integer", "default": "1"}),
            "Argument '' must be an integer, got a string",
        ),
        (json!({"type": "integer", "default": null}), "Argument '' must be an integer, got null"),
        (json!({"type": "string", "default": 1}), "Argument '' must be a string, got a number"),
        (json!({"enum": ["a"], "default": "A"}), "Argument '' must be one of \"a\""),
        (
            json!({"type": "string", "format": "date-time", "default": "2026-01-01"}),
            "Argument '' must be a date-time, got a string",
        ),
        (
            json!({"type": "array", "items": {"minimum": 1}, "default": [0]}),
            "Argument '[0]' violates 'minimum'",
        ),
    ] {
        let expected = format!(
            "'/properties/p/default': the default does not decode by its own schema: {problem}"
        );
        assert_eq!(parameter(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn a_default_beside_narrower_keywords_is_checked_by_both() {
    let declared = r##"{"properties":{"p":{"$ref":"#/$defs/n","maximum":2}},"$defs":{"n":{"type":"integer","default":3}}}"##;
    assert!(refused(declared).starts_with("'/properties/p/$ref': the default does not decode"));
}

#[test]
fn a_default_that_contains_itself_is_refused() {
    let node =
        json!({"type": "object", "properties": {"child": {"$ref": "#/$defs/n", "default": {}}}});
    let declared = json!({"properties": {"p": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}});
    assert!(
        refused(&declared.to_string()).ends_with("its defaults take too much work to complete")
    );
}

#[test]
fn defaults_that_multiply_are_refused() {
    let mut definitions = serde_json::Map::new();
    for level in 0..6 {
        let next = json!({"type": "object", "properties": {"x": {"$ref": format!("#/$defs/d{}", level + 1)}}, "default": {}});
        let list = json!({"type": "array", "items": next, "default": vec![json!({}); 100]});
        definitions.insert(format!("d{level}"), list);
    }
    definitions.insert("d6".to_owned(), json!({"type": "integer", "default": 1}));
    let declared = json!({"properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    assert!(
        refused(&declared.to_string()).ends_with("its defaults take too much work to complete")
    );
}

#[test]
fn extent_is_limited_before_anything_else() {
    let long = format!("{{\"x\":\"{}\"}}", "a".repeat(65_536));
    assert_eq!(refused(&long), "'': the schema is longer than 65536 bytes");
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(64), "]".repeat(64));
    assert_eq!(refused(&deep), "'': the schema is nested deeper than 64 levels");
    let fits = format!("{{\"x\":{}{}}}", "[".repeat(63), "]".repeat(63));
    assert!(InputSchema::compile("t", &fits).is_ok());
    let mut definitions = serde_json::Map::new();
    for level in 0..30 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        definitions.insert(format!("d{level}"), json!({"items": {"anyOf": [next.clone(), next]}}));
    }
    definitions.insert("d30".to_owned(), json!({}));
    let declared = json!({"properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    assert_eq!(
        refused(&declared.to_string()),
        "'': the schema has more than 10000 nodes when every `$ref` is followed"
    );
}

#[test]
fn long_chains_of_references_neither_overflow_nor_pass() {
    let chain = |length: usize, link: fn(String) -> Value| {
        let links = (0..length).map(|n| (format!("d{n}"), link(format!("#/$defs/d{}", n + 1))));
        let mut definitions: serde_json::Map<String, Value> = links.collect();
        definitions.insert(format!("d{length}"), json!({}));
        json!({"properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": definitions}).to_string()
    };
    let direct = |to| json!({"$ref": to});
    assert!(refused(&chain(1200, direct)).ends_with("more than 32 schemas apply to one value"));
    assert!(refused(&chain(40, direct)).ends_with("more than 32 schemas apply to one value"));
    assert!(InputSchema::compile("t", &chain(20, direct)).is_ok());
    assert!(InputSchema::compile("t", &chain(120, |to| json!({"items": {"$ref": to}}))).is_ok());
    assert!(InputSchema::compile("t", &chain(1200, |to| json!({"items": {"$ref": to}}))).is_ok());
}

#[test]
fn references_find_pointers_anchors_and_the_own_id() {
    let declared = json!({
        "$id": "https://example.com/s", "$schema": "https://json-schema.org/draft/2020-12/schema",
        "properties": {
            "a": {"$ref": "#/$defs/a~1b%25"}, "b": {"$ref": "#here"}, "c": {"$ref": "https://example.com/s#/$defs/c"},
            "d": {"$ref": "#/x-types/0"}, "e": {"$ref": "#/properties/a"}
        },
        "required": ["a", "b", "c", "d", "e"],
        "$defs": {"a/b%": {"type": "integer"}, "b": {"$anchor": "here", "type": "integer"}, "c": {"type": "integer"}},
        "x-types": [{"type": "integer"}]
    });
    let schema = InputSchema::compile("t", &declared.to_string()).unwrap();
    let text = br#"{"a":"1","b":"2","c":"3","d":"4","e":"5"}"#;
    let decoded = schema.decode("t", Some(text), &DecodeOptions::default()).unwrap();
    assert_eq!(decoded.into_value(), json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}));
}

#[test]
fn required_may_be_declared_by_another_schema_of_the_same_object() {
    let declared = json!({
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}]
    });
    let expected = json!({
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}},
        "anyOf": [{"required": ["a"]}, {}]
    });
    assert_eq!(published(declared), expected);
    assert_eq!(
        parameter(json!({"anyOf": [{"required": ["a"]}]})),
        "'/properties/p/anyOf/0/required/0': 'a' is not a declared property"
    );
}

#[test]
fn required_is_published_in_the_order_of_properties_and_noted() {
    let declared = json!({
        "properties": {"a": {}, "b": {"type": "integer"}, "c": {"default": 1}, "d": {"type": "string"}},
        "required": ["d", "c", "b", "a"]
    });
    let schema = InputSchema::compile("t", &declared.to_string()).unwrap();
    assert_eq!(schema.published()["required"], json!(["b", "d"]));
    let notes: Vec<String> = schema.notes().iter().map(ToString::to_string).collect();
    assert_eq!(
        notes,
        [
            "'c' in `/required` has a default and is published as not required",
            "'a' in `/required` accepts null and is published as not required"
        ]
    );
}

#[test]
fn results_are_validated_by_json_schema_alone() {
    let schema = |declared: Value| OutputSchema::compile("t", &declared.to_string()).unwrap();
    let one_of = schema(json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}));
    assert_eq!(one_of.validate(&json!(1)).unwrap_err(), "'' violates 'oneOf'");
    assert!(one_of.validate(&json!(1.5)).is_ok());
    let null = schema(json!({"type": ["string", "null"], "enum": ["a"]}));
    assert_eq!(null.validate(&json!(null)).unwrap_err(), "'' violates 'enum'");
    let nested =
        schema(json!({"properties": {"a": {"items": {"type": "string"}}}, "required": ["b"]}));
    assert_eq!(
        nested.validate(&json!({"a": [1, "x"]})).unwrap_err(),
        "'a[0]' violates 'type', 'b' violates 'required'"
    );
    assert!(schema(json!(true)).validate(&json!([])).is_ok());
    let closed = schema(json!({"properties": {"a": {}}, "unevaluatedProperties": false}));
    assert_eq!(
        closed.validate(&json!({"a": 1, "b": 2})).unwrap_err(),
        "'' violates 'unevaluatedProperties'"
    );
}
