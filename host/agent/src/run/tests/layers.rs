//! Tests of the built-in middleware in runs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_tool::permission::SecretText;
use cofferdam_tool::redact::Redactor;
use cofferdam_tool::retry::Backoff;
use cofferdam_tool::{ErrorType, Output, ToolError};
use serde_json::json;

use super::{Log, agent, calling, texts};
use crate::middleware::{
    Audit, FailureConversion, FunctionContext, FunctionError, FunctionSignal, FunctionValue,
    Middleware, Next, RateLimit, Redaction, Retry, Timeout,
};
use crate::{
    Agent, ApprovalMode, Approvals, InvalidAgent, Layer, LoopSettings, MiddlewareRefused,
    ScriptedClient, Session, allow_always,
};

fn retry() -> Layer {
    Layer::function(Retry::new(Backoff {
        retries_max: 3,
        pause: Duration::from_millis(1),
        pause_max: Duration::from_millis(1),
    }))
}

#[tokio::test]
async fn what_may_pass_is_tried_again_inside_the_conversion() {
    let log = Log::default();
    let client = calling(&[&[("unsteady", r#"{"text":"x"}"#), ("fail", "{}")]]);
    let agent = agent(&client, &log).layer(retry()).build().unwrap();
    let response = agent.run("go").await.unwrap();
    let failure = r#"{"error":{"message":"no such thing"}}"#;
    assert_eq!(texts(&response.messages), ["x", failure, "done"]);
    assert_eq!(log.lock().unwrap().len(), 4, "three tries of one, and one of the other");
}

#[test]
fn retrying_outside_of_the_conversion_is_refused_when_the_agent_is_built() {
    let client = calling(&[]);
    let builder =
        agent(&client, &Log::default()).layer(retry()).layer(Layer::function(FailureConversion));
    let refused = InvalidAgent::Middleware(MiddlewareRefused::RetryOutsideConversion);
    assert_eq!(builder.build().unwrap_err(), refused);
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_a_timeout() {
    let client = calling(&[&[("slow", "{}")]]);
    let limit = Layer::function(Timeout::new(Duration::from_millis(20)));
    let agent = agent(&client, &Log::default()).layer(limit).build().unwrap();
    let response = agent.run("go").await.unwrap();
    let text =
        r#"{"error":{"message":"An unexpected error occurred (Timeout). Please try again."}}"#;
    assert_eq!(texts(&response.messages), [text, "done"]);
}

#[tokio::test]
async fn a_tool_that_is_called_too_often_says_when_to_come_back() {
    let client = calling(&[&[("echo", "{}"), ("echo", "{}"), ("echo", "{}")]]);
    let limit = Layer::function(RateLimit::new(2, Duration::from_secs(3600)));
    let agent = agent(&client, &Log::default()).layer(limit).build().unwrap();
    let texts = texts(&agent.run("go").await.unwrap().messages);
    assert!(
        texts[2].contains("called too often") && texts[2].contains("suggestion"),
        "{}",
        texts[2]
    );
}

#[tokio::test]
async fn secrets_are_taken_out_of_results_and_failures() {
    let redactor = Arc::new(Redactor::new([("key", &SecretText::new("no such thing"))]).unwrap());
    let client = calling(&[&[("echo", r#"{"text":"no such thing!"}"#), ("fail", "{}")]]);
    let agent = agent(&client, &Log::default())
        .layer(Layer::function(Redaction::new(redactor)))
        .build()
        .unwrap();
    let texts = texts(&agent.run("go").await.unwrap().messages).join("\n");
    assert!(!texts.contains("no such thing"), "{texts}");
}

/// Ends every call with an error or a termination that holds a secret.
struct Ending {
    terminates: bool,
}

#[async_trait::async_trait]
impl Middleware<FunctionContext> for Ending {
    async fn process(
        &self,
        _context: &mut FunctionContext,
        _next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        if self.terminates {
            let output = Output::Value(json!("open sesame!"));
            return Err(FunctionSignal::Terminate(Some(FunctionValue::Output(output))));
        }
        let error = ToolError::new(ErrorType::InvalidResult).with_detail("open sesame!");
        Err(FunctionError::Tool(error).into())
    }
}

/// Writes down the results of the middleware inside it.
struct Watching(Arc<Mutex<String>>);

#[async_trait::async_trait]
impl Middleware<FunctionContext> for Watching {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        let ended = next.run(context).await;
        *self.0.lock().unwrap() = format!("{ended:?}");
        ended
    }
}

#[tokio::test]
async fn secrets_are_taken_out_of_errors_and_terminations() {
    for terminates in [false, true] {
        let redactor = Arc::new(Redactor::new([("key", &SecretText::new("open sesame"))]).unwrap());
        let seen = Arc::new(Mutex::new(String::new()));
        let client = calling(&[&[("echo", "{}")]]);
        let agent = agent(&client, &Log::default())
            .layer(Layer::function(Watching(Arc::clone(&seen))))
            .layer(Layer::function(Redaction::new(redactor)))
            .layer(Layer::function(Ending { terminates }))
            .build()
            .unwrap();
        let texts = texts(&agent.run("go").await.unwrap().messages).join("\n");
        assert!(!texts.contains("open sesame"), "{texts}");
        let seen = seen.lock().unwrap();
        assert!(seen.contains("[secret key]!") && !seen.contains("open sesame"), "{seen}");
    }
}

#[tokio::test]
async fn every_call_is_recorded_with_its_true_outcome() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let entries = Arc::clone(&lines);
    let audit = Audit::new(move |entry: crate::middleware::AuditEntry<'_>| {
        entries
            .lock()
            .unwrap()
            .push(format!("{} {} {}", entry.tool, entry.outcome, entry.arguments));
    });
    let bad = r#"{"text":1.5,"x":[]"#;
    let client = calling(&[&[("echo", "{}"), ("fail", "{}"), ("crash", "{}"), ("echo", bad)]]);
    let agent = agent(&client, &Log::default()).layer(Layer::function(audit)).build().unwrap();
    agent.run("go").await.unwrap();
    let expected =
        ["echo ok {}", "fail failure {}", "crash error {}", &format!("echo refused {bad}")];
    assert_eq!(*lines.lock().unwrap(), expected);
}

/// Creates an agent whose tool `echo` belongs to the source with this name.
fn agent_of(client: &ScriptedClient, source: &str, log: &Log) -> Agent {
    let log = Arc::clone(log);
    let declaration =
        cofferdam_tool::declaration::Declaration::new("echo", "For tests.", r#"{"type":"object"}"#);
    let named = source.to_owned();
    let functions = cofferdam_tool::Functions::new(source).with(declaration, move |_, _| {
        log.lock().unwrap().push(named.clone());
        async { Ok(serde_json::json!("ran")) }
    });
    let mut toolset = cofferdam_tool::Toolset::new();
    toolset.add(Arc::new(functions.unwrap())).unwrap();
    let approvals = Approvals::by_default(ApprovalMode::ByAnnotation);
    Agent::builder(client.clone()).tools(toolset).approvals(approvals).build().unwrap()
}

#[tokio::test]
async fn what_is_allowed_for_always_is_allowed_to_one_origin() {
    let (log, session) = (Log::default(), Session::with_id("s"));
    let batch: &[(&str, &str)] = &[("echo", "{}")];
    let client = calling(&[batch, batch]);
    let requested = |response: crate::Response| response.approval_requests().next().cloned();
    // Rules of earlier versions contain only a name, and allow nothing.
    session.set_part("standing_approvals", serde_json::json!([{"allow": "tool", "name": "echo"}]));
    let first = agent_of(&client, "first", &log);
    let request = requested(first.run("go").session(&session).await.unwrap()).unwrap();
    assert_eq!(request.origin.as_ref().unwrap().to_string(), "program:first");
    allow_always(&session, crate::Scope::every_call(&request).unwrap());
    allow_always(&session, crate::Scope::same_call(&request).unwrap());
    // An approval covers only the tool that existed then, and so does a standing rule.
    let second = agent_of(&client, "second", &log);
    let response = second.run(vec![request.approve()]).session(&session).await.unwrap();
    let texts = texts(&response.messages);
    assert!(texts[0].starts_with("Error: The tool has changed since"), "{texts:?}");
    assert_eq!(requested(response).unwrap().origin.unwrap().to_string(), "program:second");
    assert!(log.lock().unwrap().is_empty());
    let response =
        agent_of(&calling(&[batch]), "first", &log).run("go").session(&session).await.unwrap();
    assert!(requested(response).is_none());
    assert_eq!(*log.lock().unwrap(), ["first"]);
}

#[tokio::test]
async fn what_is_allowed_for_always_is_not_asked_again() {
    let session = Session::with_id("s");
    let batch: &[(&str, &str)] = &[("echo", r#"{"text":"a"}"#)];
    let client = calling(&[batch, batch, &[("echo", r#"{"text":"b"}"#)], batch]);
    let approvals = Approvals::by_default(ApprovalMode::ByAnnotation);
    let agent = agent(&client, &Log::default()).approvals(approvals).build().unwrap();
    let response = agent.run("go").session(&session).await.unwrap();
    let request = response.approval_requests().next().unwrap().clone();
    let (name, arguments) = (request.function_call.name.clone(), r#"{ "text": "a" }"#.to_owned());
    let origin = request.origin.clone().unwrap();
    allow_always(&session, crate::Scope::Exactly { name, origin, arguments });
    // A rule allows the second call; the third has other arguments.
    let response = agent.run(vec![request.approve()]).session(&session).await.unwrap();
    let request = response.approval_requests().next().unwrap().clone();
    assert_eq!(request.function_call.arguments, r#"{"text":"b"}"#);
    allow_always(&session, crate::Scope::every_call(&request).unwrap());
    let response =
        agent.run(vec![request.refuse(Some("no".to_owned()))]).session(&session).await.unwrap();
    let refused = "Error: Tool call invocation was rejected by user. no";
    assert_eq!(texts(&response.messages), [refused, "a", "done"]);
    let rules = crate::standing_rules(&session);
    assert!(rules.iter().all(|rule| crate::forbid_again(&session, rule)));
    assert_eq!((rules.len(), crate::standing_rules(&session).len()), (2, 0));
    // Every call of a tool with the mode `Always` needs approval.
    let strict = Approvals::default().with("echo", ApprovalMode::Always);
    let agent =
        super::agent(&calling(&[batch]), &Log::default()).approvals(strict).build().unwrap();
    let response = agent.run("go").session(&session).await.unwrap();
    assert_eq!(response.approval_requests().count(), 1);
}

#[tokio::test]
async fn a_failure_counts_and_nothing_of_an_error_reaches_the_model() {
    let client = calling(&[&[("crash", "{}")], &[("crash", "{}")]]);
    let settings = LoopSettings { max_consecutive_errors: 2, ..LoopSettings::default() };
    let agent = agent(&client, &Log::default()).settings(settings).build().unwrap();
    let response = agent.run("go").await.unwrap();
    assert!(!format!("{:?}", response.messages).contains("secret"));
    assert_eq!(client.requests().last().unwrap().options.tool_choice, Some(crate::ToolMode::None));
}
