use cofferdam_tool::output::parse_json;
use cofferdam_tool::{
    Arguments, DecodeOptions, ErrorType, InputSchema, Outcome, Output, OutputSchema,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use wasmtime::component::Val;

use super::docs::{Docs, words};
use super::schema::{self, Direction};
use super::shape::{Field, Integer, ValueShape, VariantCase};
use super::{lift, lower};

fn field(name: &str, shape: ValueShape) -> Field {
    Field { name: name.to_owned(), key: super::names::snake(name), shape }
}

fn option(shape: ValueShape) -> ValueShape {
    ValueShape::Option(Box::new(shape))
}

fn list(shape: ValueShape) -> ValueShape {
    ValueShape::List(Box::new(shape))
}

fn case(name: &str, payload: Option<ValueShape>) -> VariantCase {
    VariantCase { name: name.to_owned(), payload }
}

/// Returns the schema of a tool with one parameter.
fn declared(parameter: &Field) -> String {
    let value = schema::of(&parameter.shape, Direction::Argument);
    schema::object([(parameter, value)].into_iter(), |field| {
        schema::is_required(&field.shape, Direction::Argument)
    })
    .to_string()
}

/// Decodes `{"v": value}` by the schema of the form.
fn decode(shape: &ValueShape, value: &Value) -> Result<Arguments, String> {
    let parameter = field("v", shape.clone());
    let schema = InputSchema::compile("t", &declared(&parameter)).expect("derived schemas compile");
    let decoded = schema.decode_value("t", &json!({ "v": value }), &DecodeOptions::default());
    decoded.map_err(|error| error.to_string())
}

/// Decodes, lowers and lifts a value.
fn round_trip(shape: &ValueShape, value: &Value) -> Value {
    let arguments = decode(shape, value).unwrap();
    let mut lowered = lower::parameters(&[field("v", shape.clone())], arguments.value()).unwrap();
    // In a tuple a result at the top is a value like any other.
    let tuple = ValueShape::Tuple(vec![shape.clone()]);
    let outcome = lift::outcome(Some(&tuple), Some(Val::Tuple(vec![lowered.remove(0)])), 1 << 20);
    let Outcome::Ok(Output::Value(Value::Array(mut items))) = outcome else {
        panic!("{outcome:?}")
    };
    items.remove(0)
}

fn check(shape: &ValueShape, schema: Value) {
    assert_eq!(schema::of(shape, Direction::Argument), schema);
}

#[test]
fn schemas_of_simple_types() {
    check(&ValueShape::Bool, json!({"type": "boolean"}));
    check(&ValueShape::Integer(Integer::U64), json!({"type": "integer", "format": "uint64"}));
    check(&ValueShape::Integer(Integer::S8), json!({"type": "integer", "format": "int8"}));
    check(&ValueShape::Float32, json!({"type": "number", "format": "float"}));
    check(&ValueShape::Char, json!({"type": "string", "minLength": 1, "maxLength": 1}));
    check(
        &ValueShape::Enum(vec!["dark-blue".into()]),
        json!({"type": "string", "enum": ["dark-blue"]}),
    );
    check(
        &ValueShape::Flags(vec!["a".into()]),
        json!({"type": "array", "items": {"type": "string", "enum": ["a"]}, "uniqueItems": true}),
    );
    check(
        &ValueShape::Tuple(vec![ValueShape::Bool, ValueShape::Text]),
        json!({
            "type": "array", "minItems": 2, "maxItems": 2,
            "prefixItems": [{"type": "boolean"}, {"type": "string"}]
        }),
    );
}

#[test]
fn schemas_of_options() {
    check(&option(ValueShape::Text), json!({"type": ["string", "null"]}));
    check(
        &option(ValueShape::Enum(vec!["a".into()])),
        json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
    );
    check(
        &option(option(ValueShape::Bool)),
        json!({"type": ["object", "null"], "properties": {"some": {"type": ["boolean", "null"]}}}),
    );
}

#[test]
fn schemas_of_alternatives() {
    let figure =
        ValueShape::Variant(vec![case("dot", None), case("circle", Some(ValueShape::Float64))]);
    check(
        &figure,
        json!({"anyOf": [
            {"type": "object", "properties": {"kind": {"const": "dot"}}, "required": ["kind"]},
            {"type": "object",
             "properties": {"kind": {"const": "circle"}, "value": {"type": "number", "format": "double"}},
             "required": ["kind", "value"]},
        ]}),
    );
    check(&ValueShape::Variant(vec![case("a", None)]), json!({"type": "string", "enum": ["a"]}));
    let result = ValueShape::Result { ok: None, error: Some(Box::new(ValueShape::Text)) };
    check(
        &result,
        json!({"anyOf": [
            {"type": "object", "properties": {"ok": {"type": "null"}}, "additionalProperties": false},
            {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"],
             "additionalProperties": false},
        ]}),
    );
}

#[test]
fn every_key_of_a_result_is_promised() {
    let shape = ValueShape::Record(vec![
        field("a-b", option(ValueShape::Text)),
        field("c", ValueShape::Bool),
    ]);
    check(
        &shape,
        json!({"type": "object", "properties": {"a_b": {"type": ["string", "null"]}, "c": {"type": "boolean"}},
               "required": ["c"]}),
    );
    assert_eq!(schema::of(&shape, Direction::Result)["required"], json!(["a_b", "c"]));
}

#[test]
fn nothing_is_lost_at_the_edges_of_a_type() {
    let integer = |integer, value: Value| {
        assert_eq!(round_trip(&ValueShape::Integer(integer), &value), value)
    };
    integer(Integer::U64, json!(u64::MAX));
    integer(Integer::S64, json!(i64::MIN));
    integer(Integer::U64, json!((1_u64 << 53) + 1));
    assert_eq!(round_trip(&ValueShape::Float32, &json!(0.1)), json!(0.1));
    assert_eq!(round_trip(&ValueShape::Float64, &json!(5e-324)), json!(5e-324));
    let nested = option(option(ValueShape::Bool));
    for value in [json!(null), json!({"some": null}), json!({"some": true})] {
        assert_eq!(round_trip(&nested, &value), value);
    }
    let deeper = option(nested);
    for value in [json!(null), json!({"some": null}), json!({"some": {"some": null}})] {
        assert_eq!(round_trip(&deeper, &value), value);
    }
}

#[test]
fn what_is_no_value_of_the_type_is_refused_before_the_guest_runs() {
    let refused = |shape: &ValueShape, value: Value| decode(shape, &value).unwrap_err();
    let out_of_range = refused(&ValueShape::Integer(Integer::U8), json!(256));
    assert_eq!(out_of_range, "Argument 'v' is out of range for an integer.");
    assert_eq!(refused(&ValueShape::Char, json!("ab")), "Argument 'v' violates 'maxLength'.");
    assert_eq!(refused(&ValueShape::Bytes, json!("a")), "Argument 'v' violates 'pattern'.");
    assert_eq!(refused(&ValueShape::Bytes, json!("ab==\n")), "Argument 'v' violates 'pattern'.");
    let pair = ValueShape::Tuple(vec![ValueShape::Bool, ValueShape::Bool]);
    assert_eq!(refused(&pair, json!([true])), "Argument 'v' violates 'minItems'.");
    let flags = ValueShape::Flags(vec!["a".into(), "b".into()]);
    assert_eq!(refused(&flags, json!(["a", "A"])), "Argument 'v' violates 'uniqueItems'.");
    let optional = option(ValueShape::Record(vec![field("n", ValueShape::Bool)]));
    assert_eq!(refused(&optional, json!({})), "Required argument 'v.n' was not supplied to 't'.");
    let result = ValueShape::Result { ok: Some(Box::new(option(ValueShape::Bool))), error: None };
    let message = "Argument 'v' violates 'anyOf'. Expected one of: an object.";
    assert_eq!(refused(&result, json!({"ok": null, "error": null})), message);
}

fn error_type(outcome: &Outcome) -> Option<ErrorType> {
    match outcome {
        Outcome::Error(error) => error.error_type(),
        _ => None,
    }
}

#[test]
fn floats_without_a_json_form_are_no_result() {
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let outcome = lift::outcome(Some(&ValueShape::Float64), Some(Val::Float64(value)), 100);
        assert_eq!(error_type(&outcome), Some(ErrorType::InvalidResult));
    }
}

#[test]
fn exactly_the_output_limit_passes() {
    let shape = list(ValueShape::Integer(Integer::U8));
    let items = Val::List(vec![Val::U8(200), Val::U8(7)]);
    let ended = |bytes_max| lift::outcome(Some(&shape), Some(items.clone()), bytes_max);
    assert_eq!(ended(7), Outcome::Ok(Output::Value(json!([200, 7]))));
    assert_eq!(error_type(&ended(6)), Some(ErrorType::OutputLimit));
    assert_eq!(error_type(&ended(1)), Some(ErrorType::OutputLimit));
    let text = |bytes_max| {
        lift::outcome(Some(&ValueShape::Text), Some(Val::String("äb".into())), bytes_max)
    };
    assert!(error_type(&text(2)).is_some());
    assert_eq!(error_type(&text(3)), None, "text counts without its quotes");
}

#[test]
fn errors_become_failures() {
    let failure = |error: Option<ValueShape>, value: Option<Val>| {
        let shape = ValueShape::Result { ok: None, error: error.map(Box::new) };
        let outcome =
            lift::outcome(Some(&shape), Some(Val::Result(Err(value.map(Box::new)))), 1000);
        let Outcome::Failure(failure) = outcome else { panic!("{outcome:?}") };
        (failure.error_value(), failure.transient)
    };
    let no_message = "The tool reported a failure without a message.";
    assert_eq!(failure(None, None).0, json!({ "message": no_message }));
    let text = failure(Some(ValueShape::Text), Some(Val::String("no".into())));
    assert_eq!(text, (json!({"message": "no"}), None));

    let message = || field("message", ValueShape::Text);
    let said = || ("message".to_owned(), Val::String("no".into()));
    let record = ValueShape::Record(vec![message(), field("transient", ValueShape::Bool)]);
    let value = Val::Record(vec![said(), ("transient".into(), Val::Bool(true))]);
    assert_eq!(failure(Some(record), Some(value)), (json!({"message": "no"}), Some(true)));

    let detailed =
        ValueShape::Record(vec![message(), field("code", ValueShape::Integer(Integer::U8))]);
    let value = Val::Record(vec![said(), ("code".into(), Val::U8(7))]);
    assert_eq!(failure(Some(detailed), Some(value)).0, json!({"message": "no", "code": 7}));
    let names = ValueShape::Enum(vec!["busy".into()]);
    assert_eq!(failure(Some(names), Some(Val::Enum("busy".into()))).0, json!({"message": "busy"}));
}

#[test]
fn lines_of_docs_about_parameters() {
    let read = words(
        "Adds.\n\nTwice.\n@param a-b What. \n  @default a_b = {\"x\": 1}\n@example c=2\n@example \
         c = 3\n@see d\n",
    );
    let read = read.unwrap();
    assert_eq!(read.description.as_deref(), Some("Adds.\n\nTwice.\n@see d"));
    assert_eq!(read.parameters["a_b"].description.as_deref(), Some("What."));
    assert_eq!(read.parameters["a_b"].default, Some(json!({"x": 1})));
    assert_eq!(read.parameters["c"].examples, [json!(2), json!(3)]);
    assert_eq!(
        words("@default a 3").unwrap_err(),
        "its docs say `@default a 3`; write `@default name = JSON`"
    );
    assert!(
        words("@example a = {").unwrap_err().starts_with("its docs say `@example a = {`; write")
    );
}

/// Returns a component with only a `package-docs` section.
fn with_docs(section: &[u8]) -> Vec<u8> {
    let mut contents = b"\x0cpackage-docs".to_vec();
    contents.extend_from_slice(section);
    let mut bytes = b"\0asm\x0d\0\x01\0\0".to_vec();
    let mut length = contents.len();
    while length > 127 {
        bytes.push(u8::try_from(length & 127).unwrap() | 128);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap());
    bytes.extend(contents);
    bytes
}

#[test]
fn docs_are_found_where_the_tools_put_them() {
    let json = br#"{"docs": "ignored", "interfaces": {"i": {"funcs": {"f": "of i"}}},
        "worlds": {"w": {"types": {}, "func_exports": {"g": {"docs": "of w", "stability": {}}},
        "interfaces": {"old": {"funcs": {"f": "of old"}}}}}}"#;
    for version in [0, 1] {
        let docs = Docs::read(&with_docs(&[&[version], &json[..]].concat()));
        assert_eq!(docs.function(Some("a:b/i@1.0.0"), "f"), Some("of i"));
        assert_eq!(docs.function(None, "g"), Some("of w"));
        assert_eq!(docs.function(Some("old"), "f"), Some("of old"));
        assert_eq!(docs.function(Some("other"), "f"), None);
        assert_eq!(docs.function(Some("a:b/other"), "f"), None);
    }
}

#[test]
fn a_broken_docs_section_is_no_docs() {
    for section in [&b""[..], b"\x02{}", b"\x01", b"\x01[1]", b"\x01{\"worlds\": 3}", b"\x01\xff"] {
        assert_eq!(Docs::read(&with_docs(section)).function(None, "f"), None);
    }
    let deep = [&b"\x01"[..], "[".repeat(200_000).as_bytes()].concat();
    assert_eq!(Docs::read(&with_docs(&deep)).function(None, "f"), None);
    let long = format!("\u{1}{{\"docs\": \"{}\", \"worlds\": {{}}}}", "x".repeat(600_000));
    assert_eq!(Docs::read(&with_docs(long.as_bytes())).function(None, "f"), None);
    for cut in 0..20 {
        Docs::read(&with_docs(b"\x01{}")[..cut]);
    }
}

fn any_integer() -> impl Strategy<Value = Integer> {
    use Integer::{S8, S16, S32, S64, U8, U16, U32, U64};
    prop::sample::select(vec![S8, U8, S16, U16, S32, U32, S64, U64])
}

/// Generates any form of a few levels.
fn any_shape() -> impl Strategy<Value = ValueShape> {
    let names = || {
        (1..5_usize).prop_map(|count| (0..count).map(|n| format!("name-{n}")).collect::<Vec<_>>())
    };
    let leaf = prop_oneof![
        Just(ValueShape::Bool),
        any_integer().prop_map(ValueShape::Integer),
        Just(ValueShape::Float32),
        Just(ValueShape::Float64),
        Just(ValueShape::Char),
        Just(ValueShape::Text),
        Just(ValueShape::Bytes),
        names().prop_map(ValueShape::Enum),
        names().prop_map(ValueShape::Flags),
    ];
    leaf.prop_recursive(4, 20, 4, |inner| {
        let optional = prop::option::of(inner.clone());
        let boxed = || prop::option::of(inner.clone().prop_map(Box::new));
        prop_oneof![
            inner.clone().prop_map(option),
            inner.clone().prop_map(list),
            prop::collection::vec(inner.clone(), 1..4).prop_map(ValueShape::Tuple),
            prop::collection::vec(inner.clone(), 1..4).prop_map(|shapes| {
                let numbered = shapes.into_iter().enumerate();
                ValueShape::Record(
                    numbered.map(|(n, shape)| field(&format!("field-{n}"), shape)).collect(),
                )
            }),
            prop::collection::vec(optional, 1..4).prop_map(|payloads| {
                let numbered = payloads.into_iter().enumerate();
                ValueShape::Variant(
                    numbered.map(|(n, payload)| case(&format!("case-{n}"), payload)).collect(),
                )
            }),
            (boxed(), boxed()).prop_map(|(ok, error)| ValueShape::Result { ok, error }),
        ]
    })
}

/// Generates any value of a form, written as lifting writes it.
fn any_value(shape: &ValueShape) -> BoxedStrategy<Value> {
    match shape {
        ValueShape::Bool => any::<bool>().prop_map(Value::from).boxed(),
        ValueShape::Integer(integer) => any_of_integer(*integer),
        ValueShape::Float32 => prop::num::f32::NORMAL
            .prop_map(|value| Value::from(value.to_string().parse::<f64>().unwrap()))
            .boxed(),
        ValueShape::Float64 => prop::num::f64::NORMAL.prop_map(Value::from).boxed(),
        ValueShape::Char => any::<char>().prop_map(|value| value.to_string().into()).boxed(),
        ValueShape::Text => any::<String>().prop_map(Value::from).boxed(),
        ValueShape::Bytes => prop::collection::vec(any::<u8>(), 0..9)
            .prop_map(|bytes| {
                use base64::Engine as _;
                base64::engine::general_purpose::STANDARD.encode(bytes).into()
            })
            .boxed(),
        ValueShape::List(element) => {
            prop::collection::vec(any_value(element), 0..4).prop_map(Value::Array).boxed()
        }
        ValueShape::Tuple(shapes) => {
            shapes.iter().map(any_value).collect::<Vec<_>>().prop_map(Value::Array).boxed()
        }
        ValueShape::Record(fields) => {
            let keys: Vec<_> = fields.iter().map(|field| field.key.clone()).collect();
            let values: Vec<_> = fields.iter().map(|field| any_value(&field.shape)).collect();
            values
                .prop_map(move |values| Value::Object(keys.iter().cloned().zip(values).collect()))
                .boxed()
        }
        ValueShape::Enum(names) => {
            prop::sample::select(names.clone()).prop_map(Value::from).boxed()
        }
        ValueShape::Flags(names) => {
            prop::sample::subsequence(names.clone(), 0..=names.len()).prop_map(Value::from).boxed()
        }
        ValueShape::Variant(cases) if super::shape::is_flat(cases) => {
            prop::sample::select(cases.clone()).prop_map(|case| case.name.into()).boxed()
        }
        ValueShape::Variant(cases) => {
            prop::sample::select(cases.clone()).prop_flat_map(any_of_case).boxed()
        }
        ValueShape::Option(inner) => {
            let wraps = inner.accepts_null();
            let some =
                any_value(inner).prop_map(move |v| if wraps { json!({ "some": v }) } else { v });
            prop_oneof![Just(Value::Null), some].boxed()
        }
        ValueShape::Result { ok, error } => {
            let payload = |shape: &Option<Box<ValueShape>>| {
                shape.as_deref().map_or(Just(Value::Null).boxed(), any_value)
            };
            let ok = payload(ok).prop_map(|value| json!({ "ok": value }));
            prop_oneof![ok, payload(error).prop_map(|value| json!({ "error": value }))].boxed()
        }
    }
}

fn any_of_case(case: VariantCase) -> BoxedStrategy<Value> {
    let name = case.name;
    match &case.payload {
        None => Just(json!({ "kind": name })).boxed(),
        Some(shape) => {
            any_value(shape).prop_map(move |value| json!({"kind": name, "value": value})).boxed()
        }
    }
}

fn any_of_integer(integer: Integer) -> BoxedStrategy<Value> {
    match integer {
        Integer::S8 => any::<i8>().prop_map(Value::from).boxed(),
        Integer::U8 => any::<u8>().prop_map(Value::from).boxed(),
        Integer::S16 => any::<i16>().prop_map(Value::from).boxed(),
        Integer::U16 => any::<u16>().prop_map(Value::from).boxed(),
        Integer::S32 => any::<i32>().prop_map(Value::from).boxed(),
        Integer::U32 => any::<u32>().prop_map(Value::from).boxed(),
        Integer::S64 => any::<i64>().prop_map(Value::from).boxed(),
        Integer::U64 => any::<u64>().prop_map(Value::from).boxed(),
    }
}

fn any_shape_and_value() -> impl Strategy<Value = (ValueShape, Value)> {
    any_shape().prop_flat_map(|shape| {
        let value = any_value(&shape);
        (Just(shape), value)
    })
}

proptest! {
    #[test]
    fn any_value_of_any_type_comes_back((shape, value) in any_shape_and_value()) {
        prop_assert_eq!(round_trip(&shape, &value), value);
    }

    #[test]
    fn what_is_lifted_satisfies_the_schema_of_results((shape, value) in any_shape_and_value()) {
        let schema = schema::of(&shape, Direction::Result).to_string();
        let compiled = OutputSchema::compile("t", &schema).unwrap();
        prop_assert_eq!(compiled.validate(&value), Ok(()), "{}", schema);
    }

    /// Decoded arguments can always be lowered: a model's JSON never ends in an error of the host.
    #[test]
    fn what_decodes_can_be_lowered(shape in any_shape(), text in any_argument()) {
        let value = parse_json(&text).unwrap();
        if let Ok(arguments) = decode(&shape, &value) {
            prop_assert!(lower::parameters(&[field("v", shape)], arguments.value()).is_ok());
        }
    }
}

/// Generates JSON that is often nearly valid.
fn any_argument() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "null",
        "true",
        "\"TRUE\"",
        "0",
        "-1",
        "300",
        "\"7\"",
        "1.5",
        "\"1.5\"",
        "1e300",
        "\"\"",
        "\"a\"",
        "\"ab\"",
        "\"AAA=\"",
        "\"AAB=\"",
        "\"NAME-0\"",
        "[]",
        "[null]",
        "[\"name-0\"]",
        "[1,2]",
        "{}",
        "{\"some\":null}",
        "{\"some\":{}}",
        "{\"kind\":\"case-0\"}",
        "{\"kind\":\"CASE-1\",\"value\":1}",
        "{\"value\":1}",
        "{\"kind\":\"case-0\",\"value\":null}",
        "{\"ok\":null}",
        "{\"ok\":1}",
        "{\"error\":\"x\"}",
        "{\"ok\":1,\"error\":2}",
        "{\"field_0\":1,\"field_1\":\"2\"}",
        "{\"field_0\":null}",
    ])
    .prop_map(str::to_owned)
}
