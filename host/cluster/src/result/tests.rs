use bytes::Bytes;
use cofferdam_tool::output::ResourceBody;
use cofferdam_tool::record::FileChangeKind;
use cofferdam_tool::{Content, ToolName};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::frame;
use crate::message::WorkerMessage;

fn through(outcome: Outcome) -> Completion {
    let context = CallContext::new("c1");
    let bytes = encode(Ok(Completion::ended(outcome, &context)));
    decode(&bytes, &context).unwrap()
}

#[test]
fn each_outcome_arrives_as_it_was() {
    let contents = vec![
        Content::Text("a\n\"é\"".to_owned()),
        Content::Json(json!({"z": 1, "a": [null, 0.5]})),
        Content::Blob { media_type: "image/png".to_owned(), data: vec![0, 255, 10] },
        Content::Resource {
            uri: "file:///a".to_owned(),
            media_type: None,
            body: ResourceBody::Text("t".to_owned()),
        },
        Content::Resource {
            uri: "file:///b".to_owned(),
            media_type: Some("x/y".to_owned()),
            body: ResourceBody::Blob(vec![1]),
        },
        Content::Link { uri: "u".to_owned(), name: "n".to_owned(), media_type: None },
    ];
    let failure =
        ToolFailure { suggestion: Some("list".to_owned()), ..ToolFailure::new("no order") };
    for outcome in [
        Outcome::Ok(Output::Value(json!({"z": "é", "a": [1, 2.5, null]}))),
        Outcome::Ok(Output::Contents(contents)),
        Outcome::Failure(failure),
        Outcome::Failure(ToolFailure::bare("Error: no.")),
        Outcome::Error(ToolError::new(ErrorType::CpuLimit)),
        Outcome::Error(ToolError::host("Upstream").with_error_value(|_| json!({"a": 1}))),
        Outcome::Cancelled,
    ] {
        assert_eq!(through(outcome.clone()).outcome, outcome);
    }
}

#[test]
fn details_for_the_operator_stay_with_the_worker() {
    let error = ToolError::new(ErrorType::TrapUnreachable).with_detail("secret at /host/path");
    let context = CallContext::new("c1");
    let mut completion = Completion::ended(Outcome::Error(error), &context);
    completion.record.stderr_tail = "secret".to_owned();
    completion.record.store_failures = vec!["secret".to_owned()];
    let bytes = encode(Ok(completion));
    assert!(!String::from_utf8(bytes).unwrap().contains("secret"));
}

#[test]
fn a_receipt_needs_nothing_else() {
    let context = CallContext::new("c1");
    let mut completion = Completion::ended(Outcome::Ok(Output::Value(json!(1))), &context);
    let change = cofferdam_tool::record::FileChange {
        mount: "data".to_owned(),
        path: "a".to_owned(),
        what: FileChangeKind::Created,
        bytes: 3,
        diff: None,
    };
    completion.record.set_files(vec![change.clone()]);
    completion.record.cpu = std::time::Duration::from_micros(7);
    completion.record.tool = ToolName::new("t").ok();
    let read = decode(&encode(Ok(completion)), &context).unwrap();
    assert_eq!(read.record.files, [change]);
    assert_eq!(read.record.cpu.as_micros(), 7);
    assert_eq!(read.record.call_id, "c1");
}

#[test]
fn a_refused_call_is_a_failure_for_the_model() {
    let refused = RefusedCall::UnknownTool { name: "t".to_owned(), nearest: None };
    let read = decode(&encode(Err(refused)), &CallContext::default()).unwrap();
    let failure = ToolFailure::new("there is no tool called 't'");
    assert_eq!(read.outcome, Outcome::Failure(failure));
}

#[test]
fn a_result_over_the_limit_is_an_error_of_its_own() {
    let large = Outcome::Ok(Output::Value("x".repeat(parts::RESULT_BYTES_MAX).into()));
    let Outcome::Error(error) = through(large).outcome else { panic!("an error was expected") };
    assert_eq!(error.type_name(), RESULT_TOO_LARGE);
    let shown = error.error_value()["message"].as_str().unwrap().to_owned();
    assert!(shown.contains("The tool ran"), "{shown}");
}

/// Returns the deepest value that can be read from JSON.
fn deepest() -> serde_json::Value {
    serde_json::from_str(&format!("{}{}", "[".repeat(127), "]".repeat(127))).unwrap()
}

#[test]
fn values_are_as_deep_as_those_of_local_calls() {
    let failure = ToolFailure { value: Some(deepest()), ..ToolFailure::new("no order") };
    for outcome in [
        Outcome::Ok(Output::Value(deepest())),
        Outcome::Ok(Output::Contents(vec![Content::Json(deepest())])),
        Outcome::Failure(failure),
        Outcome::Error(ToolError::host("Upstream").with_error_value(|_| deepest())),
    ] {
        assert_eq!(through(outcome.clone()).outcome, outcome);
    }
}

#[test]
fn a_result_that_cannot_be_read_is_final() {
    let deeper = json!([deepest()]);
    let context = CallContext::new("c1");
    let bytes = encode(Ok(Completion::ended(Outcome::Ok(Output::Value(deeper)), &context)));
    assert!(decode(&bytes, &context).is_err());
    assert!(is_final(&bytes) && is_final(b"{}"));
    let transient = ToolFailure { transient: Some(true), ..ToolFailure::new("later") };
    for outcome in [Outcome::Cancelled, Outcome::Failure(transient)] {
        assert!(!is_final(&encode(Ok(Completion::ended(outcome, &context)))));
    }
}

fn parts_of(frames: &[Bytes]) -> Vec<((u32, u32), u64, Bytes)> {
    let part = |frame: &Bytes| match frame::decode(frame).unwrap() {
        (WorkerMessage::Result { part, parts, bytes, .. }, body) => ((part, parts), bytes, body),
        (other, _) => panic!("{other:?} is not a part of a result"),
    };
    frames.iter().map(part).collect()
}

#[test]
fn parts_arrive_in_any_order_and_twice() {
    let result = Bytes::from((0..2_000_000_u32).map(|i| i as u8).collect::<Vec<_>>());
    let frames = split(3, &result, 1024 * 1024);
    assert!(frames.iter().all(|frame| frame.len() <= 1024 * 1024));
    let mut arriving = parts_of(&frames);
    assert_eq!(arriving.len(), 4);
    arriving.reverse();
    arriving.insert(1, arriving[0].clone());
    let mut parts = ResultParts::default();
    let mut complete = None;
    for (number, bytes, body) in arriving {
        assert_eq!(complete, None);
        complete = parts.add(number, bytes, body).unwrap();
    }
    assert_eq!(complete, Some(result));
}

#[test]
fn parts_that_claim_too_much_allocate_nothing() {
    let body = || Bytes::from_static(b"x");
    for (number, bytes) in [
        ((0, 1), 2),
        ((0, 1), u64::MAX),
        ((0, u32::MAX), 10),
        ((2, 2), 10),
        ((0, 0), 0),
        ((0, 2), 17 * 1024 * 1024),
        ((0, 16 * 1024 * 1024), 16 * 1024 * 1024),
    ] {
        assert!(ResultParts::default().add(number, bytes, body()).is_err(), "{number:?} {bytes}");
    }
    let mut parts = ResultParts::default();
    assert_eq!(parts.add((0, 2), 2, body()), Ok(None));
    assert!(parts.add((1, 3), 2, body()).is_err());
    assert!(parts.add((1, 2), 3, body()).is_err());
    assert!(parts.add((1, 2), 2, Bytes::from_static(b"xy")).is_err());
}

proptest! {
    #[test]
    fn no_bytes_of_a_result_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode(&bytes, &CallContext::default());
    }
}
