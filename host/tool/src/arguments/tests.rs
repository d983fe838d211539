use serde_json::{Value, json};

use crate::arguments::ProblemCode;
use crate::{DecodeOptions, InputSchema};

fn schema(declared: Value) -> InputSchema {
    InputSchema::compile("t", &declared.to_string()).unwrap()
}

/// Decodes JSON and shows the result: the arguments, or the problems.
fn decode(declared: Value, text: &str) -> String {
    shown(&schema(declared), text, &DecodeOptions::default())
}

fn shown(schema: &InputSchema, text: &str, options: &DecodeOptions) -> String {
    match schema.decode("t", Some(text.as_bytes()), options) {
        Ok(arguments) if arguments.dropped().is_empty() => arguments.to_json(),
        Ok(arguments) => {
            format!("{} dropped {}", arguments.to_json(), arguments.dropped().join(" "))
        }
        Err(error) => error.to_string(),
    }
}

/// Decodes one parameter and shows its value or its problems.
fn parameter(declared: Value, text: &str) -> String {
    let text = decode(json!({"properties": {"p": declared}}), &format!("{{\"p\":{text}}}"));
    text.strip_prefix("{\"p\":").and_then(|text| text.strip_suffix('}')).unwrap_or(&text).to_owned()
}

fn check_parameter(declared: Value, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(parameter(declared.clone(), text), *expected, "{declared} given {text}");
    }
}

#[test]
fn default_options_are_pinned() {
    assert_eq!(
        DecodeOptions::default(),
        DecodeOptions { strict: false, text_bytes_max: 1_048_576 }
    );
}

#[test]
fn integers() {
    let kind = |found| format!("Argument 'p' must be an integer, got {found}.");
    let (string, number) = (kind("a string"), kind("a number"));
    check_parameter(
        json!({"type": "integer"}),
        &[
            ("-0", "0"),
            ("\" +007\\t\"", "7"),
            ("18446744073709551615", "18446744073709551615"),
            ("\"18446744073709551616\"", "Argument 'p' is out of range for an integer."),
            ("18446744073709551616", "Argument 'p' is out of range for an integer."),
            ("-9223372036854775809", "Argument 'p' is out of range for an integer."),
            ("-9223372036854775808", "-9223372036854775808"),
            ("5.0", &number),
            ("1e2", &number),
            ("\"0x10\"", &string),
            ("\"\"", &string),
            ("\"+\"", &string),
            ("\"- 5\"", &string),
            ("\"\u{a0}5\"", &string),
        ],
    );
    check_parameter(
        json!({"type": "integer", "format": "int8", "minimum": 0}),
        &[
            ("128", "Argument 'p' is out of range for an integer."),
            ("-1", "Argument 'p' violates 'minimum'."),
            ("127", "127"),
        ],
    );
}

#[test]
fn numbers() {
    let kind = "Argument 'p' must be a number, got a string.";
    let range = "Argument 'p' is out of range for a number.";
    check_parameter(
        json!({"type": "number"}),
        &[
            ("\".5\"", "0.5"),
            ("\"5.\"", "5.0"),
            ("\"+1e2\"", "100.0"),
            ("5", "5"),
            ("5.0", "5.0"),
            ("-0", "-0.0"),
            ("18446744073709551616", "1.8446744073709552e+19"),
            ("\"-INFINITY\"", range),
            ("\"nan\"", range),
            ("\"inf\"", kind),
            ("\"+Infinity\"", kind),
            ("\".\"", kind),
            ("\"1e\"", kind),
            ("\"1_000\"", kind),
            ("\"0x1p3\"", kind),
        ],
    );
    check_parameter(
        json!({"type": "number", "format": "float"}),
        &[("1e39", range), ("\"1e38\"", "1e+38")],
    );
}

#[test]
fn dates_and_times() {
    let kind = "Argument 'p' must be a date-time, got a string.";
    check_parameter(
        json!({"type": "string", "format": "date-time"}),
        &[
            ("\"2024-02-29T00:00\"", "\"2024-02-29T00:00:00Z\""),
            ("\"2024-02-29T23:59+05:30\"", "\"2024-02-29T23:59:00+05:30\""),
            ("\"2000-02-29\"", "\"2000-02-29T00:00:00Z\""),
            ("\"2026-05-05T18:30:00.123456789-00:00\"", "\"2026-05-05T18:30:00.123456789-00:00\""),
            ("\"1900-02-29\"", kind),
            ("\"2025-02-29\"", kind),
            ("\"2026-05-05t18:30:00Z\"", kind),
            ("\"2026-05-05T18:30:00z\"", kind),
            ("\"2026-05-05 18:30:00Z\"", kind),
            ("\"2026-05-05T18:30:00.Z\"", kind),
            ("\"2026-05-05T18:30.5Z\"", kind),
            ("\"2026-05-05T18:30:00+24:00\"", kind),
            ("\"2026-05-05T18:30:00+0500\"", kind),
            ("\"2026-05-05T\"", kind),
            ("\" 2026-05-05\"", kind),
            ("\"２026-05-05\"", kind),
            ("1", "Argument 'p' must be a date-time, got a number."),
        ],
    );
    check_parameter(
        json!({"type": "string", "format": "time"}),
        &[
            ("\"18:30\"", "\"18:30:00\""),
            ("\"18:30Z\"", "\"18:30:00Z\""),
            ("\"18:30:59.5+01:00\"", "\"18:30:59.5+01:00\""),
            ("\"8:30\"", "Argument 'p' must be a time, got a string."),
        ],
    );
}

#[test]
fn durations() {
    let kind = "Argument 'p' must be a duration, got a string.";
    let cases = [
        ("-P1Y2M3DT4H5M6.5S", "-P1Y2M3DT4H5M6.5S"),
        (" PT1H ", "PT1H"),
        ("P2W", "P2W"),
        ("1.02:03:04.50", "P1DT2H3M4.5S"),
        ("-01:00:00", "-PT1H"),
        ("-00:00:00.0000000", "PT0S"),
        ("007.00:00:00", "P7D"),
        ("00:00:00.05", "PT0.05S"),
        ("23:59:59", "PT23H59M59S"),
    ];
    for (text, expected) in cases {
        let declared = json!({"type": "string", "format": "duration"});
        assert_eq!(parameter(declared, &json!(text).to_string()), json!(expected).to_string());
    }
    for bad in [
        "P",
        "PT",
        "P1DT",
        "-",
        "P1H",
        "PT1D",
        "P1W1D",
        "P1D1W",
        "PT1M1H",
        "P1.5D",
        "PT.5S",
        "PT1.S",
        "P-1D",
        "+PT1H",
        "1",
        "1:2",
        "001:00:00",
        "0:60:0",
        "0:0:60",
        "a.1:2:3",
        ".1:2:3",
        "1.:2:3",
        "--1:2:3",
        "PT1H ",
        "0:0:0.",
        "P1YT",
    ] {
        let text = json!(bad.replace("PT1H ", "PT1H\u{a0}")).to_string();
        assert_eq!(
            parameter(json!({"type": "string", "format": "duration"}), &text),
            kind,
            "{bad}"
        );
    }
}

#[test]
fn members_of_an_enum() {
    check_parameter(
        json!({"enum": ["a", "A", "bee"]}),
        &[
            ("\"A\"", "\"A\""),
            ("\"BEE\"", "\"bee\""),
            ("\" bee\"", "Argument 'p' must be one of \"a\", \"A\", \"bee\"."),
        ],
    );
    check_parameter(
        json!({"enum": ["straße", "Straße"]}),
        &[("\"STRAßE\"", "Argument 'p' must be one of \"straße\", \"Straße\".")],
    );
    check_parameter(
        json!({"type": "integer", "enum": [1, 2]}),
        &[
            ("1.0", "1"),
            ("\"1\"", "1"),
            ("\"3\"", "Argument 'p' must be one of 1, 2."),
            ("true", "Argument 'p' must be one of 1, 2."),
        ],
    );
    check_parameter(
        json!({"const": {"a": [1]}}),
        &[("{\"a\":[1.0]}", "{\"a\":[1]}"), ("[]", "Argument 'p' must be one of {\"a\":[1]}.")],
    );
}

#[test]
fn several_types() {
    check_parameter(
        json!({"type": ["null", "integer", "boolean"]}),
        &[
            ("\"TRUE\"", "true"),
            ("\"7\"", "7"),
            ("[]", "Argument 'p' must be null or an integer or a boolean, got an array."),
            (
                "\"99999999999999999999\"",
                "Argument 'p' is out of range for null or an integer or a boolean.",
            ),
        ],
    );
    check_parameter(json!({"type": ["array", "string"]}), &[("{ }", "\"{ }\""), ("[ ]", "[]")]);
}

#[test]
fn null_that_is_accepted_is_never_refused() {
    // `type` admits null and `enum` does not: ARG-4 accepts null, and validation does not reject it
    // again.
    let declared = json!({"properties": {"p": {"type": ["string", "null"], "enum": ["a"]}}, "required": ["p"]});
    assert_eq!(decode(declared, "{}"), r#"{"p":null}"#);
}

#[test]
fn null_through_references_and_combinators() {
    let of = |p: Value| {
        let declared = json!({"properties": {"p": p}, "required": ["p"], "$defs": {
            "null": {"type": "null"}, "list": {"anyOf": [{"$ref": "#/$defs/null"}, {"items": {"$ref": "#/$defs/list"}}]}
        }});
        decode(declared, "{}") == r#"{"p":null}"#
    };
    assert!(of(json!({"$ref": "#/$defs/list"})));
    assert!(of(json!({"oneOf": [{"type": "string"}, {"$ref": "#/$defs/list"}]})));
    assert!(of(json!({"allOf": [{"$ref": "#/$defs/list"}, {"type": ["null", "array"]}]})));
    assert!(of(json!({"minLength": 1})) && of(json!(true)));
    assert!(!of(json!({"allOf": [{"$ref": "#/$defs/list"}, {"type": "array"}]})));
    assert!(!of(json!({"type": "array", "anyOf": [{"type": "null"}]})));
    assert!(!of(json!(false)) && !of(json!({"properties": {}})) && !of(json!({"items": {}})));
}

#[test]
fn what_several_schemas_declare_is_not_dropped() {
    let all_of = json!({"allOf": [
        {"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}
    ]});
    assert_eq!(decode(all_of, r#"{"a":"1","b":1e3,"c":2}"#), r#"{"a":1,"b":"1e3"} dropped c"#);
    let beside_reference = json!({
        "$ref": "#/$defs/base", "properties": {"b": {"type": "integer"}},
        "$defs": {"base": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
    });
    assert_eq!(
        decode(beside_reference.clone(), r#"{"a":"1","b":"2","c":3}"#),
        r#"{"a":1,"b":2} dropped c"#
    );
    assert_eq!(decode(beside_reference, "{}"), "Required argument 'a' was not supplied to 't'.");
    let one_of = json!({"properties": {"kind": {"type": "string"}}, "oneOf": [
        {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["n"]},
        {"properties": {"kind": {"const": "b"}, "s": {"type": "string"}}, "required": ["s"]}
    ]});
    assert_eq!(
        decode(one_of.clone(), r#"{"kind":"b","s":5,"n":1}"#),
        r#"{"kind":"b","s":"5"} dropped n"#
    );
    assert_eq!(
        decode(one_of, r#"{"kind":"c","s":"x"}"#),
        "Argument '' violates 'oneOf'. Expected one of: an object with 'n', an object with 's'."
    );
}

#[test]
fn the_problem_of_a_value_that_fits_no_alternative_lists_them() {
    let figure = json!({"anyOf": [
        {"type": "object", "properties": {"kind": {"const": "dot"}}, "required": ["kind"]},
        {"$ref": "#/$defs/circle"},
        {"type": "object", "properties": {"kind": {"const": "group"}, "of": {"anyOf": [
            {"type": "integer"}, {"enum": ["all", "none"]}
        ]}}, "required": ["kind", "of"]}
    ]});
    let declared = schema(
        json!({"properties": {"p": figure}, "required": ["p"], "$defs": {"circle": {
            "type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
            "required": ["kind", "radius"]
        }}}),
    );
    let kinds = r#""dot", "circle", "group""#;
    for (value, hint) in [
        (r#""dot""#, format!("Expected an object with 'kind', which is one of {kinds}.")),
        ("{}", format!("'p.kind' is missing; it must be one of {kinds}.")),
        (r#"{"kind":"triangle"}"#, format!("'p.kind' must be one of {kinds}.")),
        (
            r#"{"kind":"circle"}"#,
            "With 'kind' \"circle\": Required argument 'p.radius' was not supplied to 't'."
                .to_owned(),
        ),
        (
            r#"{"kind":"Circle","radius":"wide"}"#,
            "With 'kind' \"Circle\": Argument 'p.radius' must be a number, got a string."
                .to_owned(),
        ),
        (
            r#"{"kind":"group","of":"some"}"#,
            "With 'kind' \"group\": Argument 'p.of' violates 'anyOf'. Expected one of: an \
             integer, \"all\", \"none\"."
                .to_owned(),
        ),
    ] {
        let text = format!(r#"{{"p":{value}}}"#);
        let invalid =
            declared.decode("t", Some(text.as_bytes()), &DecodeOptions::default()).unwrap_err();
        let [problem] = invalid.problems() else { panic!("{invalid}") };
        assert_eq!(
            (problem.path.as_str(), problem.code),
            ("p", ProblemCode::Constraint),
            "{value}"
        );
        assert_eq!(problem.message, "Argument 'p' violates 'anyOf'.", "{value}");
        assert_eq!(problem.hint.as_deref(), Some(hint.as_str()), "{value}");
        assert_eq!(invalid.to_string(), format!("{} {hint}", problem.message), "{value}");
    }
}

#[test]
fn an_alternative_without_tolerance_comes_first() {
    let number_or_text = json!({"anyOf": [{"type": "number"}, {"type": "string"}]});
    check_parameter(number_or_text, &[("\"5\"", "\"5\""), ("5", "5"), ("true", "\"true\"")]);
    let overlapping = json!({"oneOf": [{"type": "integer"}, {"type": "number"}]});
    check_parameter(overlapping, &[("5", "5"), ("5.5", "5.5"), ("\"5\"", "5")]);
    let bounded =
        json!({"anyOf": [{"type": "string", "maxLength": 1}, {"type": "string", "pattern": "^x"}]});
    check_parameter(
        bounded,
        &[
            ("\"xyz\"", "\"xyz\""),
            ("\"abc\"", "Argument 'p' violates 'anyOf'. Expected one of: a string."),
        ],
    );
    let completed = json!({"anyOf": [
        {"properties": {"k": {"const": "a"}, "n": {"default": 1}}, "required": ["k"]}, {"type": "string"}
    ]});
    check_parameter(completed, &[("{\"k\":\"A\"}", "{\"k\":\"a\",\"n\":1}")]);
}

#[test]
fn conditions_and_dependents() {
    let declared = json!({
        "properties": {"kind": {"type": "string"}},
        "if": {"properties": {"kind": {"const": "n"}}, "required": ["kind"]},
        "then": {"properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "else": {"properties": {"s": {"type": "string", "default": "none"}}},
        "dependentSchemas": {"kind": {"properties": {"why": {"type": "string"}}}},
        "dependentRequired": {"why": ["kind"]}
    });
    assert_eq!(
        decode(declared.clone(), r#"{"kind":"n","n":"1","why":2,"x":0}"#),
        r#"{"kind":"n","n":1,"why":"2"} dropped x"#
    );
    assert_eq!(
        decode(declared.clone(), r#"{"kind":"n"}"#),
        "Required argument 'n' was not supplied to 't'."
    );
    assert_eq!(decode(declared.clone(), "{}"), r#"{"s":"none"}"#);
    assert_eq!(decode(declared, r#"{"why":"x"}"#), r#"{"s":"none"} dropped why"#);
}

#[test]
fn maps_and_patterns() {
    let map = json!({"type": "object", "patternProperties": {"^n": {"type": "integer"}}, "additionalProperties": {"type": "boolean"}});
    check_parameter(
        map,
        &[
            (r#"{"n1":"1","x":"TRUE","y":null,"n2":null}"#, r#"{"n1":1,"x":true}"#),
            (
                r#"{"n":"x","a b":1}"#,
                "Argument 'p.n' must be an integer, got a string. Argument 'p[\"a b\"]' must be a \
                 boolean, got a number.",
            ),
        ],
    );
    let both = json!({"properties": {"n": {"type": "integer"}}, "patternProperties": {"^n": {"maximum": 3}}});
    check_parameter(
        both,
        &[("{\"n\":\"4\"}", "Argument 'p.n' violates 'maximum'."), ("{\"n\":\"3\"}", "{\"n\":3}")],
    );
}

#[test]
fn arrays_by_position() {
    let tuple = json!({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "boolean", "default": true}], "items": false});
    check_parameter(
        tuple,
        &[
            ("[\"1\",null]", "[1,true]"),
            ("[1,true,3]", "Argument 'p[2]' violates 'items'."),
            ("[]", "[]"),
        ],
    );
    let open =
        json!({"prefixItems": [{"type": "integer"}], "unevaluatedItems": {"type": "string"}});
    check_parameter(
        open,
        &[("[\"1\",\"a\"]", "[1,\"a\"]"), ("[1,2]", "Argument 'p' violates 'unevaluatedItems'.")],
    );
    let union =
        json!({"items": {"anyOf": [{"type": "integer"}, {"type": "string", "format": "uuid"}]}});
    check_parameter(
        union,
        &[("[null]", "Argument 'p[0]' must be an integer or a UUID, got null.")],
    );
    check_parameter(
        json!({"items": {"enum": [1]}}),
        &[("[null]", "Argument 'p[0]' must be one of 1.")],
    );
    check_parameter(
        json!({"contains": {"type": "integer"}, "maxContains": 1}),
        &[("[1,2]", "Argument 'p' violates 'maxContains'.")],
    );
}

#[test]
fn recursive_schemas_decode_at_every_depth() {
    let declared = json!({
        "properties": {"tree": {"$ref": "#/$defs/node"}}, "required": ["tree"],
        "$defs": {"node": {"type": "object", "properties": {
            "v": {"type": "integer", "default": 1}, "left": {"$ref": "#/$defs/node"},
            "kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "default": []}
        }, "default": {}}}
    });
    let schema = InputSchema::compile("t", &declared.to_string());
    assert!(schema.is_err(), "the default of `left` holds a `left` without end");
    let text = declared.to_string().replace(r#","default":{}"#, "");
    let schema = InputSchema::compile("t", &text).unwrap();
    assert_eq!(
        shown(
            &schema,
            r#"{"tree":{"left":{"v":"2","x":0},"kids":[{}]}}"#,
            &DecodeOptions::default()
        ),
        r#"{"tree":{"v":1,"left":{"v":2,"kids":[]},"kids":[{"v":1,"kids":[]}]}} dropped tree.left.x"#
    );
}

#[test]
fn one_problem_for_a_path_and_all_paths_together() {
    let declared = json!({
        "properties": {
            "a": {"type": "integer", "minimum": 3, "multipleOf": 2},
            "b": {"type": "array", "items": {"type": "integer"}, "maxItems": 1, "uniqueItems": true},
            "c": {"type": "string", "pattern": "^x", "minLength": 9}
        },
        "required": ["a"], "additionalProperties": false, "minProperties": 9
    });
    assert_eq!(
        decode(declared.clone(), r#"{"a":1,"b":["x","y"],"c":"y","contents":1}"#),
        "Argument 'a' violates 'minimum'. Argument 'b' violates 'maxItems'. \
         Argument 'b[0]' must be an integer, got a string. Argument 'b[1]' must be an integer, \
         got a string. \
         Argument 'c' violates 'pattern'. Unexpected argument 'contents' for 't'."
    );
    assert_eq!(decode(declared, r#"{"a":4}"#), "Argument '' violates 'minProperties'.");
}

#[test]
fn untouched_numbers_that_no_float_holds_are_out_of_range() {
    check_parameter(
        json!({}),
        &[("{\"x\":[1e400]}", "Argument 'p.x[0]' is out of range for a number.")],
    );
    check_parameter(
        json!({"type": "string"}),
        &[("1e400", "\"1e400\""), ("[1e400]", "\"[1e400]\"")],
    );
}

#[test]
fn paths_escape_what_is_not_plain() {
    let declared = json!({"additionalProperties": {"type": "object", "additionalProperties": {"type": "integer"}}});
    let text = r#"{"a b":{"":"x"},"c":{"é\"\n":"x","d-1":"x"}}"#;
    let error =
        schema(declared).decode("t", Some(text.as_bytes()), &DecodeOptions::default()).unwrap_err();
    let paths: Vec<&str> = error.problems().iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, [r#"["a b"][""]"#, "c.d-1", r#"c["é\"\n"]"#]);
}

#[test]
fn limits_come_before_everything_else() {
    let any = schema(json!({"additionalProperties": true}));
    let nested =
        |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
    let options = DecodeOptions::default();
    assert!(any.decode("t", Some(nested(128).as_bytes()), &options).is_ok());
    let too_deep = "Arguments for 't' are nested deeper than 128 levels.";
    assert_eq!(shown(&any, &nested(129), &options), too_deep);
    assert_eq!(shown(&any, &"{\"a\":".repeat(129), &options), too_deep);
    assert_eq!(shown(&any, &"[".repeat(100_000), &options), too_deep);
    let small = DecodeOptions { text_bytes_max: 8, ..options };
    assert_eq!(shown(&any, "{\"a\":10}", &small), "{\"a\":10}");
    assert_eq!(shown(&any, "not JSON!", &small), "Arguments for 't' are larger than 8 bytes.");
    assert_eq!(shown(&any, " \r\n\t", &options), "{}");
    let broken = any.decode("t", Some(b"{\"a\":\"\xff\"}"), &options).unwrap_err();
    assert_eq!(broken.problems()[0].code, ProblemCode::Malformed);
}

#[test]
fn parsed_values_are_decoded_by_their_compact_text() {
    let text = schema(json!({"properties": {"s": {"type": "string"}, "i": {"type": "integer"}}}));
    let options = DecodeOptions::default();
    let decoded = text.decode_value("t", &json!({"s": {"a": [1, 2.5]}, "i": 3}), &options).unwrap();
    assert_eq!(decoded.to_json(), r#"{"s":"{\"a\":[1,2.5]}","i":3}"#);
    assert_eq!(text.decode_value("t", &Value::Null, &options).unwrap().to_json(), "{}");
    assert!(text.decode_value("t", &json!([]), &options).is_err());
    // Parsers of JSON read an integer of more than 64 bits as a float.
    assert!(text.decode_value("t", &json!({"i": 2_f64.powi(64)}), &options).is_err());
    let deep = (0..2000).fold(json!(1), |value, _| Value::Array(vec![value]));
    let error = text.decode_value("t", &deep, &options).unwrap_err();
    assert_eq!(error.problems()[0].code, ProblemCode::Limit);
}

#[test]
fn strictness_reaches_every_depth() {
    let strict = DecodeOptions { strict: true, ..DecodeOptions::default() };
    let nested = schema(
        json!({"properties": {"xs": {"type": "array", "items": {"anyOf": [{"type": "integer"}]}}}}),
    );
    assert_eq!(
        shown(&nested, r#"{"xs":["1"]}"#, &strict),
        "Argument 'xs[0]' violates 'anyOf'. Expected one of: an integer."
    );
    let spelled = schema(
        json!({"properties": {"e": {"enum": ["a"]}, "u": {"type": "string", "format": "uuid"}}}),
    );
    assert_eq!(shown(&spelled, r#"{"e":"A"}"#, &strict), "Argument 'e' must be one of \"a\".");
    let upper = r#"{"u":"D2719B96-4D6E-4F1C-9BFF-3A8D6F1C2E7A"}"#;
    assert_eq!(shown(&spelled, upper, &strict), upper.to_lowercase());
}

/// Alternatives that refer to each other twice per level: 2^100 ways to fail.
#[test]
fn exploding_alternatives_end_with_a_limit() {
    let declared = json!({
        "properties": {"p": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"anyOf": [
            {"type": "array", "items": {"$ref": "#/$defs/n"}},
            {"type": "array", "prefixItems": [{"$ref": "#/$defs/n"}]},
            {"type": "integer"}
        ]}}
    });
    let schema = schema(declared);
    let text = format!("{{\"p\":{}true{}}}", "[".repeat(100), "]".repeat(100));
    let error = schema.decode("t", Some(text.as_bytes()), &DecodeOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "Arguments for 't' take too much work to check.");
    assert_eq!(error.problems()[0].code, ProblemCode::Limit);
    let result = crate::OutputSchema::compile("t", &schema.published().to_string()).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result.validate(&value).unwrap_err(), "the value takes too much work to validate");
}

/// The deepest value through a long chain of schemas on each of its levels. A test's stack has 2
/// MiB.
#[test]
fn depth_never_overflows_the_stack() {
    let mut definitions = serde_json::Map::new();
    for n in 0..10 {
        definitions
            .insert(format!("d{n}"), json!({"allOf": [{"$ref": format!("#/$defs/d{}", n + 1)}]}));
    }
    definitions.insert("d10".to_owned(), json!({"items": {"anyOf": [{"$ref": "#/$defs/d0"}]}}));
    let declared = json!({"properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    let schema = schema(declared);
    let text = format!("{{\"p\":{}{}}}", "[".repeat(127), "]".repeat(127));
    let decoded = schema.decode("t", Some(text.as_bytes()), &DecodeOptions::default());
    assert_eq!(decoded.unwrap_err().to_string(), "Arguments for 't' take too much work to check.");
}

/// 128 levels are allowed everywhere, not only where no schema applies.
#[test]
fn the_deepest_value_decodes_by_a_recursive_schema() {
    let declared = json!({
        "properties": {"p": {"$ref": "#/$defs/list"}},
        "$defs": {"list": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/list"}}, {"type": "null"}]}}
    });
    let text = format!("{{\"p\":{}{}}}", "[".repeat(127), "]".repeat(127));
    assert_eq!(decode(declared, &text), text);
}

#[test]
fn defaults_cannot_be_used_to_amplify_arguments() {
    let large = "x".repeat(60_000);
    let declared = json!({"properties": {"p": {"type": "array", "items": {"type": "string", "default": large}}}});
    let text = format!("{{\"p\":[null{}]}}", ",null".repeat(200_000));
    let error =
        schema(declared).decode("t", Some(text.as_bytes()), &DecodeOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "Arguments for 't' take too much work to check.");
}

#[test]
fn large_plain_arguments_are_no_problem() {
    let declared = json!({"properties": {"xs": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}}}});
    let text = format!("{{\"xs\":[0{}]}}", ",0".repeat(524_000));
    let decoded =
        schema(declared).decode("t", Some(text.as_bytes()), &DecodeOptions::default()).unwrap();
    assert_eq!(decoded.value()["xs"].as_array().unwrap().len(), 524_001);
}
