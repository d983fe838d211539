use std::time::Duration;

use cofferdam_record::{CallFilter, Log, RecordError, StatsKey, UtcTime};

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

    let (stats, _) = log.stats(&all).unwrap();
    assert_eq!((stats["fail"].calls, stats["fail"].errors), (2, 2));
    assert_eq!((stats["none"].calls, stats["none"].refused), (2, 2));
    assert!(stats["sleep"].p50_us >= 48_000, "{stats:?}");

    let id = &everything[0].id;
    assert_eq!(&log.find(id).unwrap().id, id);
    let process = id.split('-').next().unwrap();
    assert!(matches!(log.find(process), Err(RecordError::AmbiguousId { .. })));
    assert!(matches!(log.find("zz"), Err(RecordError::UnknownId { .. })));
    assert!(matches!(log.find("\""), Err(RecordError::UnknownId { .. })));
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

#[tokio::test]
async fn pages_have_each_call_once() {
    let place = Place::new();
    for _ in 0..2 {
        let recorder = place.recorder();
        let tools = toolset(&recorder);
        for _ in 0..25 {
            call(&tools, "echo", "{}", "one").await;
        }
        recorder.close();
    }
    let log = Log::open(place.path()).unwrap();
    let mut filter = CallFilter { limit: Some(7), ..CallFilter::default() };
    let mut paged = Vec::new();
    loop {
        let page = log.query(&filter).unwrap().calls;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.position().to_string().parse().unwrap());
        paged.extend(page);
    }
    assert_eq!(paged, log.query(&CallFilter::default()).unwrap().calls);
    let rest = CallFilter { after: Some(paged[10].position()), ..CallFilter::default() };
    assert_eq!(log.stats(&rest).unwrap().0["echo"].calls, 39);
}

#[tokio::test]
async fn calls_are_counted_by_session_and_matched_one_by_one() {
    let place = Place::new();
    let recorder = place.recorder();
    let tools = toolset(&recorder);
    for (session, calls) in [("one", 3), ("t\"wo", 2)] {
        for _ in 0..calls {
            call(&tools, "echo", r#"{"a":1}"#, session).await;
        }
    }
    recorder.close();
    let log = Log::open(place.path()).unwrap();
    let all = CallFilter::default();
    let (stats, _) = log.stats_by(&all, StatsKey::Session).unwrap();
    let counts: Vec<_> = stats.iter().map(|(name, stats)| (name.as_str(), stats.calls)).collect();
    assert_eq!(counts, [("one", 3), ("t\"wo", 2)]);
    let calls = log.query(&all).unwrap().calls;
    assert_eq!(stats["t\"wo"].newest, Some(calls[0].at));
    assert!(log.stats_by(&all, StatsKey::Plugin).unwrap().0.is_empty());

    let of_one = CallFilter { session: some("one"), ..all.clone() };
    assert_eq!(calls.iter().filter(|call| of_one.matches(call)).count(), 3);
    let unfinished = CallFilter { outcome: some("running"), ..all.clone() };
    assert!(!calls.iter().any(|call| unfinished.matches(call)));
    let text = CallFilter { text: some("call-of-caller"), ..all };
    assert!(calls.iter().all(|call| text.matches(call)));
}

/// Removes the indexes of a log, so that readers read all lines of each segment.
fn remove_indexes(directory: &std::path::Path) {
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let indexes = files.filter(|file| file.to_string_lossy().ends_with(".index.json"));
    indexes.for_each(|index| std::fs::remove_file(index).unwrap());
}

#[tokio::test]
async fn blocks_and_summaries_hide_nothing() {
    let place = Place::new();
    for session in ["one", "two"] {
        let recorder = place.recorder();
        let tools = toolset(&recorder);
        for number in 0..2500 {
            let tool = if number % 997 == 0 { "fail" } else { "echo" };
            call(&tools, tool, "{}", session).await;
            if number % 500 == 0 {
                // Its start is in another batch than its end.
                let (context, long) = (cofferdam_tool::CallContext::new("long"), "sleep");
                let sleeping = tools.call(long, Some(b"{}"), &context);
                let others = async {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    recorder.flush();
                };
                let _ = tokio::join!(sleeping, others);
            }
        }
        recorder.event(cofferdam_record::LogEvent::Grant {
            plugin: "samples".to_owned(),
            permission: "random".to_owned(),
            is_added: true,
        });
        recorder.close();
    }
    let log = Log::open(place.path()).unwrap();
    let all = CallFilter::default();
    let everything = log.query(&all).unwrap().calls;
    assert_eq!(everything.len(), 5010);
    let middle = &everything[2505];
    let filters = [
        all.clone(),
        CallFilter { limit: Some(50), ..all.clone() },
        CallFilter { tool: some("fail"), limit: Some(2), ..all.clone() },
        CallFilter { tool: some("sleep"), ..all.clone() },
        CallFilter { session: some("two"), outcome: some("failure"), ..all.clone() },
        CallFilter { outcome: some("lost"), ..all.clone() },
        CallFilter { since: Some(middle.at), ..all.clone() },
        CallFilter { until: Some(middle.at), limit: Some(10), ..all.clone() },
        CallFilter { after: Some(middle.position()), limit: Some(10), ..all.clone() },
        CallFilter { text: some("long"), ..all.clone() },
    ];
    let answers = |log: &Log| {
        let queries: Vec<_> = filters.iter().map(|f| log.query(f).unwrap().calls).collect();
        let keys = [StatsKey::Tool, StatsKey::Session];
        let stats: Vec<_> = keys.iter().map(|key| log.stats_by(&all, *key).unwrap().0).collect();
        let since = CallFilter { since: Some(middle.at), ..all.clone() };
        let minutes = log.stats_by_minute(&since).unwrap();
        let events = log.events(None).unwrap().events;
        let whole = filters.iter().filter(|filter| filter.limit.is_none());
        whole.for_each(|filter| super::stream::assert_complete(log, filter));
        let minutes = (minutes.minutes, minutes.total);
        (queries, stats, minutes, events, log.uses(&all).unwrap().0, log.find(&middle.id).unwrap())
    };
    let first = answers(&log);
    // With the summaries of the first time.
    assert!(answers(&log) == first);
    remove_indexes(&place.path());
    assert!(answers(&Log::open(place.path()).unwrap()) == first);
    assert_eq!((first.0[2].len(), first.3.len()), (2, 2));
}
