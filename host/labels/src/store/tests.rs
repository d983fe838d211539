//! Tests of the state of a session.

use std::thread;

use super::*;

fn principal(name: String) -> Label {
    Label { principals: [name].into(), ..Label::untrusted() }
}

#[test]
fn concurrent_changes_of_a_session_are_all_kept() {
    const COUNT: usize = 50;
    let session = Session::with_id("s");
    thread::scope(|scope| {
        for thread in 0..2 {
            let session = &session;
            scope.spawn(move || {
                for number in 0..COUNT {
                    taint(session, &principal(format!("{thread}.{number}")));
                }
            });
            scope.spawn(move || {
                let store = Store::new(session.clone());
                for _ in 0..COUNT {
                    store.hide(&HiddenValue::text("x"), &Label::untrusted()).unwrap();
                }
            });
        }
    });
    assert_eq!(context_of(&session).principals.len(), 2 * COUNT);
    let store = Store::new(session);
    let labels = store.labels();
    assert_eq!(labels.len(), 2 * COUNT);
    assert!(labels.keys().all(|id| store.value(id).is_some()));
}

#[test]
fn the_refusal_of_a_large_value_says_which_limit_it_exceeds() {
    let store = Store::new(Session::with_id("s"));
    let message = |text: String| {
        store.hide(&HiddenValue::text(text), &Label::untrusted()).unwrap_err().to_string()
    };
    let large = message("x".repeat(VALUE_BYTES_MAX + 1));
    assert!(large.ends_with("it has more than 4194304 bytes."), "{large}");
    // JSON writes this character with six bytes.
    let escaped = message("\u{1}".repeat(BYTES_MAX / 6));
    assert!(escaped.ends_with("it has more than 8388608 bytes as JSON."), "{escaped}");
    assert!(store.labels().is_empty());
}

#[test]
fn deleted_variables_leave_no_value_in_the_session() {
    let store = Store::new(Session::with_id("s"));
    let half = HiddenValue::text("x".repeat(BYTES_MAX / 2 - 100));
    let hide = || store.hide(&half, &Label::untrusted()).unwrap();
    let [first, second, third] = [hide(), hide(), hide()];
    assert_eq!(store.value(&first), None);
    assert!(store.value(&second).is_some() && store.value(&third).is_some());
    assert_eq!(store.labels().len(), 2);
    assert!(!serde_json::to_string(&store.session).unwrap().contains(&first));
}
