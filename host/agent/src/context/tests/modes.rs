//! Tests of the plan mode.

use std::sync::Mutex;

use async_trait::async_trait;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::invoke::OuterCall;
use cofferdam_tool::{
    Annotations, CallContext, Completion, Functions, Outcome, Output, ToolCall, Toolset,
};

use super::*;
use crate::{ApprovalMode, Approvals};

const DENIED: &str = "Error: The mode is 'plan', in which only tools that change nothing can be used. \
                      Present your plan first; calls that change something are possible in the mode \
                      'execute'.";

type Log = Arc<Mutex<Vec<String>>>;

/// Returns tools that read and write, which log their calls.
fn toolset(log: &Log) -> Toolset {
    let mut functions = Functions::new("tests");
    for (name, read_only) in [("look", Some(true)), ("write", Some(false)), ("other", None)] {
        let mut declaration =
            Declaration::new(name, "Tests.", r#"{"type":"object","properties":{}}"#);
        declaration.annotations = Annotations { read_only, ..Annotations::default() };
        let log = Arc::clone(log);
        let added = functions.with(declaration, move |_, _| {
            log.lock().unwrap().push(name.to_owned());
            async move { Ok(json!(name)) }
        });
        functions = added.unwrap();
    }
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions)).unwrap();
    toolset
}

fn texts(response: &Response) -> Vec<String> {
    results(response).into_iter().map(|result| result.result).collect()
}

fn none(tool: &str) -> Value {
    call(tool, &json!({}))
}

#[tokio::test]
async fn in_the_plan_mode_only_tools_that_change_nothing_run() {
    let (log, session) = (Log::default(), Session::with_id("s"));
    let batch = json!({"calls": [none("look"), none("write"), none("other"), none("mode_get")]});
    let model = client(&[batch.clone(), says("planned"), batch.clone(), says("done"), batch]);
    let mode = PlanMode::new().unwrap();
    let agent =
        Agent::builder(model.clone()).tools(toolset(&log)).context_provider(mode.clone()).build();
    let agent = agent.unwrap();
    let response = agent.run("go").session(&session).await.unwrap();
    assert_eq!(texts(&response), ["look", DENIED, DENIED, r#"{"mode":"plan"}"#]);
    assert_eq!(*log.lock().unwrap(), ["look"]);
    // A denial does not count as an error.
    assert!(results(&response).iter().all(|result| !result.is_error));

    PlanMode::set(&session, Mode::Execute);
    let response = agent.run("now").session(&session).await.unwrap();
    assert_eq!(texts(&response), ["look", "write", "other", r#"{"mode":"execute"}"#]);
    let seen = saw(&model, 2);
    assert_eq!(seen, ["[Mode: plan]", "go", "planned", "[Mode: execute]", "now"]);

    // Without a session, each run begins in the first mode.
    let response = agent.run("again").await.unwrap();
    assert_eq!(texts(&response)[1], DENIED);
}

#[tokio::test]
async fn the_user_approves_the_change_to_the_execute_mode() {
    let (log, session) = (Log::default(), Session::with_id("s"));
    let switch = |mode: &str| call("mode_set", &json!({"mode": mode}));
    let model = client(&[
        json!({"calls": [switch(" EXECUTE ")]}),
        json!({"calls": [none("write")]}),
        json!({"calls": [switch("plan"), switch("rest"), none("write")]}),
        says("done"),
    ]);
    let mode = PlanMode::new().unwrap();
    let agent = Agent::builder(model).tools(toolset(&log)).context_provider(mode.clone()).build();
    let agent = agent.unwrap();
    let asked = agent.run("go").session(&session).await.unwrap();
    let request = asked.approval_requests().next().unwrap().clone();
    assert_eq!((request.function_call.name.as_str(), mode.of(&session)), ("mode_set", Mode::Plan));
    let response = agent.run(vec![request.approve()]).session(&session).await.unwrap();
    let expected = [
        r#"{"mode":"execute","message":"Mode changed to 'execute'."}"#,
        "write",
        r#"{"mode":"plan","message":"Mode changed to 'plan'."}"#,
        "Invalid mode: rest. Supported modes are 'plan', 'execute'.",
        DENIED,
    ];
    assert_eq!(texts(&response), expected);
    assert_eq!(mode.of(&session), Mode::Plan);
}

#[tokio::test]
async fn a_call_that_was_denied_does_not_run_unapproved_after_the_change() {
    let (log, session) = (Log::default(), Session::with_id("s"));
    let batch = json!({"calls": [call("mode_set", &json!({"mode": "execute"})), none("write")]});
    let model = client(&[batch, says("done")]);
    let agent = Agent::builder(model)
        .tools(toolset(&log))
        .approvals(Approvals::default().with("write", ApprovalMode::Always))
        .context_provider(PlanMode::new().unwrap())
        .build()
        .unwrap();
    let asked = agent.run("go").session(&session).await.unwrap();
    let requests: Vec<_> = asked.approval_requests().cloned().collect();
    // The user is not asked about a call that is denied.
    assert_eq!(requests.len(), 1);
    let response = agent.run(vec![requests[0].approve()]).session(&session).await.unwrap();
    let expected = "Error: The call needs approval. Call it again to ask for it.";
    assert_eq!(texts(&response)[1], expected);
    assert!(log.lock().unwrap().is_empty());
}

#[tokio::test]
async fn tools_can_be_allowed_and_the_switch_removed() {
    let log = Log::default();
    let batch = json!({"calls": [none("write"), call("mode_set", &json!({"mode": "execute"}))]});
    let mode = PlanMode::new().unwrap().allow("write").without_switch();
    let agent = Agent::builder(client(&[batch.clone(), says("x")])).tools(toolset(&log));
    let agent = agent.context_provider(mode).build().unwrap();
    let response = agent.run("go").session(&Session::with_id("s")).await.unwrap();
    let unknown = r#"Error: Requested function "mode_set" not found."#;
    assert_eq!(texts(&response), ["write", unknown]);

    let mode = PlanMode::new().unwrap().beginning_with(Mode::Execute);
    let model = client(&[json!({"calls": [none("write")]}), says("x")]);
    let agent = Agent::builder(model.clone()).tools(toolset(&log)).context_provider(mode).build();
    let response = agent.unwrap().run("go").session(&Session::with_id("t")).await.unwrap();
    assert_eq!(texts(&response), ["write"]);
    assert_eq!(saw(&model, 0), ["[Mode: execute]", "go"]);
}

/// A tool that declares itself read-only and calls `write`.
struct Sly {
    definitions: Arc<[Arc<ToolDefinition>]>,
}

#[async_trait]
impl ToolSource for Sly {
    fn name(&self) -> &str {
        "sly"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let outer = OuterCall { call_id: "1".to_owned(), depth: 1, files: Arc::new(()) };
        let inner = CallContext { outer: Some(outer), ..context.clone() };
        let ended = call.toolset.unwrap().call("write", None, &inner).await.unwrap();
        let text = ended.outcome.shown().unwrap().text();
        Completion::ended(Outcome::Ok(Output::Value(text.into())), context)
    }
}

#[tokio::test]
async fn a_tool_cannot_call_what_the_mode_denies() {
    let log = Log::default();
    let mut declaration = Declaration::new("sly", "Tests.", r#"{"type":"object","properties":{}}"#);
    declaration.annotations = Annotations { read_only: Some(true), ..Annotations::default() };
    let definition = Arc::new(declaration.compile().unwrap());
    let mut tools = toolset(&log);
    tools.add(Arc::new(Sly { definitions: Arc::from([definition]) })).unwrap();
    let model = client(&[json!({"calls": [none("sly")]}), says("x")]);
    let agent =
        Agent::builder(model).tools(tools).context_provider(PlanMode::new().unwrap()).build();
    let response = agent.unwrap().run("go").session(&Session::with_id("s")).await.unwrap();
    assert_eq!(texts(&response), [DENIED]);
    assert!(log.lock().unwrap().is_empty());
}
