//! Programs that wait in the session for an approval (`LOOP-71`).

use async_trait::async_trait;
use cofferdam_tool::invoke::SuspendedProgram;
use cofferdam_tool::origin::ToolOrigin;
use cofferdam_tool::{
    CallContext, Completion, Outcome, Output, ToolCall, ToolDefinition, ToolName, ToolSource,
};
use serde_json::Map;

use super::*;
use crate::{ApprovalRequest, Approvals, FunctionCall, Session, open_requests};

/// A tool `program` that makes one call which needs approval. Its result is how it went on.
struct Programs(Arc<[Arc<ToolDefinition>]>);

impl Programs {
    fn source() -> Arc<dyn ToolSource> {
        let tool = Declaration::new("program", "Runs.", r#"{"type":"object"}"#);
        Arc::new(Self(Arc::from([Arc::new(tool.compile().unwrap())])))
    }
}

#[async_trait]
impl ToolSource for Programs {
    fn name(&self) -> &str {
        "programs"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.0)
    }

    async fn invoke(&self, _: ToolCall<'_>, context: &CallContext) -> Completion {
        let checks = context.inner_calls.as_ref().unwrap();
        let program = || SuspendedProgram {
            call_id: format!("{}.1", context.call_id),
            tool: ToolName::new("send").unwrap(),
            arguments: Map::from_iter([("to".to_owned(), json!("ada"))]),
            origin: ToolOrigin::program("mail"),
            ledger: "sealed".to_owned(),
        };
        let outcome = match checks.resumed() {
            Some(resumed) => {
                let text =
                    format!("{} {} {:?}", resumed.ledger, resumed.is_approved, resumed.reason);
                Outcome::Ok(Output::Value(text.into()))
            }
            None if checks.ledger_bytes_max() > 0 && checks.suspend(program()) => {
                assert!(!checks.suspend(program()), "a call has one program");
                Outcome::Failure(ToolFailure::new("the program waits"))
            }
            None => Outcome::Failure(ToolFailure::new("no one can be asked")),
        };
        Completion::ended(outcome, context)
    }
}

/// Returns an agent whose model makes these calls, with programs that can wait.
fn waiting(client: &ScriptedClient, log: &Log) -> Agent {
    let mut tools = toolset(log);
    tools.add(Programs::source()).unwrap();
    let approvals = Approvals::default().suspend_programs(true);
    Agent::builder(client.clone()).tools(tools).approvals(approvals).build().unwrap()
}

/// Returns the session as another process reads it.
fn reread(session: &Session) -> Session {
    serde_json::from_str(&serde_json::to_string(session).unwrap()).unwrap()
}

fn only(requests: Vec<ApprovalRequest>) -> ApprovalRequest {
    assert_eq!(requests.len(), 1);
    requests.into_iter().next().unwrap()
}

const BATCH: &[(&str, &str)] = &[("program", "{}"), ("echo", r#"{"text":"hi"}"#)];

#[tokio::test]
async fn a_program_waits_in_the_session_and_continues_with_the_answer() {
    for (is_approved, result) in [(true, "sealed true None"), (false, r#"sealed false Some("no")"#)]
    {
        let (client, log) = (calling(&[BATCH]), Log::default());
        let session = Session::with_id("s");
        let agent = waiting(&client, &log);
        let response = agent.run("Send.").session(&session).await.unwrap();
        assert_eq!(texts(&response.messages), ["hi"], "the other call has run");
        let request = only(response.approval_requests().cloned().collect());
        let expected = FunctionCall {
            call_id: "0.1".to_owned(),
            name: "send".to_owned(),
            arguments: r#"{"to":"ada"}"#.to_owned(),
            ..FunctionCall::default()
        };
        assert_eq!(request.function_call, expected);
        assert_eq!(request.origin, Some(ToolOrigin::program("mail")));
        assert!(request.is_of_program());
        assert_eq!(client.requests().len(), 1);
        let session = reread(&session);
        assert_eq!(only(open_requests(&session)), request);
        let answer = match is_approved {
            true => request.approve(),
            false => request.refuse(Some("no".to_owned())),
        };
        let response = agent.run(vec![answer.clone()]).session(&session).await.unwrap();
        assert_eq!(texts(&response.messages), [result, "done"]);
        assert_eq!(log.lock().unwrap().as_slice(), ["echo(hi)"]);
        assert!(open_requests(&session).is_empty());
        // Every call of the reply has its result when the model sees it.
        let seen = client.requests().pop().unwrap().messages;
        assert_eq!(texts(&seen), ["Send.", result, "hi"]);
    }
}

#[tokio::test]
async fn answers_to_another_call_do_not_count() {
    let (client, log) = (calling(&[BATCH]), Log::default());
    let session = Session::with_id("s");
    let agent = waiting(&client, &log);
    let response = agent.run("Send.").session(&session).await.unwrap();
    let mut request = only(response.approval_requests().cloned().collect());
    request.function_call.arguments = r#"{"to":"eve"}"#.to_owned();
    agent.run(vec![request.approve()]).session(&session).await.unwrap();
    assert!(open_requests(&session).is_empty(), "the batch is abandoned");
    let seen = client.requests().pop().unwrap().messages;
    assert_eq!(texts(&seen), ["Send.", "hi"], "the program has no result");
}

#[tokio::test]
async fn a_program_waits_beside_a_call_that_needs_approval() {
    let (client, log) = (calling(&[BATCH]), Log::default());
    let session = Session::with_id("s");
    let mut tools = toolset(&log);
    tools.add(Programs::source()).unwrap();
    let approvals = Approvals::default().with("echo", crate::ApprovalMode::Always);
    let approvals = approvals.run_others_at_once(true).suspend_programs(true);
    let agent = Agent::builder(client.clone()).tools(tools).approvals(approvals).build().unwrap();
    let response = agent.run("Send.").session(&session).await.unwrap();
    let requests: Vec<_> = response.approval_requests().cloned().collect();
    assert_eq!(requests.len(), 2);
    assert_eq!(open_requests(&session), requests);
    let answers: Vec<_> = requests.iter().map(ApprovalRequest::approve).collect();
    let response = agent.run(answers).session(&session).await.unwrap();
    assert_eq!(texts(&response.messages), ["hi", "sealed true None", "done"]);
}

#[tokio::test]
async fn without_the_setting_or_a_session_no_program_waits() {
    let log = Log::default();
    for (has_setting, has_session) in [(false, true), (true, false)] {
        let client = calling(&[BATCH]);
        let mut tools = toolset(&log);
        tools.add(Programs::source()).unwrap();
        let approvals = Approvals::default().suspend_programs(has_setting);
        let agent = Agent::builder(client).tools(tools).approvals(approvals).build().unwrap();
        let session = Session::with_id("s");
        let run = agent.run("Send.");
        let run = if has_session { run.session(&session) } else { run };
        let response = run.await.unwrap();
        assert_eq!(response.approval_requests().count(), 0);
        let results = texts(&response.messages);
        assert!(results[0].contains("no one can be asked"), "{results:?}");
    }
}
