use std::future::{Future as _, poll_fn};
use std::task::Poll;
use std::time::Duration;

use cofferdam_record::{CallFilter, Log, LogEvent, PayloadKind, PayloadMode, Recorder};

use super::{Place, call, toolset};

#[tokio::test]
async fn calls_of_all_outcomes_are_found_again() {
    let place = Place::new();
    let recorder = place.recorder();
    let tools = toolset(&recorder);
    for (tool, arguments) in [
        ("echo", r#"{"a":1}"#),
        ("fail", ""),
        ("break", ""),
        ("nothing", ""),
        ("echo", "[]"),
        ("sleep", ""),
    ] {
        call(&tools, tool, arguments, "s").await;
    }
    {
        let context = cofferdam_tool::CallContext::new("c");
        let mut dropped = Box::pin(tools.call("sleep", None, &context));
        assert!(poll_fn(|task| Poll::Ready(dropped.as_mut().poll(task).is_pending())).await);
    }
    recorder.flush();
    let log = Log::open(place.path()).unwrap();
    let check = || {
        let found = log.query(&CallFilter::default()).unwrap();
        let seen: Vec<_> = found
            .calls
            .iter()
            .rev()
            .map(|c| format!("{} {} {}", c.tool, c.outcome, c.error.as_deref().unwrap_or("-")))
            .collect();
        assert_eq!(
            seen,
            [
                "echo ok -",
                "fail failure -",
                "break error ParseIntError",
                "nothing refused UnknownTool",
                "echo refused InvalidArguments",
                "sleep ok -",
                "sleep cancelled -"
            ]
        );
        assert!(found.damage.torn.is_empty() && found.damage.unreadable.is_empty());
        found.calls
    };
    let calls = check();
    assert!(calls[1].duration() >= Duration::from_millis(50), "{:?}", calls[1]);
    assert_eq!(calls[6].session.as_deref(), Some("s"));
    assert_eq!((&*calls[6].call, calls[6].source.as_deref()), ("call-of-caller", Some("samples")));
    assert_eq!(calls[6].arguments, calls[6].result);
    assert_eq!(calls[6].arguments.as_ref().unwrap().bytes, 7);
    assert_eq!(calls[6].id, recorder.call_id(1));
    assert!(calls[4].detail.is_some());
    recorder.close();
    assert_eq!(check(), calls);
    assert_eq!(log.find(&calls[0].id).unwrap(), calls[0]);
    let segments = log.segments().unwrap();
    assert!(segments.len() == 1 && segments[0].name().ends_with(".jsonl.gz"));
    assert!(segments[0].is_closed() && !segments[0].is_live());
}

#[tokio::test]
async fn stored_payloads_are_read_again() {
    let place = Place::new();
    let recorder = std::sync::Arc::new(Recorder::open(place.options(PayloadMode::Local)).unwrap());
    let tools = toolset(&recorder);
    let long = format!(r#"{{"text":"{}"}}"#, "long ".repeat(4000));
    call(&tools, "echo", r#"{"text":"short"}"#, "s").await;
    call(&tools, "echo", &long, "s").await;
    recorder.close();
    let log = Log::open(place.path()).unwrap();
    let calls = log.query(&CallFilter::default()).unwrap().calls;
    for (entry, text) in [(&calls[1], r#"{"text":"short"}"#), (&calls[0], &*long)] {
        for kind in [PayloadKind::Arguments, PayloadKind::Result] {
            let payload = log.payload(entry, kind).unwrap().unwrap();
            assert_eq!(String::from_utf8(payload).unwrap(), text);
        }
        assert_eq!(log.payload(entry, PayloadKind::Stdout).unwrap(), None);
    }
    let text = |text: &str| CallFilter { text: Some(text.to_owned()), ..CallFilter::default() };
    assert_eq!(log.query(&text("long long")).unwrap().calls.len(), 1);
    assert_eq!(log.query(&text("call-of-caller")).unwrap().calls.len(), 2);
    assert_eq!(log.query(&text("elsewhere")).unwrap().calls.len(), 0);
}

#[tokio::test]
async fn a_long_payload_is_cut_and_marked() {
    let place = Place::new();
    let mut options = place.options(PayloadMode::Local);
    options.payload_bytes_max = 100;
    let recorder = std::sync::Arc::new(Recorder::open(options).unwrap());
    let tools = toolset(&recorder);
    call(&tools, "echo", &format!(r#"{{"text":"{}"}}"#, "x".repeat(1000)), "s").await;
    recorder.close();
    let log = Log::open(place.path()).unwrap();
    let calls = log.query(&CallFilter::default()).unwrap().calls;
    let digest = calls[0].payload(PayloadKind::Arguments).unwrap();
    assert!(digest.is_cut && digest.bytes == 100, "{digest:?}");
    assert_eq!(log.payload(&calls[0], PayloadKind::Arguments).unwrap().unwrap().len(), 100);
}

#[test]
fn events_are_found_again() {
    let place = Place::new();
    let recorder = place.recorder();
    let events = [
        LogEvent::Model {
            provider: "p".to_owned(),
            model: "m".to_owned(),
            session: None,
            input_tokens: Some(1),
            output_tokens: None,
            finish: "stop".to_owned(),
            trace: None,
            exchange: None,
            duration: Duration::from_micros(5),
        },
        LogEvent::Approval {
            tool: "t".to_owned(),
            call: "c".to_owned(),
            by: "user".to_owned(),
            decision: "once".to_owned(),
            waited: Duration::from_micros(5),
        },
        LogEvent::Grant {
            plugin: "p".to_owned(),
            permission: "http:GET https://a/".to_owned(),
            is_added: true,
        },
        LogEvent::Plugin {
            plugin: "p".to_owned(),
            digest: "sha256:1".to_owned(),
            replaces: Some("sha256:0".to_owned()),
        },
        LogEvent::Label {
            tool: "t".to_owned(),
            call: "c".to_owned(),
            decision: "hidden".to_owned(),
        },
    ];
    events.iter().for_each(|event| recorder.event(event.clone()));
    recorder.close();
    recorder.event(events[0].clone());
    let found = Log::open(place.path()).unwrap().events(None).unwrap().events;
    assert_eq!(found.into_iter().map(|found| found.event).collect::<Vec<_>>(), events);
}

#[tokio::test]
async fn a_follower_sees_new_calls() {
    let place = Place::new();
    let recorder = place.recorder();
    let tools = toolset(&recorder);
    call(&tools, "echo", "", "s").await;
    recorder.flush();
    let mut follower = Log::open(place.path()).unwrap().follow().unwrap();
    assert!(follower.poll().unwrap().is_empty());
    call(&tools, "sleep", "", "s").await;
    recorder.flush();
    let seen = |calls: Vec<cofferdam_record::CallEntry>| -> Vec<String> {
        calls.into_iter().map(|call| format!("{} {}", call.tool, call.outcome)).collect()
    };
    assert_eq!(seen(follower.poll().unwrap()), ["sleep running", "sleep ok"]);
    call(&tools, "fail", "", "s").await;
    recorder.close();
    assert_eq!(seen(follower.poll().unwrap()), ["fail failure"]);
    assert!(follower.poll().unwrap().is_empty());
}
