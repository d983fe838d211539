//! Tests of workflows as agents and tools, and of agents that run elsewhere.

use std::sync::Mutex;

use cofferdam_agent::{
    Agent, AgentRequest, AgentRun, AgentToolOptions, ApprovalMode, Approvals, Delta,
    InvalidAgentTool, MessageContent, Response, RunError, RunStream, ScriptedClient, Session,
    TokenUsage, Update,
};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::invoke::{Progress, ProgressSink};
use cofferdam_tool::{CallContext, Functions, Outcome, Toolset};

use super::*;
use crate::{Handoff, Sequential};

fn scripted(name: &str, lines: &[Value]) -> cofferdam_agent::AgentBuilder {
    let script: Vec<_> = lines.iter().map(Value::to_string).collect();
    let model = ScriptedClient::read(name, script.join("\n").as_bytes()).unwrap();
    Agent::builder(model).name(name)
}

fn says(name: &str, text: &str) -> Agent {
    let line = json!({"text": text, "usage": {"total": 3}});
    scripted(name, &[line]).build().unwrap()
}

/// An agent that runs elsewhere and repeats what it hears.
struct Echo;

impl AgentRun for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn stream(&self, request: AgentRequest) -> RunStream {
        RunStream::of(|updates| async move {
            let heard: Vec<_> = request.messages.iter().map(|message| message.text()).collect();
            let text = format!("heard {}", heard.join(", "));
            let used = TokenUsage { total: 7, ..TokenUsage::default() };
            request.context.usage.add(used);
            let deltas = vec![Delta::Text(text.clone())];
            let _ = updates.send(Update { deltas, ..Update::default() }).await;
            Ok(Response { usage: Some(used), ..Response::text_only(text) })
        })
    }
}

fn tools(source: impl cofferdam_tool::ToolSource + 'static) -> Toolset {
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(source)).unwrap();
    toolset
}

#[tokio::test]
async fn an_agent_that_runs_elsewhere_takes_part() {
    let agents: [Arc<dyn AgentRun>; 2] = [says("a", "A").into(), Arc::new(Echo)];
    let workflow = Sequential::new(agents.clone()).build().unwrap();
    assert_eq!(workflow.run("hi").await.unwrap().text(), "heard hi, A");

    // It takes no tools, so it can be handed to and cannot hand off.
    let error = Handoff::new(agents.clone()).build().unwrap_err().to_string();
    let expected = "`echo` takes no tools of its caller, so it cannot hand off; give it no route";
    assert_eq!(error, expected);
    Handoff::new(agents).route("a", ["echo"]).build().unwrap();

    let response = Echo.run(AgentRequest::new("hi")).await.unwrap();
    assert_eq!(response.text(), "heard hi");
}

#[tokio::test]
async fn a_workflow_is_a_tool_whose_usage_and_progress_are_the_callers() {
    struct Lines(Mutex<Vec<String>>);
    impl ProgressSink for Lines {
        fn report(&self, _: &str, progress: Progress) {
            self.0.lock().unwrap().extend(progress.message);
        }
    }
    let agents: [Arc<dyn AgentRun>; 2] = [says("a", "A").into(), Arc::new(Echo)];
    let workflow = Sequential::new(agents).name("my team").build().unwrap();
    let toolset = tools(workflow.into_tool(AgentToolOptions::default()).unwrap());
    let lines = [
        json!({"calls": [{"tool": "my_team", "arguments": {"task": "hi"}}]}),
        json!({"text": "done", "usage": {"total": 1}}),
    ];
    let outer = scripted("outer", &lines).tools(toolset).build().unwrap();
    let log = Arc::new(Lines(Mutex::default()));
    let run = outer.run("go").progress(Arc::clone(&log) as Arc<dyn ProgressSink>);
    let response = run.await.unwrap();
    let results: Vec<_> = response.messages.iter().flat_map(|message| message.results()).collect();
    assert_eq!(results[0].result, "heard hi, A");
    assert_eq!(response.usage.unwrap().total, 3 + 7 + 1);
    assert_eq!(*log.0.lock().unwrap(), ["runs `a`", "runs `echo`"]);

    let nameless = Sequential::new([says("a", "A")]).name("!").build().unwrap();
    let refused = nameless.into_tool(AgentToolOptions::default());
    assert!(matches!(refused, Err(InvalidAgentTool::NoName { .. })));
}

/// Returns a workflow of an agent whose call of `send` needs approval.
fn guarded() -> Workflow {
    let schema = r#"{"type":"object","properties":{}}"#;
    let send = Declaration::new("send", "Sends.", schema);
    let functions = Functions::new("mail").with(send, async |_, _| Ok(json!("sent")));
    let lines = [json!({"calls": [{"tool": "send"}]}), json!({"text": "finished"})];
    let approvals = Approvals::default().with("send", ApprovalMode::Always);
    let agent = scripted("a", &lines).tools(tools(functions.unwrap())).approvals(approvals);
    Sequential::new([agent.build().unwrap()]).name("team").build().unwrap()
}

#[tokio::test]
async fn a_workflow_that_waits_for_an_approval_goes_on_with_the_answer() {
    let (workflow, session) = (guarded(), Session::with_id("s"));
    let request = |messages: Vec<MessageContent>| AgentRequest::new(messages).session(&session);
    let go = || AgentRequest::new("go").session(&session);
    let response = AgentRun::run(&workflow, go()).await.unwrap();
    let asked = response.approval_requests().next().unwrap().clone();
    assert_eq!(asked.function_call.name, "send");

    // The session survives its JSON form.
    let stored = serde_json::to_value(&session).unwrap();
    let answered = request(vec![asked.approve()]);
    let response = workflow.stream(answered).finish().await.unwrap();
    assert_eq!(response.text(), "finished");

    // An answer about another call does not count, so the messages are a new turn, which the
    // script has no replies for.
    let restored: Session = serde_json::from_value(stored).unwrap();
    let mut other = asked.clone();
    other.function_call.arguments = r#"{"to":"x"}"#.to_owned();
    let answered = AgentRequest::new(vec![other.approve()]).session(&restored);
    assert!(AgentRun::run(&workflow, answered).await.is_err());
    // That turn has abandoned the run.
    assert_eq!(restored.part("open_workflow"), Value::Null);
}

#[tokio::test]
async fn what_a_workflow_asks_is_a_failure_of_its_tool() {
    let toolset = tools(guarded().into_tool(AgentToolOptions::default()).unwrap());
    let call = async |toolset: &Toolset| {
        let context = CallContext::new("1");
        let (name, task) = ("team", br#"{"task":"t"}"#.as_slice());
        match toolset.call(name, Some(task), &context).await.unwrap().outcome {
            Outcome::Failure(failure) => failure.message,
            other => panic!("not a failure: {other:?}"),
        }
    };
    let expected = "The agent `team` cannot continue: the user has to approve its call of `send`.";
    assert_eq!(call(&toolset).await, expected);

    let asks = executor_fn("asks", async |_: String, step: Step| {
        step.request(Payload::text("Who?"), MessageType::Text)?;
        Ok(())
    });
    let workflow = Workflow::builder("team").executor(asks).start("asks").build().unwrap();
    let toolset = tools(workflow.into_tool(AgentToolOptions::default()).unwrap());
    let expected = "The agent `team` cannot continue: `asks` waits for an answer of the user.";
    assert_eq!(call(&toolset).await, expected);

    let fails = executor_fn("fails", async |_: String, _: Step| {
        Err::<(), _>(BoxError::from("secret of the host"))
    });
    let workflow = Workflow::builder("team").executor(fails).start("fails").build().unwrap();
    let toolset = tools(workflow.into_tool(AgentToolOptions::default()).unwrap());
    assert_eq!(call(&toolset).await, "The agent `team` failed.");
}

#[tokio::test]
async fn an_agents_error_stays_one_through_a_workflow() {
    let agent = scripted("a", &[]).build().unwrap();
    let workflow = Sequential::new([agent]).build().unwrap();
    let ended = AgentRun::run(&workflow, AgentRequest::new("go")).await;
    assert!(matches!(ended, Err(RunError::Chat(_))), "{ended:?}");
}
