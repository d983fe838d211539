//! Tests of a history around a run, for every combination of its flags.

use serde_json::{Value, json};

use super::*;
use crate::context::ContextAdditions;
use crate::history::{History, HistoryFlags, IN_SESSION};
use crate::{AfterRun, BeforeRun, ContextProvider, Response, Session};

/// Simulates one run with `history` and a provider that adds `ctx`. Returns the loaded messages as
/// strings.
async fn run(
    history: &History,
    session: Option<&Session>,
    input: &str,
    output: &str,
) -> Vec<String> {
    let source = history.source_id();
    let mut state = session.map_or(Value::Null, |session| session.part(source));
    let input = [Arc::new(Message::user(input))];
    let mut added = ContextAdditions::default();
    added.messages.push(Arc::new(Message::user("ctx").from_source("provider")));
    let mut before = BeforeRun {
        state: &mut state,
        session,
        input: &input,
        caller: None,
        hides_untrusted: false,
        source,
        added: &mut added,
    };
    history.before_run(&mut before).await.unwrap();
    let response = Response::text_only(output);
    let context = &added.messages;
    let mut after = AfterRun {
        state: &mut state,
        session,
        input: &input,
        caller: None,
        hides_untrusted: false,
        context,
        response: &response,
        error: None,
        loaded: &[],
        compaction: None,
    };
    history.after_run(&mut after).await.unwrap();
    if let Some(session) = session {
        session.set_part(source, state);
    }
    added.messages.iter().skip(1).map(|message| message.text()).collect()
}

async fn stored(session: &Session) -> Vec<String> {
    let records = session.part(IN_SESSION)["messages"].as_array().cloned().unwrap_or_default();
    let messages =
        records.into_iter().map(|record| serde_json::from_value::<Message>(record).unwrap());
    messages.map(|message| message.text()).collect()
}

#[tokio::test]
async fn each_flag_decides_about_its_own_messages() {
    for bits in 0..16_u8 {
        let flags = HistoryFlags {
            load_messages: bits & 1 != 0,
            store_inputs: bits & 2 != 0,
            store_outputs: bits & 4 != 0,
            store_context_messages: bits & 8 != 0,
        };
        let session = Session::new();
        let history = History::in_session().with_flags(flags);
        assert_eq!(history.loads_history(), flags.load_messages);
        let turn = |input: &str, output: &str| -> Vec<String> {
            let parts = [
                (flags.store_context_messages, "ctx"),
                (flags.store_inputs, input),
                (flags.store_outputs, output),
            ];
            parts
                .into_iter()
                .filter(|(is_stored, _)| *is_stored)
                .map(|(_, text)| text.to_owned())
                .collect()
        };
        assert!(run(&history, Some(&session), "q1", "one").await.is_empty());
        let loaded = run(&history, Some(&session), "q2", "two").await;
        assert_eq!(loaded, if flags.load_messages { turn("q1", "one") } else { vec![] });
        assert_eq!(stored(&session).await, [turn("q1", "one"), turn("q2", "two")].concat());
    }
}

#[tokio::test]
async fn without_a_session_nothing_is_remembered() {
    let directory = tempfile::tempdir().unwrap();
    for history in [History::in_session(), History::in_files(open(directory.path()))] {
        assert!(run(&history, None, "q1", "one").await.is_empty());
        assert!(run(&history, None, "q2", "two").await.is_empty());
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_history_in_files_is_there_after_the_session_object_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let first = History::in_files(open(directory.path()));
    run(&first, Some(&Session::with_id("s")), "q1", "one").await;
    let second = History::in_files(open(directory.path())).with_source_id("other");
    assert_eq!(run(&second, Some(&Session::with_id("s")), "q2", "two").await, ["q1", "one"]);
    assert!(run(&second, Some(&Session::with_id("t")), "q", "a").await.is_empty());
    let written = std::fs::read_to_string(directory.path().join("s.jsonl")).unwrap();
    assert_eq!(written.lines().count(), 4);
    assert!(!written.contains("source_id"), "{written}");
}

#[tokio::test]
async fn a_history_in_the_session_is_in_its_json_form() {
    let session = Session::with_id("s");
    run(&History::in_session(), Some(&session), "q1", "one").await;
    let form = serde_json::to_string(&session).unwrap();
    let read: Session = serde_json::from_str(&form).unwrap();
    assert_eq!(run(&History::in_session(), Some(&read), "q2", "two").await, ["q1", "one"]);
}

#[tokio::test]
async fn what_one_history_has_loaded_is_not_stored_by_another() {
    let session = Session::new();
    run(&History::in_session(), Some(&session), "q1", "one").await;
    let mut state = session.part(IN_SESSION);
    let mut added = ContextAdditions::default();
    let mut before = BeforeRun {
        state: &mut state,
        session: Some(&session),
        input: &[],
        caller: None,
        hides_untrusted: false,
        source: IN_SESSION,
        added: &mut added,
    };
    History::in_session().before_run(&mut before).await.unwrap();
    assert_eq!(added.messages.len(), 2);

    let flags = HistoryFlags {
        load_messages: false,
        store_context_messages: true,
        ..HistoryFlags::default()
    };
    let audit = History::in_session().with_source_id("audit").with_flags(flags);
    let (mut state, response) = (Value::Null, Response::text_only("two"));
    let input = texts(&["q2"]);
    let mut after = AfterRun {
        state: &mut state,
        session: Some(&session),
        input: &input,
        caller: None,
        hides_untrusted: false,
        context: &added.messages,
        response: &response,
        error: None,
        loaded: &[],
        compaction: None,
    };
    audit.after_run(&mut after).await.unwrap();
    assert_eq!(state["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_state_that_holds_something_else_is_an_error_and_stays() {
    for other in [json!({"messages": 1}), json!({}), json!([1])] {
        let session = Session::new();
        let mut state = other.clone();
        let mut added = ContextAdditions::default();
        let mut before = BeforeRun {
            state: &mut state,
            session: Some(&session),
            input: &[],
            caller: None,
            hides_untrusted: false,
            source: "h",
            added: &mut added,
        };
        assert!(History::in_session().before_run(&mut before).await.is_err(), "{other}");
        assert_eq!(state, other);
    }
}

#[test]
fn the_history_that_a_run_gets_by_itself_shares_its_state_with_no_other() {
    let provider = |history: History| -> Arc<dyn ContextProvider> { Arc::new(history) };
    assert_eq!(History::beside(&[]).source_id(), IN_SESSION);
    let own = provider(History::in_session());
    assert_eq!(History::beside(&[Arc::clone(&own)]).source_id(), "in_memory_2");
    let another = provider(History::in_session().with_source_id("in_memory_2"));
    assert_eq!(History::beside(&[own, another]).source_id(), "in_memory_3");
}
