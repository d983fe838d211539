//! Pages about workflows and their runs.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use cofferdam_inspector::RunProgress;

use crate::live::{connect, read_until};
use crate::served::Served;
use crate::served::review::Review;

async fn served(suffix: &str) -> Served {
    let review = Review { suffix: suffix.to_owned(), ..Review::default() };
    Served::with_options(|options| options.workflows = Some(Arc::new(review))).await
}

#[tokio::test]
async fn a_run_is_a_graph_with_the_state_of_each_executor() {
    let served = served("").await;
    let list = served.get("/workflows").await.body;
    assert!(list.contains("waits for the user at <bdi>approve</bdi>"), "{list}");
    assert!(list.contains("the file is missing"), "{list}");
    let address = "/workflow?name=review&run=0193c0ffee00a1b2c3d4";
    assert!(list.contains(&address.replace('&', "&amp;")), "{list}");
    let run = served.get(address).await.body;
    for part in [
        "<svg class=\"graph\" role=\"img\" aria-labelledby=\"graph-title\"",
        "<title id=\"graph-title\">Graph of review: 4 executors, 4 edges</title>",
        "<g class=\"asking\" data-executor=\"2\"><title>approve: waits for the user</title>",
        "<g class=\"ran\" data-executor=\"0\"><title>writer: ran 1 time</title>",
        "<g class=\"idle\" data-executor=\"3\"><title>printer: has not run</title>",
        "Print this?",
        "data-copy=\"cofferdam workflow run review.yaml --resume\"",
        "if <bdi>contains good</bdi>",
    ] {
        assert!(run.contains(part), "{part} is missing in {run}");
    }
    // Each superstep has the executors that messages waited for.
    let (_, supersteps) = run.split_once("<h2>Supersteps</h2>").unwrap();
    let ran: Vec<_> = supersteps.split("scope=\"row\">").skip(1).collect();
    assert!(ran[0].starts_with("1</th><td><bdi>writer</bdi>"), "{supersteps}");
    assert!(ran[2].starts_with("3</th><td><bdi>approve</bdi>"), "{supersteps}");
    assert_eq!(served.get("/workflow?name=review&run=x").await.status, 400);
    assert_eq!(served.get("/workflow?name=none&run=x").await.status, 404);
}

#[tokio::test]
async fn without_workflows_the_page_says_what_is_missing() {
    let served = Served::new().await;
    let page = served.get("/workflows").await.body;
    assert!(page.contains("The call log does not know the graphs of workflows."), "{page}");
    assert!(page.contains("cofferdam inspect --web --workflow FILE --checkpoints DIR"), "{page}");
    assert_eq!(served.get("/workflow?name=review").await.status, 404);
}

#[tokio::test]
async fn hostile_names_in_a_graph_stay_text() {
    let served = served("</title><script>alert(1)</script>\u{202e}\u{1b}[2J").await;
    let name = "review%3C%2Ftitle%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E%E2%80%AE%1B%5B2J";
    for path in ["/workflows".to_owned(), format!("/workflow?name={name}&run=0193c0ffee00a1b2c3d4")]
    {
        let reply = served.get(&path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert!(!reply.body.contains("<script>alert"), "{path}");
        for hidden in ['\u{202e}', '\u{1b}'] {
            assert!(!reply.body.contains(hidden), "{path}");
        }
    }
    // Ten megabytes in each name.
    let long = Review { suffix: "<b>\u{200b}".repeat(1_000_000), ..Review::default() };
    let served = Served::with_options(|options| options.workflows = Some(Arc::new(long))).await;
    let page = served.get("/workflows").await.body;
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
}

#[tokio::test]
async fn the_run_in_this_process_is_first_and_sends_its_changes() {
    let progress = RunProgress::new("review\u{202e}");
    let review = Review {
        suffix: "\u{202e}".to_owned(),
        progress: Some(progress.clone()),
        ..Review::default()
    };
    let served = Served::with_options(|options| options.workflows = Some(Arc::new(review))).await;
    progress.superstep_started(1);
    progress.executor_started("writer\u{202e}");
    let list = served.get("/workflows").await.body;
    let (_, first) = list.split_once("<tbody>").unwrap();
    let address = "/workflow?name=review%E2%80%AE&amp;run=this-process";
    assert!(
        first.starts_with(&format!("<tr><th scope=\"row\"><a href=\"{address}\">in this")),
        "{list}"
    );
    assert!(list.contains("runs <bdi>writer<span class=\"mark\">"), "{list}");
    let cookie = served.cookie().await;
    let address = "/live/run?name=review%E2%80%AE&run=this-process";
    let mut stream = connect(&served, address, &cookie).await;
    let event = read_until(&mut stream, "\n\n", 1).await;
    assert!(
        event.contains(r#""executors":[["running","runs now"],["idle","has not run"]"#),
        "{event}"
    );
    progress.executor_completed("writer\u{202e}");
    progress.superstep_completed(None);
    read_until(&mut stream, r#"[["ran","ran 1 time"]"#, 1).await;
    // The last event says that there are no more.
    progress.ended("failed: \u{1b}[2J");
    let event = read_until(&mut stream, "\"is_over\":true", 1).await;
    assert!(event.contains(r#""state":{"words":"","names":"failed: \\u{1b}[2J"}"#), "{event}");
    assert!(!event.contains('\u{202e}'), "{event}");
}

#[tokio::test]
async fn a_run_of_another_process_is_followed_by_its_checkpoints() {
    let supersteps = Arc::new(AtomicUsize::new(1));
    let review = Review { supersteps: Some(Arc::clone(&supersteps)), ..Review::default() };
    let served = Served::with_options(|options| options.workflows = Some(Arc::new(review))).await;
    let cookie = served.cookie().await;
    let address = "/live/run?name=review&run=0193c0ffee00a1b2c3d4";
    let mut stream = connect(&served, address, &cookie).await;
    read_until(&mut stream, r#""words":"goes on, or was stopped, before ""#, 1).await;
    supersteps.store(3, Relaxed);
    let waits = r#""superstep":3,"state":{"words":"waits for the user at ""#;
    read_until(&mut stream, waits, 1).await;
    for address in ["/live/run?name=none&run=x", "/live/run?name=review&run=this-process"] {
        assert_eq!(served.get(address).await.status, 404, "{address}");
    }
}
