use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Functions, Outcome, Output, ToolError, ToolFailure};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn key() -> LedgerKey {
    LedgerKey {
        owner: Owner { principal: String::new(), session: "s".to_owned() },
        code: "return 1".to_owned(),
        interpreter: "sha256:1".to_owned(),
        tools: "{}".into(),
    }
}

fn tools() -> BTreeMap<String, String> {
    [("a", "1"), ("b", "2")].map(|(name, digest)| (name.to_owned(), digest.to_owned())).into()
}

fn call(arguments: Value, outcome: Outcome, label: Option<Label>) -> CompletedCall {
    let tool = ToolName::new("a").unwrap();
    let mut completion = Completion::ended(outcome, &CallContext::default());
    completion.record.tool = Some(tool.clone());
    completion.record.label = label;
    let Value::Object(arguments) = arguments else { panic!("{arguments}") };
    CompletedCall { tool, arguments, completion }
}

fn ledger(calls: impl IntoIterator<Item = CompletedCall>) -> Ledger {
    let mut values = SessionValues::default();
    values.store("k", json!([1.5, "x"])).unwrap();
    values.add_label(Some(&Label::untrusted()));
    values.keep(json!({"whole": true}));
    let calls = (1..).zip(calls).collect();
    Ledger { calls, ..Ledger::new((u64::MAX, 1), values, None) }
}

fn pending() -> PendingCall {
    let arguments = Map::from_iter([("file_name".to_owned(), json!("ä.md"))]);
    PendingCall { number: 9, tool: ToolName::new("b").unwrap(), arguments }
}

async fn written(ledger: &Ledger) -> Result<Vec<u8>, UnkeepableLedger> {
    write(&key(), &tools(), ledger, &pending(), &[]).await
}

async fn read_back(json: &[u8]) -> Result<(Ledger, PendingCall), UnusableLedger> {
    read(json, &key(), &tools(), &[]).await
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        json_value().prop_map(|value| Outcome::Ok(Output::Value(value))),
        any::<String>().prop_map(|message| Outcome::Failure(ToolFailure::new(message))),
        any::<String>().prop_map(|name| Outcome::Error(ToolError::host(format!("H.{name}")))),
        Just(Outcome::Cancelled),
    ]
}

fn completed_call() -> impl Strategy<Value = CompletedCall> {
    let arguments = proptest::collection::btree_map(any::<String>(), json_value(), 0..4);
    (arguments, outcome(), any::<bool>()).prop_map(|(arguments, outcome, has_label)| {
        let arguments = Value::Object(arguments.into_iter().collect());
        call(arguments, outcome, has_label.then(Label::untrusted))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_ledger_is_read_back_equal(
        calls in proptest::collection::vec(completed_call(), 0..6),
        seed in any::<u64>(),
    ) {
        let ledger = Ledger { seed, ..ledger(calls) };
        let (read, call) = runtime().block_on(async {
            read_back(&written(&ledger).await.unwrap()).await.unwrap()
        });
        prop_assert_eq!(call, pending());
        prop_assert_eq!((read.seed, read.now, &read.values), (seed, 1, &ledger.values));
        prop_assert_eq!(read.calls.len(), ledger.calls.len());
        for (number, before) in &ledger.calls {
            let after = &read.calls[number];
            prop_assert_eq!((&after.tool, &after.arguments), (&before.tool, &before.arguments));
            prop_assert_eq!(&after.completion.outcome, &before.completion.outcome);
            prop_assert_eq!(&after.completion.record.label, &before.completion.record.label);
        }
    }
}

#[tokio::test]
async fn every_truncation_is_refused() {
    let value = Outcome::Ok(Output::Value(json!({"n": 2})));
    let json = written(&ledger([call(json!({"a": 1}), value, None)])).await.unwrap();
    assert!(read_back(&json).await.is_ok());
    for length in 0..json.len() {
        let read = read_back(&json[..length]).await;
        assert!(matches!(read, Err(UnusableLedger::Seal(LedgerError::Invalid))), "{length}");
    }
}

#[tokio::test]
async fn a_ledger_belongs_to_its_session_program_interpreter_and_tools() {
    let json = written(&ledger([])).await.unwrap();
    let refused = async |key: &LedgerKey, tools: &BTreeMap<String, String>| {
        read(&json, key, tools, &[]).await.err().map(|error| error.to_string())
    };
    assert_eq!(refused(&key(), &tools()).await, None);
    let owner = Owner { session: "t".to_owned(), ..key().owner };
    let other = LedgerKey { owner, ..key() };
    assert_eq!(refused(&other, &tools()).await.unwrap(), "its ledger belongs to another session");
    let other = LedgerKey { code: "return 2".to_owned(), ..key() };
    assert_eq!(refused(&other, &tools()).await.unwrap(), "its ledger belongs to another program");
    let other = LedgerKey { interpreter: "sha256:2".to_owned(), ..key() };
    assert_eq!(refused(&other, &tools()).await.unwrap(), "the interpreter has changed since");
    let mut changed = tools();
    changed.insert("b".to_owned(), "3".to_owned());
    changed.insert("c".to_owned(), "4".to_owned());
    assert_eq!(refused(&key(), &changed).await.unwrap(), "tools have changed since: 'b', 'c'");
    let (mut many, name) = (tools(), |index: usize| format!("t{index}"));
    many.extend((0..4).map(|index| (name(index), String::new())));
    assert_eq!(
        refused(&key(), &many).await.unwrap(),
        "tools have changed since: 't0', 't1', 't2' and 1 more"
    );
}

#[tokio::test]
async fn a_ledger_that_is_too_large_is_not_written() {
    let large = |bytes: usize| Outcome::Ok(Output::Value("x".repeat(bytes).into()));
    let fits = ledger([call(json!({}), large(LEDGER_BYTES_MAX / 2), None)]);
    assert!(written(&fits).await.is_ok());
    let half = LEDGER_BYTES_MAX / 2;
    let calls = [half, half].map(|bytes| call(json!({}), large(bytes), None));
    assert_eq!(written(&ledger(calls)).await, Err(UnkeepableLedger::TooLarge));
    let arguments = call(json!({"a": "x".repeat(LEDGER_BYTES_MAX)}), Outcome::Cancelled, None);
    assert_eq!(written(&ledger([arguments])).await, Err(UnkeepableLedger::TooLarge));
}

#[test]
fn digests_cover_the_definition_and_the_origin() {
    let digest = |source: &str, description: &str, schema: &str| {
        let tool = Declaration::new("add", description, schema);
        let functions = Functions::new(source);
        let functions = functions.with(tool, async |_, _| Ok(Value::Null)).unwrap();
        let mut toolset = Toolset::new();
        toolset.add(std::sync::Arc::new(functions)).unwrap();
        digests(&toolset).remove("add").unwrap()
    };
    let first = digest("math", "Adds.", r#"{"type":"object"}"#);
    assert_eq!(first, digest("math", "Adds.", r#"{"type":"object"}"#));
    let closed = r#"{"type":"object","additionalProperties":false}"#;
    let others = [
        digest("other", "Adds.", r#"{"type":"object"}"#),
        digest("math", "Sums.", r#"{"type":"object"}"#),
        digest("math", "Adds.", closed),
    ];
    assert!(others.iter().all(|other| *other != first));
}
