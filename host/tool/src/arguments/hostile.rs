//! Malicious arguments and declarations. No test looks at a clock: the tests assert which limit
//! ends the work, and how many steps were taken. A test that hangs has failed.

use serde_json::{Value, json};

use super::decoder::Decoder;
use super::draft::ValueDraft;
use super::meter::Meter;
use crate::arguments::ProblemCode;
use crate::json;
use crate::schema::Dialect;
use crate::schema::SchemaPlan;
use crate::{DecodeOptions, InputSchema};

fn schema(declared: Value) -> InputSchema {
    InputSchema::compile("t", &declared.to_string()).unwrap()
}

fn schemas() -> Vec<InputSchema> {
    let node = json!({"anyOf": [{"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}}, {"type": "array", "items": {"$ref": "#/$defs/n"}}, {"type": "number"}]});
    vec![
        schema(json!({"additionalProperties": true})),
        schema(
            json!({"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}, "n": {"type": "integer"}}}),
        ),
        schema(json!({"properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": node}})),
        schema(json!({"additionalProperties": {"type": "integer"}, "uniqueItems": true})),
    ]
}

/// Returns the codes of the problems that end a decoding.
fn ends(schema: &InputSchema, text: &str, options: &DecodeOptions) -> Vec<ProblemCode> {
    let decoded = schema.decode("t", Some(text.as_bytes()), options);
    decoded
        .err()
        .map(|error| error.problems().iter().map(|problem| problem.code).collect())
        .unwrap_or_default()
}

fn unlimited() -> DecodeOptions {
    DecodeOptions { text_bytes_max: usize::MAX, ..DecodeOptions::default() }
}

/// Returns the last part of the error for a rejected schema.
fn refusal(declared: &str) -> String {
    let text = InputSchema::compile("t", declared).map(|_| ()).unwrap_err().to_string();
    assert!(text.len() < 1000, "the refusal itself is large");
    text
}

#[test]
fn a_hundred_thousand_levels_are_too_deep_whatever_they_are_made_of() {
    for open in ["[", "{\"a\":", "[[],", "{\"a\":[", "[{\"a\":1,\"b\":"] {
        let text = open.repeat(100_000);
        for schema in schemas() {
            assert_eq!(ends(&schema, &text, &unlimited()), [ProblemCode::Limit], "{open}");
        }
        // The length of a declaration is checked first.
        assert!(refusal(&text).contains("is longer than"));
        assert!(refusal(&open.repeat(65_536 / open.len())).contains("is nested deeper than"));
    }
}

#[test]
fn ten_megabytes_of_brackets_end_before_they_are_read() {
    let text = "[".repeat(10 << 20);
    for schema in schemas() {
        assert_eq!(ends(&schema, &text, &DecodeOptions::default()), [ProblemCode::Limit]);
        assert_eq!(ends(&schema, &text, &unlimited()), [ProblemCode::Limit]);
    }
    assert!(refusal(&text).contains("is longer than"));
}

#[test]
fn a_million_keys_are_read_or_refused() {
    let members: Vec<_> = (0..1_000_000).map(|n| format!("\"k{n}\":{n}")).collect();
    let text = format!("{{{}}}", members.join(","));
    assert!(text.len() > 1 << 20);
    for schema in schemas() {
        assert_eq!(ends(&schema, &text, &DecodeOptions::default()), [ProblemCode::Limit]);
    }
    assert_eq!(ends(&schemas()[3], &text, &unlimited()), []);
    assert!(refusal(&format!("{{\"properties\":{text}}}")).contains("is longer than"));
    // As many as a megabyte holds, all of the same name: the last one wins.
    let repeated = format!("{{{}}}", vec!["\"n\":1"; 150_000].join(","));
    let decoded =
        schemas()[1].decode("t", Some(repeated.as_bytes()), &DecodeOptions::default()).unwrap();
    assert_eq!(decoded.value().len(), 1);
}

#[test]
fn numbers_without_end_are_out_of_range() {
    let long = "9".repeat(900_000);
    let zeros = format!("0.{}1", "0".repeat(900_000));
    for number in ["1e999999", "-1e999999", "1e99999999999999999999", &long] {
        let codes = ends(&schemas()[1], &format!("{{\"n\":{number}}}"), &DecodeOptions::default());
        assert!(matches!(codes.as_slice(), [ProblemCode::Range | ProblemCode::Kind]), "{codes:?}");
        let codes =
            ends(&schemas()[0], &format!("{{\"x\":[{number}]}}"), &DecodeOptions::default());
        assert_eq!(codes, [ProblemCode::Range]);
    }
    assert_eq!(ends(&schemas()[0], &format!("{{\"x\":{zeros}}}"), &DecodeOptions::default()), []);
    for keyword in ["minimum", "maximum", "multipleOf", "maxLength", "default", "const"] {
        let declared =
            format!("{{\"properties\":{{\"p\":{{\"type\":\"number\",\"{keyword}\":1e999999}}}}}}");
        assert!(refusal(&declared).contains("the number is out of range"), "{keyword}");
    }
    let tiny = json!({"properties": {"p": {"type": "number", "multipleOf": 1e-300}}});
    assert!(schema(tiny).decode("t", Some(b"{\"p\":1e300}"), &DecodeOptions::default()).is_ok());
}

#[test]
fn patterns_that_are_catastrophic_elsewhere_are_linear_here() {
    for pattern in ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(.*a){12}$", "^(([a-z])+.)+[A-Z]([a-z])+$"]
    {
        let schema = schema(json!({"properties": {"p": {"type": "string", "pattern": pattern}}}));
        let text = format!("{{\"p\":\"{}!\"}}", "a".repeat(200_000));
        assert_eq!(
            ends(&schema, &text, &DecodeOptions::default()),
            [ProblemCode::Constraint],
            "{pattern}"
        );
    }
    for pattern in ["(a{1000}){1000}", "((((a{30}){30}){30}){30}){30}", "(?=a)", r"(a)\1"] {
        let declared = json!({"properties": {"p": {"pattern": pattern}}}).to_string();
        assert!(refusal(&declared).contains("the pattern is not supported"), "{pattern}");
    }
}

#[test]
fn references_that_lead_to_themselves() {
    for declared in [
        r##"{"$ref":"#"}"##,
        r##"{"properties":{"p":{"$ref":"#/properties/p"}}}"##,
        r##"{"properties":{"p":{"$ref":"#/$defs/a"}},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}"##,
        r##"{"properties":{"p":{"anyOf":[{"$ref":"#/properties/p"}]}}}"##,
    ] {
        assert!(refusal(declared).contains("the references form a cycle"), "{declared}");
    }
    let recursive = schema(json!({"properties": {"p": {"$ref": "#"}}}));
    let text = format!("{}{}", "{\"p\":".repeat(127) + "{}", "}".repeat(127));
    assert_eq!(ends(&recursive, &text, &DecodeOptions::default()), []);
    for dialect in Dialect::ALL {
        assert!(recursive.in_dialect(dialect).schema.to_string().len() < 300, "{dialect}");
    }
}

fn steps(schema: &Value, text: &str) -> u64 {
    let declared = InputSchema::compile("t", &schema.to_string()).unwrap();
    let json = json::read(text.as_bytes(), 128).unwrap();
    let all = 1 << 40;
    let mut decoder = Decoder::new(declared.plan(), "t", false);
    decoder.meter = Meter::with_steps(all);
    assert!(decoder.default_value(SchemaPlan::ROOT, ValueDraft::Text(&json)).is_ok());
    all - decoder.steps_left()
}

/// Twice the input is twice the work, up to the largest input that is accepted.
#[test]
fn a_megabyte_decodes_in_linear_time() {
    let of_size = |item: &str, bytes: usize| vec![item; bytes / (item.len() + 1)].join(",");
    let object = |bytes: usize| {
        (0..bytes / 16).map(|n| format!("\"key{n:06}\":\"{n}\"")).collect::<Vec<_>>().join(",")
    };
    type Text = Box<dyn Fn(usize) -> String>;
    let cases: Vec<(Value, Text)> = vec![
        (
            json!({"properties": {"p": {"type": "array", "items": {"type": "integer"}}}}),
            Box::new(move |bytes| format!("{{\"p\":[{}]}}", of_size("\"12\"", bytes))),
        ),
        (
            json!({"properties": {"p": {"type": "array", "items": {"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"type": "boolean"}]}}}}),
            Box::new(move |bytes| {
                format!("{{\"p\":[{}]}}", of_size("{\"a\":1,\"b\":[true]}", bytes))
            }),
        ),
        (
            json!({"additionalProperties": {"type": "integer"}}),
            Box::new(move |bytes| format!("{{{}}}", object(bytes))),
        ),
        (
            json!({"properties": {"p": {"type": "string", "pattern": "x$", "maxLength": 2_000_000}}}),
            Box::new(|bytes| format!("{{\"p\":\"{}x\"}}", "a".repeat(bytes))),
        ),
    ];
    for (declared, text) in cases {
        let [quarter, half, whole] =
            [1 << 18, 1 << 19, 1 << 20].map(|bytes| steps(&declared, &text(bytes)));
        assert!(
            half <= quarter * 21 / 10 && whole <= half * 21 / 10,
            "{declared}: {quarter} {half} {whole}"
        );
    }
}
