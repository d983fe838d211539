//! Tests of runs that are canceled or end early.

use std::time::Duration;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

use super::{Log, agent, calling, texts};
use crate::{
    BudgetLimits, Message, MessageContent, Reply, Role, RunError, ScriptedClient, ScriptedReply,
    Session, TokenBudget,
};

/// Much shorter than the slow tool takes, and much longer than anything else here takes.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_run_is_cancelled_while_a_tool_runs_and_the_session_knows_what_was_done() {
    let (log, session) = (Log::default(), Session::with_id("s"));
    let client = calling(&[
        &[("echo", r#"{"text":"first"}"#)],
        &[("echo", r#"{"text":"a"}"#), ("slow", "{}")],
    ]);
    let agent = agent(&client, &log).build().unwrap();
    let cancellation = CancellationToken::new();
    let run = agent.run("go").session(&session).cancellation(cancellation.clone()).into_future();
    let cancel = async {
        while !log.lock().unwrap().iter().any(|line| line.starts_with("slow")) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        cancellation.cancel();
    };
    let (ended, ()) =
        tokio::time::timeout(SOON, async { tokio::join!(run, cancel) }).await.unwrap();
    assert!(matches!(ended, Err(RunError::Cancelled)), "{ended:?}");

    let next = calling(&[]);
    let agent = super::agent(&next, &log).build().unwrap();
    agent.run("and now?").session(&session).await.unwrap();
    let seen = next.requests().remove(0).messages;
    // The interrupted call is not shown; completed work is.
    assert_eq!(texts(&seen), ["go", "first", "a", "and now?"]);
    let calls: Vec<_> =
        seen.iter().flat_map(|message| message.calls()).map(|call| &call.name).collect();
    assert_eq!(calls, ["echo", "echo"]);
}

#[tokio::test]
async fn a_run_is_cancelled_while_the_model_answers() {
    let reply = ScriptedReply { delay: Duration::from_secs(60), ..Reply::text("late").into() };
    let agent = agent(&ScriptedClient::new([reply]), &Log::default()).build().unwrap();
    for is_streaming in [false, true] {
        let cancellation = CancellationToken::new();
        let run = agent.run("go").cancellation(cancellation.clone());
        cancellation.cancel();
        let ended = async {
            match is_streaming {
                true => run.stream().finish().await,
                false => run.await,
            }
        };
        let ended = tokio::time::timeout(SOON, ended).await.unwrap();
        assert!(matches!(ended, Err(RunError::Cancelled)), "{ended:?}");
    }
}

#[tokio::test]
async fn a_stream_that_is_dropped_stops_the_run() {
    let log = Log::default();
    let client = calling(&[&[("slow", "{}")]]);
    let agent = agent(&client, &log).build().unwrap();
    let mut stream = agent.run("go").stream();
    while log.lock().unwrap().is_empty() {
        let next = tokio::time::timeout(Duration::from_millis(20), stream.next()).await;
        assert!(!matches!(next, Ok(None)), "the run is over");
    }
    drop(stream);
    assert_eq!(client.requests().len(), 1);
}

#[tokio::test]
async fn what_a_budget_cut_short_is_remembered_and_what_never_began_is_not() {
    let (log, session) = (Log::default(), Session::with_id("s"));
    let client = calling(&[&[("echo", r#"{"text":"first"}"#)], &[("echo", "{}")]]);
    let agent = agent(&client, &log).build().unwrap();
    let budget = TokenBudget::new(BudgetLimits { total: Some(20), ..BudgetLimits::default() });
    let ended = agent.run("go").session(&session).budget(budget.clone()).await;
    assert!(matches!(ended, Err(RunError::BudgetExceeded(_))), "{ended:?}");
    let ended = agent.run("not asked").session(&session).budget(budget).await;
    assert!(matches!(ended, Err(RunError::BudgetExceeded(_))), "{ended:?}");

    let next = calling(&[]);
    super::agent(&next, &log).build().unwrap().run("again").session(&session).await.unwrap();
    assert_eq!(texts(&next.requests().remove(0).messages), ["go", "first", "again"]);
}

#[tokio::test]
async fn two_runs_of_a_session_take_turns() {
    let (log, session) = (Log::default(), Session::with_id("s"));
    let client = calling(&[]);
    let agent = agent(&client, &log).build().unwrap();
    let (first, second) = tokio::join!(
        agent.run("one").session(&session).into_future(),
        agent.run("two").session(&session).into_future(),
    );
    first.unwrap();
    second.unwrap();
    let seen: Vec<_> = client.requests().iter().map(|request| texts(&request.messages)).collect();
    assert_eq!(seen, [vec!["one"], vec!["one", "done", "two"]]);
}

#[tokio::test]
async fn an_answer_comes_with_new_text_and_keeps_its_position() {
    use crate::{ApprovalMode, Approvals};
    let (log, session) = (Log::default(), Session::with_id("s"));
    let client = calling(&[&[("echo", r#"{"text":"asked"}"#)]]);
    let approvals = Approvals::default().with("echo", ApprovalMode::Always);
    let agent = agent(&client, &log).approvals(approvals).build().unwrap();
    let response = agent.run("go").session(&session).await.unwrap();
    let mut contents: Vec<_> =
        response.approval_requests().map(|request| request.approve()).collect();
    contents.push(MessageContent::text("and be quick"));
    agent.run(Message::new(Role::User, contents)).session(&session).await.unwrap();
    let seen = client.requests().remove(1).messages;
    let roles: Vec<_> = seen.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::User]);
    agent.run("next").session(&session).await.unwrap();
    let seen = texts(&client.requests().remove(2).messages);
    assert_eq!(seen, ["go", "asked", "and be quick", "done", "next"]);
}
