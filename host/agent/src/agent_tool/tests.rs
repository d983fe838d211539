//! Tests of agents as tools, with scripted models.

mod approvals;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::invoke::{Progress, ProgressSink};
use cofferdam_tool::{
    CallContext, Functions, Outcome, RefusedCall, ToolError, ToolFailure, Toolset,
};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    AGENT_DEPTH_MAX, AgentBuilder, BudgetLimits, ChatError, ChatErrorKind, Reply, ScriptedClient,
    ScriptedReply, TokenBudget,
};

/// Much longer than anything here takes, and much shorter than the scripted delay.
const SOON: Duration = Duration::from_secs(20);
const LATE: Duration = Duration::from_secs(600);

fn client(lines: &[serde_json::Value]) -> ScriptedClient {
    let script: Vec<_> = lines.iter().map(ToString::to_string).collect();
    ScriptedClient::read("script", script.join("\n").as_bytes()).unwrap().recording()
}

fn child(lines: &[serde_json::Value]) -> AgentBuilder {
    Agent::builder(client(lines)).name("child")
}

/// Returns a script line that calls `tool` with a task.
fn calls(tool: &str) -> serde_json::Value {
    json!({"calls": [{"tool": tool, "arguments": {"task": "t"}}], "usage": {"total": 10}})
}

fn says(text: &str) -> serde_json::Value {
    json!({"text": text, "usage": {"total": 5}})
}

fn tools(source: impl ToolSource + 'static) -> Toolset {
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(source)).unwrap();
    toolset
}

fn tool(agent: Agent) -> Toolset {
    tools(agent.into_tool(AgentToolOptions::default()).unwrap())
}

async fn call(toolset: &Toolset, context: &CallContext) -> Completion {
    toolset.call("child", Some(br#"{"task":"t"}"#), context).await.unwrap()
}

fn failure(outcome: &Outcome) -> &ToolFailure {
    match outcome {
        Outcome::Failure(failure) => failure,
        other => panic!("not a failure: {other:?}"),
    }
}

#[test]
fn the_name_of_a_tool_is_that_of_its_agent_without_what_a_name_cannot_have() {
    for (agent, tool) in [
        ("researcher", Some("researcher")),
        ("Max Müller", Some("Max_M_ller")),
        ("  a.b / c ", Some("a_b_c")),
        ("x-1_y", Some("x-1_y")),
        ("日本", None),
        ("", None),
        ("--", None),
    ] {
        assert_eq!(tool_name(agent).as_deref(), tool, "{agent}");
    }
    assert_eq!(tool_name(&"a".repeat(99)).map(|name| name.len()), Some(64));
    let unnamed = child(&[]).name("日本").build().unwrap();
    let error = unnamed.into_tool(AgentToolOptions::default()).unwrap_err();
    let expected = "no tool can be named after the agent `日本`; set `AgentToolOptions::name`";
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn the_schema_has_one_string_and_nothing_else() {
    let options = AgentToolOptions {
        name: Some("ask".to_owned()),
        description: Some("Asks.".to_owned()),
        argument: Some("question".to_owned()),
        argument_description: None,
    };
    let agent = child(&[says("yes")]).build().unwrap();
    let toolset = tools(agent.clone().into_tool(options).unwrap());
    let definition = toolset.definition("ask").unwrap();
    assert_eq!(definition.description, "Asks.");
    let schema = definition.input.published();
    assert_eq!(schema["required"], json!(["question"]));
    assert_eq!(schema["additionalProperties"], json!(false));
    let context = CallContext::new("1");
    for refused in [r"{}", r#"{"question":"q","more":1}"#] {
        let ended = toolset.call("ask", Some(refused.as_bytes()), &context).await;
        assert!(matches!(ended, Err(RefusedCall::InvalidArguments(_))), "{refused}: {ended:?}");
    }
    let ended = toolset.call("ask", Some(br#"{"question":"q"}"#), &context).await.unwrap();
    assert_eq!(ended.outcome.shown().unwrap().text(), "yes");
    let invalid =
        AgentToolOptions { name: Some("not a name".into()), ..AgentToolOptions::default() };
    assert!(matches!(agent.into_tool(invalid), Err(InvalidAgentTool::Declaration(_))));
}

#[tokio::test]
async fn each_call_has_a_session_of_its_own() {
    let model = client(&[says("one"), says("two")]);
    let toolset = tool(Agent::builder(model.clone()).name("child").build().unwrap());
    for _ in 0..2 {
        call(&toolset, &CallContext::new("1")).await;
    }
    let seen: Vec<_> = model.requests().iter().map(|request| request.messages.len()).collect();
    assert_eq!(seen, [1, 1]);
}

#[tokio::test]
async fn the_usage_of_the_child_is_part_of_the_parents_usage_and_budget() {
    let budget = TokenBudget::new(BudgetLimits::default());
    // The child shares the budget, which counts once nevertheless.
    let nested = child(&[says("42")]).budget(budget.clone()).build().unwrap();
    let lines = [calls("child"), says("done")];
    let parent =
        Agent::builder(client(&lines)).tools(tool(nested)).budget(budget.clone()).build().unwrap();
    let response = parent.run("go").await.unwrap();
    assert_eq!(response.usage.unwrap().total, 20);
    assert_eq!(budget.used().total, 20);

    // The child cannot spend more than the parent has.
    let limits = BudgetLimits { total: Some(15), ..BudgetLimits::default() };
    let nested = child(&[calls("none"), says("late")]).build().unwrap();
    let parent = Agent::builder(client(&[calls("child"), says("never")])).tools(tool(nested));
    let budget = TokenBudget::new(limits);
    let ended = parent.budget(budget.clone()).build().unwrap().run("go").await;
    assert!(matches!(ended, Err(RunError::BudgetExceeded(_))), "{ended:?}");
    assert_eq!(budget.used().total, 20);
}

#[tokio::test]
async fn a_failure_of_the_child_says_what_happened_and_nothing_of_the_host() {
    let secret = ScriptedReply {
        result: Err(ChatError::new(ChatErrorKind::Overloaded, "key sk-1 at /host/path")),
        ..Reply::text("").into()
    };
    let nested = Agent::builder(ScriptedClient::new([secret])).name("child").build().unwrap();
    let ended = call(&tool(nested.clone()), &CallContext::new("1")).await;
    let failed = failure(&ended.outcome);
    assert_eq!(failed.message, "The agent `child` got no answer from its model.");
    assert_eq!(failed.transient, Some(true));
    assert_eq!(ended.record.detail.as_deref(), Some("key sk-1 at /host/path"));

    let silent = child(&[json!({})]).build().unwrap();
    let ended = call(&tool(silent), &CallContext::new("1")).await;
    assert_eq!(failure(&ended.outcome).message, "The agent `child` ended without an answer.");

    // The parent goes on.
    let model = client(&[calls("child"), says("done")]);
    let parent = Agent::builder(model.clone()).tools(tool(nested)).build().unwrap();
    assert_eq!(parent.run("go").await.unwrap().text(), "done");
    let shown = format!("{:?}", model.requests()[1].messages);
    // The script of the child is over, which is an error of its model too.
    assert!(shown.contains("The agent `child` got no answer from its model."), "{shown}");
}

#[tokio::test]
async fn the_caller_can_give_up_by_cancellation_and_by_deadline() {
    let late = || ScriptedReply { delay: LATE, ..Reply::text("late").into() };
    let nested =
        Agent::builder(ScriptedClient::new([late(), late()])).name("child").build().unwrap();
    let toolset = tool(nested);
    let cancellation = CancellationToken::new();
    let cancelled = CallContext { cancellation: cancellation.clone(), ..CallContext::new("1") };
    let cancel = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancellation.cancel();
    };
    let both = async { tokio::join!(call(&toolset, &cancelled), cancel) };
    let (ended, ()) = tokio::time::timeout(SOON, both).await.unwrap();
    assert_eq!(ended.outcome, Outcome::Cancelled);
    let deadline = Some(Instant::now() + Duration::from_millis(20));
    let timed = CallContext { deadline, ..CallContext::new("1") };
    let ended = tokio::time::timeout(SOON, call(&toolset, &timed)).await.unwrap();
    assert_eq!(ended.outcome, Outcome::Cancelled);
    // The deadline belongs to this call and cancels nothing else of the caller.
    assert!(!timed.cancellation.is_cancelled());
}

#[tokio::test]
async fn agents_are_nested_four_deep_at_most() {
    let mut agent = child(&[says("deep")]).name("a5").build().unwrap();
    for level in (1..=4).rev() {
        let inner = format!("a{}", level + 1);
        let lines = [calls(&inner), says(&format!("{level}"))];
        let built = Agent::builder(client(&lines)).name(format!("a{level}")).tools(tool(agent));
        agent = built.build().unwrap();
    }
    let log = Log::default();
    let run = agent.run("go").progress(Arc::new(log.clone()));
    let response = run.await.unwrap();
    // Four agents have answered; the fifth was not started.
    assert_eq!((response.text().as_str(), response.usage.unwrap().total), ("1", 4 * 15));
    let context = CallContext {
        run: Some(Arc::new(LiveToolsAt(AGENT_DEPTH_MAX).live())),
        ..CallContext::new("1")
    };
    let error = RunContext::inside(&context).unwrap_err();
    assert!(matches!(error, RunError::TooDeep { depth_max: 4 }), "{error:?}");
    let nested = tool(child(&[says("never")]).build().unwrap());
    let ended = call(&nested, &context).await;
    let expected = "The agent `child` was not started: at most 4 agents can run inside each other.";
    assert_eq!(failure(&ended.outcome).message, expected);
}

/// Tools of a run at a depth.
struct LiveToolsAt(u32);

impl LiveToolsAt {
    fn live(&self) -> crate::LiveTools {
        let nested = crate::live::NestedRuns { depth: self.0, ..Default::default() };
        let tools = crate::live::RunTools::new(Toolset::new(), Arc::from([]));
        crate::LiveTools::new(tools, nested)
    }
}

/// Progress reports, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(String, f64, String)>>>);

impl ProgressSink for Log {
    fn report(&self, call_id: &str, progress: Progress) {
        let message = progress.message.unwrap_or_default();
        self.0.lock().unwrap().push((call_id.to_owned(), progress.done, message));
    }
}

#[tokio::test]
async fn what_the_child_does_is_progress_of_the_call() {
    let declaration = Declaration::new("work", "Works.", r#"{"type":"object","properties":{}}"#);
    let functions = Functions::new("work").with(declaration, async |_, context| {
        let progress = Progress { done: 7.0, total: None, message: Some("half".to_owned()) };
        if let Some(sink) = &context.progress {
            sink.report(&context.call_id, progress);
        }
        Ok(json!("worked"))
    });
    let lines = [json!({"calls": [{"tool": "work", "id": "inner"}]}), says("done")];
    let nested = child(&lines).tools(tools(functions.unwrap())).build().unwrap();
    let log = Log::default();
    let context =
        CallContext { progress: Some(Arc::new(log.clone())), ..CallContext::new("outer") };
    let ended = call(&tool(nested), &context).await;
    assert_eq!(ended.outcome.shown().unwrap().text(), "done");
    let reports = log.0.lock().unwrap().clone();
    let expected = [
        ("outer".to_owned(), 1.0, "calls `work`".to_owned()),
        ("outer".to_owned(), 2.0, "half".to_owned()),
    ];
    assert_eq!(reports, expected);
}

#[tokio::test]
async fn an_error_of_the_childs_program_stays_in_the_record() {
    let declaration = Declaration::new("work", "Works.", r#"{"type":"object","properties":{}}"#);
    let functions = Functions::new("work").with(declaration, async |_, _| {
        let error = ToolError::host("Broken").with_detail("secret");
        Err(cofferdam_tool::functions::FunctionEnd::Error(Box::new(error)))
    });
    let lines = [json!({"calls": [{"tool": "work"}]})];
    let settings = crate::LoopSettings {
        max_consecutive_errors: 1,
        on_error_limit: crate::ErrorLimitAction::Raise,
        ..crate::LoopSettings::default()
    };
    let nested = child(&lines).tools(tools(functions.unwrap())).settings(settings).build().unwrap();
    let ended = call(&tool(nested), &CallContext::new("1")).await;
    let expected = "The agent `child` gave up because its calls kept failing.";
    assert_eq!(failure(&ended.outcome).message, expected);
}
