//! Calls that a tool starts and waits for later, with the host of tests.

use cofferdam_sdk::testing::Host;
use cofferdam_sdk::tool_calls::{EndedCall, ErrorKind, call_all, start, wait_any};
use cofferdam_sdk::{ToolFailure, json, tool};

/// Calls tools, one of which fails.
#[tool]
fn calls() -> Result<String, ToolFailure> {
    let first = start("double", &json!({"n": 2}));
    let second = start("double", &json!({"n": 3}));
    let ended = wait_any();
    assert_eq!(ended.iter().map(|ended| ended.call).collect::<Vec<_>>(), [first, second]);
    assert!(wait_any().is_empty());
    let values: Result<Vec<_>, _> = ended.into_iter().map(EndedCall::value).collect();
    assert_eq!(values.unwrap(), [json!(4), json!(6)]);
    let values =
        call_all([("double", json!({"n": 4})), ("refuse", json!({})), ("none", json!({}))]);
    let [doubled, refused, unknown] = values.as_slice() else {
        return Ok("not three results".to_owned());
    };
    assert_eq!(*doubled, Ok(json!(8)));
    let refused = refused.clone().unwrap_err();
    assert_eq!((refused.kind, &*refused.message), (ErrorKind::Failed, "closed"));
    assert_eq!(refused.suggestion.as_deref(), Some("wait"));
    assert_eq!(unknown.clone().unwrap_err().kind, ErrorKind::UnknownTool);
    // The host drops what nothing waits for.
    start("double", &json!({"n": 5}));
    values.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok("not reached".to_owned())
}

#[test]
fn calls_of_a_test_host_end_at_once() {
    let host = Host::new()
        .tool("double", |arguments| Ok(json!(arguments["n"].as_i64().unwrap_or(0) * 2)))
        .tool("refuse", |_| Err(ToolFailure::new("closed").suggestion("wait")));
    for _ in 0..2 {
        // The text of the error is meant for the model.
        let failure = host.call::<calls>(json!({})).unwrap_err();
        assert_eq!(failure.message(), "closed; wait");
    }
}

#[test]
fn without_a_host_there_is_no_tool() {
    start("double", &json!({}));
    assert!(wait_any().is_empty());
}
