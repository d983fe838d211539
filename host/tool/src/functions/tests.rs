use std::sync::Arc;

use serde_json::json;

use super::{FunctionEnd, Functions};
use crate::declaration::Declaration;
use crate::label::{Confidentiality, StatedLabels};
use crate::{
    CallContext, CallRecord, Completion, RefusedCall, ToolFailure, ToolName, ToolSource as _,
    Toolset,
};

const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{}}"#;

async fn call(
    functions: Functions,
    name: &str,
    arguments: &str,
) -> Result<Completion, RefusedCall> {
    toolset(functions).call(name, Some(arguments.as_bytes()), &CallContext::new("1")).await
}

fn toolset(functions: Functions) -> Toolset {
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions)).unwrap();
    toolset
}

fn shown(completion: &Completion) -> String {
    completion.outcome.shown().unwrap().text()
}

fn half() -> Functions {
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#;
    Functions::new("math")
        .with(Declaration::new("half", "Half of a number.", schema), async |arguments, _| {
            match arguments.value()["a"].as_i64() {
                Some(13) => Err(ToolFailure::new("13 is unlucky").into()),
                Some(a) if a % 2 == 0 => Ok(json!(a / 2)),
                _ => Err("x".parse::<i64>().unwrap_err().into()),
            }
        })
        .unwrap()
}

#[tokio::test]
async fn a_function_ends_like_a_tool() {
    let shown = async |arguments| call(half(), "half", arguments).await.map(|it| shown(&it));
    assert_eq!(shown(r#"{"a":"8"}"#).await.unwrap(), "4");
    assert_eq!(shown(r#"{"a":13}"#).await.unwrap(), r#"{"error":{"message":"13 is unlucky"}}"#);
    let error = r#"{"error":{"message":"An unexpected error occurred (ParseIntError). Please try again."}}"#;
    assert_eq!(shown(r#"{"a":7}"#).await.unwrap(), error);
    assert!(matches!(shown("{}").await, Err(RefusedCall::InvalidArguments(_))));
}

#[tokio::test]
async fn a_result_is_validated_by_the_declared_schema() {
    let declaration = Declaration {
        output_schema: Some(r#"{"type":"integer"}"#.to_owned()),
        ..Declaration::new("wrong", "Breaks its schema.", NO_ARGUMENTS)
    };
    let wrong = Functions::new("tests").with(declaration, async |_, _| Ok(json!("text")));
    let completion = call(wrong.unwrap(), "wrong", "{}").await.unwrap();
    assert!(shown(&completion).contains("(InvalidResult)"));
    assert!(completion.record.detail.unwrap().contains("type"));
}

#[tokio::test]
async fn a_switch_shows_the_messages_of_errors() {
    let seven = r#"{"a":7}"#;
    let ended = call(half().with_detailed_errors(true), "half", seven).await.unwrap();
    let text = r#"{"error":{"message":"An unexpected error occurred (ParseIntError): invalid digit found in string"}}"#;
    assert_eq!(shown(&ended), text);
    let panicked = call(panicking().with_detailed_errors(true), "fail_sync", "{}").await.unwrap();
    let text = r#"{"error":{"message":"An unexpected error occurred (Panic): the function panicked: no future yet"}}"#;
    assert_eq!(shown(&panicked), text);
    let reported = call(half().with_detailed_errors(true), "half", r#"{"a":13}"#).await.unwrap();
    assert_eq!(shown(&reported), r#"{"error":{"message":"13 is unlucky"}}"#);
}

fn panicking() -> Functions {
    let schema = r#"{"type":"object","properties":{"how":{"type":"string"}},"required":["how"]}"#;
    Functions::new("tests")
        .with(Declaration::new("fail", "May panic.", schema), async |arguments, _| match arguments
            .value()["how"]
            .as_str()
        {
            Some("at once") => panic!("a plain secret"),
            Some("later") => {
                tokio::task::yield_now().await;
                panic!("secret {}", 7)
            }
            Some("value") => std::panic::panic_any(7_u8),
            _ => Ok(json!("fine")),
        })
        .and_then(|functions| {
            let declaration = Declaration::new("fail_sync", "Panics.", NO_ARGUMENTS);
            functions.with(declaration, |_, _| -> std::future::Ready<Result<_, FunctionEnd>> {
                panic!("no future yet")
            })
        })
        .unwrap()
}

#[track_caller]
fn assert_panicked(completion: &Completion, detail: &str) {
    let envelope =
        r#"{"error":{"message":"An unexpected error occurred (Panic). Please try again."}}"#;
    assert_eq!(shown(completion), envelope);
    let CallRecord { outcome, error_type, detail: found, .. } = &*completion.record;
    assert_eq!((*outcome, error_type.as_deref()), ("error", Some("Panic")));
    assert_eq!(found.as_deref(), Some(detail));
}

#[tokio::test]
async fn a_panic_ends_one_call_and_its_message_is_in_the_record() {
    let toolset = toolset(panicking());
    let context = CallContext::new("1");
    let fail = async |how: &str| {
        let arguments = json!({"how": how}).to_string();
        toolset.call("fail", Some(arguments.as_bytes()), &context).await.unwrap()
    };
    let (later, other) = tokio::join!(fail("later"), fail("not"));
    assert_panicked(&later, "the function panicked: secret 7");
    assert_eq!(shown(&other), "fine");
    assert_panicked(&fail("at once").await, "the function panicked: a plain secret");
    let value = "the function panicked with a value that is not a string";
    assert_panicked(&fail("value").await, value);
    let sync = toolset.call("fail_sync", None, &context).await.unwrap();
    assert_panicked(&sync, "the function panicked: no future yet");
    assert_eq!(shown(&fail("not").await), "fine");
}

#[test]
fn labels_can_be_set_before_the_function_exists() {
    let private =
        StatedLabels { confidentiality: Some(Confidentiality::Private), ..StatedLabels::default() };
    let schema = Declaration::new("late", "Comes late.", NO_ARGUMENTS);
    let functions = Functions::new("tests")
        .with_labels("late", private.clone())
        .with(schema, async |_, _| Ok(json!(1)))
        .unwrap();
    assert_eq!(functions.labels(&ToolName::new("late").unwrap()), private);
    assert!(format!("{functions:?}").contains("[\"late\"]"), "{functions:?}");
}

#[tokio::test]
async fn a_long_unknown_name_is_cut_in_the_message() {
    let refused = |name: String| async move { call(half(), &name, "{}").await.unwrap_err() };
    let message = refused("é\n".repeat(1 << 20)).await.to_string();
    assert_eq!(message, format!("there is no tool called '{}…'", "é\\u{a}".repeat(100)));
    let message = refused("n".repeat(200)).await.to_string();
    assert_eq!(message, format!("there is no tool called '{}'", "n".repeat(200)));
}
