//! Workers that are killed and stopped while they run calls.

use std::time::Duration;

use cofferdam_tool::Outcome;
use serde_json::json;

use super::calls::{call, type_name, worker};
use super::process::{Step, WorkerProcess};
use super::server::Server;
use super::tools::Starts;

/// Number of kills at each step and for each kind of tool.
const KILLS: &str = "COFFERDAM_CLUSTER_KILLS";
/// Maximum number of calls until the queue group has chosen the worker that dies.
const CALLS_MAX: usize = 100;

fn kills() -> usize {
    std::env::var(KILLS).ok().map_or(1, |typed| typed.parse().expect("a number of kills"))
}

/// Kills workers at one step, beside a worker that stays, and checks all calls.
async fn kill_at(step: Step) {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let starts = Starts::at(&path);
    let _other = worker(&server, &path, 64).await;
    let gateway = server.gateway().await;
    for (tool, kill) in
        ["write", "read"].into_iter().flat_map(|tool| (0..kills()).map(move |kill| (tool, kill)))
    {
        let mut dying = WorkerProcess::start(&server.url(), &path, Some(step));
        let mut unknown = 0;
        for number in 0.. {
            assert!(number < CALLS_MAX, "the worker is never chosen");
            let id = format!("{tool}-{kill}-{number}");
            // Long enough for a heartbeat.
            let ms = if step == Step::Running { 250 } else { 0 };
            let ended = call(&gateway.toolset, tool, json!({"ms": ms}), &id).await;
            let started = starts.of(&id);
            match type_name(&ended) {
                "ok" if tool == "write" => assert_eq!(started, 1, "{step:?} {id}"),
                "ok" => assert!((1..=2).contains(&started), "{step:?} {id}: {started}"),
                "OutcomeUnknown" => {
                    // The server may take a worker that has just died for alive.
                    let runs = usize::from(step != Step::AfterAccepted);
                    assert_eq!((tool, started), ("write", runs), "{step:?} {id}");
                    unknown += 1;
                }
                _ => panic!("{step:?} {id}: {ended:?}"),
            }
            if dying.has_ended() {
                break;
            }
        }
        // The outcome is unknown if the call was confirmed and its result was not sent.
        let is_lost = tool == "write" && [Step::Running, Step::BeforeResult].contains(&step);
        let may_be_lost = tool == "write" && step == Step::AfterAccepted;
        assert!(
            unknown == usize::from(is_lost) || may_be_lost && unknown <= 1,
            "{step:?} {tool}: {unknown}"
        );
    }
}

#[tokio::test]
async fn killed_before_it_accepts() {
    kill_at(Step::BeforeAccepted).await;
}

#[tokio::test]
async fn killed_after_it_accepts() {
    kill_at(Step::AfterAccepted).await;
}

#[tokio::test]
async fn killed_while_the_call_runs() {
    kill_at(Step::Running).await;
}

#[tokio::test]
async fn killed_before_the_result() {
    kill_at(Step::BeforeResult).await;
}

#[tokio::test]
async fn killed_after_the_result() {
    kill_at(Step::AfterResult).await;
}

#[tokio::test]
async fn a_stopped_worker_starts_nothing_when_it_goes_on() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let starts = Starts::at(&path);
    let stopped = WorkerProcess::start(&server.url(), &path, None);
    let gateway = server.gateway().await;

    // While the call runs: its late result is dropped.
    let slow = json!({"ms": 300});
    let running = call(&gateway.toolset, "write", slow.clone(), "running");
    let stopping = async {
        while starts.of("running") == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stopped.signal("STOP");
    };
    let (ended, ()) = tokio::join!(running, stopping);
    assert_eq!(type_name(&ended), "OutcomeUnknown");

    // Calls that wait for it in its connection: another worker gets them.
    let other = worker(&server, &path, 64).await;
    let ids: Vec<String> = (0..8).map(|number| format!("waiting-{number}")).collect();
    let calls = ids.iter().map(|id| call(&gateway.toolset, "write", slow.clone(), id));
    let ended = futures_util::future::join_all(calls).await;
    assert!(ended.iter().all(|outcome| matches!(outcome, Outcome::Ok(_))), "{ended:?}");
    stopped.signal("CONT");
    tokio::time::sleep(Duration::from_millis(500)).await;
    for id in &ids {
        assert_eq!(starts.of(id), 1, "{id}");
    }
    assert_eq!(starts.of("running"), 1);
    other.drain(Duration::from_secs(1)).await;
    let ended = call(&gateway.toolset, "write", json!({}), "after").await;
    assert_eq!(ended.word(), "ok", "{ended:?}");
}
