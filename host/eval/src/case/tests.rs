use proptest::prelude::*;
use serde_json::json;

use super::*;

fn error(line: &str) -> String {
    read_cases("c.jsonl", line.as_bytes()).unwrap_err().to_string()
}

#[test]
fn a_case_is_read_with_its_defaults() {
    let text = "\n// The first case.\n{\"name\":\"n\",\"prompt\":\"p\"}\n";
    let cases = read_cases("c.jsonl", text.as_bytes()).unwrap();
    let [case] = &cases[..] else { panic!("{cases:?}") };
    assert_eq!((case.name.as_str(), &case.turns[..], case.runs), ("n", &["p".to_owned()][..], 1));
    assert_eq!((case.pass, case.order, case.extra), (PassCriterion::All, CallOrder::Any, None));
    assert_eq!(case.limits, RunLimits::default());
}

#[test]
fn every_field_is_read() {
    let case = EvalCase::from_value(&json!({
        "name": "n", "turns": ["a", "b"], "runs": 5, "pass": {"k": 3},
        "calls": [{"tool": "t", "arguments": {"x": 1}, "match": "exact", "min": 0, "max": 2}],
        "order": "in-order", "extra": 0, "forbidden": ["f"],
        "answer": {"contains": "x", "not-contains": ["y", "z"], "regex": "^x", "equals": null,
                   "schema": {"type": "string"}},
        "limits": {"rounds": 2, "tokens": 100, "seconds": 1.5},
    }))
    .unwrap();
    assert_eq!(case.turns, ["a", "b"]);
    assert_eq!(
        (case.pass, case.order, case.extra),
        (PassCriterion::K(3), CallOrder::InOrder, Some(0))
    );
    let call = &case.calls[0];
    assert_eq!((call.matching, call.min(), call.capacity()), (ArgumentMatch::Exact, 0, Some(2)));
    assert_eq!(
        (&case.answer.contains[..], &case.answer.not_contains[..]),
        (&["x".to_owned()][..], &["y".to_owned(), "z".to_owned()][..],)
    );
    assert_eq!(case.answer.equals, Some(Value::Null));
    assert!(case.answer.regex.is_some() && case.answer.schema.is_some());
    let limits = RunLimits { rounds: Some(2), tokens: Some(100), seconds: Some(1.5) };
    assert_eq!(case.limits, limits);
}

#[test]
fn errors_name_the_line_the_field_and_both_values() {
    let rows = [
        ("[1]", "expected a JSON object, found [1]"),
        ("{", "expected a JSON object, found an error at column 1: EOF while parsing an object"),
        (
            r#"{"name":"a","name":"b"}"#,
            "expected a JSON object, found an error at column 18: the key `name` is repeated",
        ),
        (r#"{"prompt":"p"}"#, "`name`: expected a value, found no such field"),
        (
            r#"{"name":" ","prompt":"p"}"#,
            "`name`: expected a string that is not empty, found \" \"",
        ),
        (r#"{"name":"n"}"#, "`prompt`: expected either `prompt` or `turns`, found neither"),
        (
            r#"{"name":"n","prompt":"p","turns":["t"]}"#,
            "`prompt`: expected either `prompt` or `turns`, found both",
        ),
        (r#"{"name":"n","turns":[]}"#, "`turns`: expected at least one string, found []"),
        (
            r#"{"name":"n","turns":["a",1]}"#,
            "`turns[1]`: expected a string that is not empty, found 1",
        ),
        (
            r#"{"name":"n","prompt":"p","limits":{"round":1}}"#,
            "`limits.round`: expected one of the fields rounds, tokens, seconds, found an unknown \
             field",
        ),
        (
            r#"{"name":"n","prompt":"p","runs":0}"#,
            "`runs`: expected a whole number from 1 to 1000, found 0",
        ),
        (
            r#"{"name":"n","prompt":"p","runs":2,"pass":{"k":3}}"#,
            "`pass.k`: expected a whole number from 1 to 2, the number of runs, found 3",
        ),
        (
            r#"{"name":"n","prompt":"p","pass":{"rate":1.5}}"#,
            "`pass.rate`: expected a number above 0, at most 1, found 1.5",
        ),
        (
            r#"{"name":"n","prompt":"p","pass":"any"}"#,
            "`pass`: expected \"all\", {\"rate\": …} or {\"k\": …}, found \"any\"",
        ),
        (
            r#"{"name":"n","prompt":"p","calls":[{"tool":"t"},{"tool":"t","match":"some"}]}"#,
            "`calls[1].match`: expected \"partial\" or \"exact\" or \"ignore\", found \"some\"",
        ),
        (
            r#"{"name":"n","prompt":"p","calls":[{"tool":"t","min":3,"max":2}]}"#,
            "`calls[0].min`: expected at most 2, which is `max`, found 3",
        ),
        (
            r#"{"name":"n","prompt":"p","calls":[{"tool":"t","arguments":{},"match":"ignore"}]}"#,
            "`calls[0].arguments`: expected no arguments, because `match` is \"ignore\", found {}",
        ),
        (
            r#"{"name":"n","prompt":"p","none":true,"calls":[{"tool":"t"}]}"#,
            "`none`: expected false, because the case expects calls, found true",
        ),
        (
            r#"{"name":"n","prompt":"p","forbidden":["t"],"calls":[{"tool":"t"}]}"#,
            "`forbidden`: expected no tool of `calls`, such as \"t\", found [\"t\"]",
        ),
        (
            r#"{"name":"n","prompt":"p","order":"exact"}"#,
            "`order`: expected a case with calls, whose order it is, found \"exact\"",
        ),
        (
            r#"{"name":"n","prompt":"p","order":"exact","extra":1,"calls":[{"tool":"t"}]}"#,
            "`extra`: expected 0, because the order is exact, found 1",
        ),
        (
            r#"{"name":"n","prompt":"p","answer":{"regex":"("}}"#,
            "`answer.regex`: expected a regular expression, found \"(\": unclosed group",
        ),
        (
            r#"{"name":"n","prompt":"p","answer":{"contains":1}}"#,
            "`answer.contains`: expected a string, or a list of strings, found 1",
        ),
        (
            r#"{"name":"n","prompt":"p","answer":{}}"#,
            "`answer`: expected at least one of contains, not-contains, regex, equals, schema, \
             found {}",
        ),
        (
            r#"{"name":"n","prompt":"p","answer":{"contains":[]}}"#,
            "`answer`: expected at least one of contains, not-contains, regex, equals, schema, \
             found {\"contains\":[]}",
        ),
    ];
    for (line, message) in rows {
        assert_eq!(error(&format!("\n{line}")), format!("c.jsonl:2: {message}"), "{line}");
    }
    let schema = r#"{"name":"n","prompt":"p","answer":{"schema":{"type":"strin"}}}"#;
    let message = error(schema);
    assert!(message.starts_with("c.jsonl:1: `answer.schema`: expected a JSON Schema, found "));
}

#[test]
fn all_invalid_lines_are_reported_and_names_are_unique() {
    let line = r#"{"name":"n","prompt":"p"}"#;
    assert_eq!(
        error(&format!("{line}\n{{}}\n{line}")),
        "c.jsonl:2: `name`: expected a value, found no such field\nc.jsonl:3: `name`: expected a \
         name that no other case has, found the name \"n\" of line 1"
    );
    assert!(matches!(read_cases("c", "\n".as_bytes()), Err(CasesError::Empty { .. })));
    let latin = read_cases("c", &b"\xff"[..]);
    assert!(matches!(latin, Err(CasesError::Unreadable { .. })));
}

#[test]
fn files_and_lists_are_limited() {
    let endless = std::io::repeat(b' ');
    assert!(matches!(read_cases("c", endless), Err(CasesError::TooLarge { .. })));
    let many: String = "{}\n".repeat(CASES_MAX + 1);
    assert!(matches!(read_cases("c", many.as_bytes()), Err(CasesError::TooMany { .. })));
    let invalid = "{}\n".repeat(CASES_MAX);
    match read_cases("c", invalid.as_bytes()) {
        Err(CasesError::Lines(lines)) => assert_eq!(lines.len(), 100),
        other => panic!("{other:?}"),
    }
    let calls = vec![json!({"tool": "t"}); EXPECTED_CALLS_MAX + 1];
    let error = EvalCase::from_value(&json!({"name": "n", "prompt": "p", "calls": calls}));
    assert_eq!(error.unwrap_err().to_string(), "`calls`: expected at most 64 calls, found 65");
    let deep = format!("{{\"name\":{}", "[".repeat(100_000));
    assert!(matches!(read_cases("c", deep.as_bytes()), Err(CasesError::Lines(_))));
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z(]{0,4}".prop_map(Value::from),
    ];
    let fields = [
        "name",
        "prompt",
        "turns",
        "runs",
        "pass",
        "calls",
        "order",
        "extra",
        "forbidden",
        "none",
        "answer",
        "limits",
        "tool",
        "arguments",
        "match",
        "min",
        "max",
        "k",
        "rate",
        "regex",
        "schema",
        "equals",
        "contains",
        "tokens",
        "seconds",
    ];
    leaf.prop_recursive(4, 64, 8, move |inner| {
        let key = prop::sample::select(fields.to_vec());
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..8).prop_map(|members| {
                members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), case in json_value()) {
        let _ = read_cases("c", &bytes[..]);
        let read = read_cases("c", case.to_string().as_bytes());
        let by_value = EvalCase::from_value(&case);
        prop_assert_eq!(read.is_ok(), by_value.is_ok());
    }
}
