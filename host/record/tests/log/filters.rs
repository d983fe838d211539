use std::time::Duration;

use cofferdam_record::{CallFilter, Log, RecordError, UtcTime};

use super::{Place, call, toolset};

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[tokio::test]
async fn each_filter_selects_its_calls() {
    let place = Place::new();
    for session in ["one", "two"] {
        let recorder = place.recorder();
        let tools = toolset(&recorder);
        for (tool, arguments) in [("echo", "{}"), ("fail", "{}"), ("sleep", "{}"), ("none", "")] {
            call(&tools, tool, arguments, session).await;
        }
        recorder.close();
    }
    let log = Log::open(place.path()).unwrap();
    let count = |filter: CallFilter| log.query(&filter).unwrap().calls.len();
    let all = CallFilter::default();
    assert_eq!(count(all.clone()), 8);
    assert_eq!(count(CallFilter { tool: some("echo"), ..all.clone() }), 2);
    assert_eq!(count(CallFilter { tool: some("ech"), ..all.clone() }), 0);
    assert_eq!(count(CallFilter { session: some("one"), ..all.clone() }), 4);
    assert_eq!(count(CallFilter { plugin: some("samples"), ..all.clone() }), 0);
    for (outcome, number) in [("ok", 4), ("failure", 2), ("refused", 2), ("lost", 0), ("error", 0)]
    {
        assert_eq!(
            count(CallFilter { outcome: some(outcome), ..all.clone() }),
            number,
            "{outcome}"
        );
    }
    let slow = Some(Duration::from_millis(40));
    assert_eq!(count(CallFilter { slower_than: slow, ..all.clone() }), 2);
    assert_eq!(count(CallFilter { text: some("samples"), ..all.clone() }), 6);
    assert_eq!(count(CallFilter { refused: some(""), ..all.clone() }), 0);
    assert_eq!(count(CallFilter { changed: some(""), ..all.clone() }), 0);
    let newest = log.query(&CallFilter { limit: Some(3), ..all.clone() }).unwrap().calls;
    let everything = log.query(&all).unwrap().calls;
    assert_eq!(newest, everything[..3]);
    assert!(everything.windows(2).all(|pair| pair[0].at >= pair[1].at));
    let at = everything[4].at;
    assert_eq!(count(CallFilter { since: Some(at), ..all.clone() }), 5);
    assert_eq!(count(CallFilter { until: Some(at), ..all.clone() }), 4);
    assert_eq!(count(CallFilter { since: Some(UtcTime::now()), ..all.clone() }), 0);

    let stats = log.stats(&all).unwrap();
    assert_eq!((stats["fail"].calls, stats["fail"].errors), (2, 2));
    assert_eq!((stats["none"].calls, stats["none"].refused), (2, 2));
    assert!(stats["sleep"].p50_us >= 48_000, "{stats:?}");

    let id = &everything[0].id;
    assert_eq!(&log.find(id).unwrap().id, id);
    let process = id.split('-').next().unwrap();
    assert!(matches!(log.find(process), Err(RecordError::AmbiguousId { .. })));
    assert!(matches!(log.find("zz"), Err(RecordError::UnknownId(_))));
    assert!(matches!(log.find("\""), Err(RecordError::UnknownId(_))));
}

#[tokio::test]
async fn a_call_that_runs_is_shown_as_running_and_then_once() {
    let place = Place::new();
    let recorder = place.recorder();
    let tools = toolset(&recorder);
    let log = Log::open(place.path()).unwrap();
    let running = CallFilter { outcome: some("running"), ..CallFilter::default() };
    let sleeping = call(&tools, "sleep", "", "s");
    let looking = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let found = log.query(&running).unwrap().calls;
        assert_eq!(found.len(), 1);
        assert_eq!(log.find(&found[0].id).unwrap().outcome, "running");
    };
    tokio::join!(sleeping, looking);
    recorder.flush();
    assert_eq!(log.query(&running).unwrap().calls.len(), 0);
    let all = log.query(&CallFilter::default()).unwrap().calls;
    assert!(all.len() == 1 && all[0].outcome == "ok");
}
