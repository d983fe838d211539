//! Content of the pages.

use crate::served::{Served, record_calls, record_many};

#[tokio::test]
async fn a_log_that_does_not_exist_yet_says_so() {
    let served = Served::new().await;
    let reply = served.get("/").await;
    assert_eq!(reply.status, 200);
    assert!(reply.body.contains("Nothing is recorded yet."), "{}", reply.body);
    record_calls(&served.recorder()).await;
    assert!(served.get("/").await.body.contains(">echo<"));
}

#[tokio::test]
async fn calls_are_listed_and_filtered() {
    let served = Served::new().await;
    record_calls(&served.recorder()).await;
    let rows = |body: &str| body.matches("<tr data-id=").count();
    let all = served.get("/").await.body;
    assert_eq!(rows(&all), 3, "{all}");
    for (query, count) in [
        ("tool=echo", 1),
        ("outcome=failure", 1),
        ("outcome=refused", 1),
        ("session=morning", 3),
        ("session=evening", 0),
        ("since=1h", 3),
        ("until=1h", 0),
        ("slow=10s", 0),
        ("grep=Ulm", 2),
        ("refused=*", 0),
        ("outer=call-1", 0),
    ] {
        let page = served.get(&format!("/?{query}")).await;
        assert_eq!((page.status, rows(&page.body)), (200, count), "{query}");
    }
    let wrong = served.get("/?since=soon").await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.body.contains("`soon` is not a time; write an age such as 30m"));
}

#[tokio::test]
async fn pages_continue_where_the_one_before_ended() {
    let served = Served::new().await;
    let recorder = served.recorder();
    record_many(&recorder, 40).await;
    let (mut ids, mut path) = (Vec::new(), "/".to_owned());
    loop {
        let page = served.get(&path).await.body;
        ids.extend(
            page.split("data-id=\"").skip(1).map(|row| row.split('"').next().unwrap().to_owned()),
        );
        let Some((start, _)) = page.split_once("\">Older</a>") else { break };
        path = start.rsplit("href=\"").next().unwrap().replace("&amp;", "&");
    }
    assert_eq!(ids.len(), 120);
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 120);
}

#[tokio::test]
async fn a_call_has_a_page_with_everything_recorded() {
    let served = Served::new().await;
    record_calls(&served.recorder()).await;
    let path_of = |body: &str| {
        let (_, rest) = body.split_once("href=\"/call/").unwrap();
        format!("/call/{}", rest.split('"').next().unwrap())
    };
    let path = path_of(&served.get("/?tool=echo").await.body);
    let page = served.get(&path).await.body;
    for part in [
        "Arguments",
        "&quot;city&quot;: &quot;Ulm&quot;",
        "Result",
        "Course",
        "approval: echo (call-1): once by user after 2.0 s",
        "cofferdam log show",
        "href=\"/session?name=morning\"",
        "Entry in the log",
        "<h2>As command</h2>",
        "<bdi>cofferdam call echo '{&quot;city&quot;:&quot;Ulm&quot;,&quot;days&quot;:3}'</bdi>",
        "data-copy-from=\"as-command\"",
        "&quot;calls&quot;:[{&quot;tool&quot;:&quot;echo&quot;,&quot;arguments&quot;:{&quot;city&quot;:",
        "data-copy-from=\"as-case\"",
    ] {
        assert!(page.contains(part), "{part} is missing in {page}");
    }
    assert!(!page.contains("At fault"));
    let arguments = served.get(&format!("{path}/arguments")).await;
    assert_eq!(arguments.body, r#"{"city":"Ulm","days":3}"#);
    assert!(arguments.head.contains("content-type: application/octet-stream"));
    assert!(arguments.head.contains("content-disposition: attachment; filename=\"arguments\""));
    assert!(served.get(&format!("{path}/entry")).await.body.contains("\"tool\": \"echo\""));
    assert_eq!(served.get(&format!("{path}/diff")).await.status, 404);

    let failed = served.get(&path_of(&served.get("/?tool=fail").await.body)).await.body;
    assert!(failed.contains("At fault: <strong>the tool</strong>"), "{failed}");
    // The arguments of a call that did not start were never decoded.
    let refused = served.get(&path_of(&served.get("/?tool=nothing").await.body)).await.body;
    assert!(!refused.contains("As command"), "{refused}");
    assert!(refused.contains("At fault: <strong>the model</strong>"), "{refused}");
    assert_eq!(served.get("/call/00000000-1").await.status, 404);
}

#[tokio::test]
async fn summaries_count_calls() {
    let served = Served::new().await;
    record_calls(&served.recorder()).await;
    let tools = served.get("/tools").await.body;
    for tool in ["echo", "fail", "nothing"] {
        assert!(tools.contains(&format!("href=\"/?tool={tool}&amp;since=1d\"")), "{tools}");
    }
    assert!(tools.contains("1 (100 %)"), "{tools}");
    let sessions = served.get("/sessions?since=all").await.body;
    assert!(sessions.contains("href=\"/session?name=morning\""), "{sessions}");
    let session = served.get("/session?name=morning").await.body;
    assert_eq!(session.matches("<tr data-id=").count(), 3, "{session}");
    let plugins = served.get("/plugins").await.body;
    assert!(plugins.contains("sha256:12ab"), "{plugins}");
    let events = served.get("/events").await.body;
    assert!(events.contains("echo (call-1): once by user"), "{events}");
    let health = served.get("/health").await.body;
    assert!(health.contains("Calls of the last hour"), "{health}");
}
