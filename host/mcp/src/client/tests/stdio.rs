//! Servers that run as processes.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use cofferdam_tool::invoke::{HostValues, Progress, ProgressSink};
use cofferdam_tool::label::{Confidentiality, StatedBy};
use cofferdam_tool::trace::TraceContext;
use cofferdam_tool::{CallContext, Completion, Outcome, ToolName, ToolSource as _, Toolset};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::served::settings;
use crate::client::{
    ConnectError, Generation, IgnoredStatements, RemoteServer, Review, ServerEndpoint,
    ServerSettings, Statements,
};

async fn connected(settings: ServerSettings) -> Arc<RemoteServer> {
    Arc::new(RemoteServer::connect(settings).await.unwrap())
}

async fn call_with(
    server: &Arc<RemoteServer>,
    tool: &str,
    arguments: &str,
    context: &CallContext,
) -> Completion {
    let mut tools = Toolset::new();
    tools.add(Arc::clone(server) as _).unwrap();
    tools.call(tool, Some(arguments.as_bytes()), context).await.unwrap()
}

async fn call(server: &Arc<RemoteServer>, tool: &str, arguments: &str) -> Completion {
    call_with(server, tool, arguments, &CallContext::new("c")).await
}

fn text(completion: &Completion) -> String {
    completion.outcome.shown().unwrap().text()
}

async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..200 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}: not within 10 seconds");
}

#[tokio::test]
async fn arguments_go_as_they_are_and_what_is_not_declared_stays_here() {
    for generation in [Generation::Auto, Generation::Handshake] {
        let mut settings = settings("plain", &[]);
        settings.generation = generation;
        let server = connected(settings).await;
        let revision = server.protocol_version();
        assert_eq!(
            revision.as_deref() == Some("2026-07-28"),
            generation == Generation::Auto,
            "{revision:?}"
        );
        assert_eq!(server.instructions(), Some("be kind"));
        let trace = json!({"traceparent": "00-1-2-01"}).as_object().unwrap().clone();
        let host = HostValues { trace: Some(trace), ..HostValues::default() };
        let context = CallContext { host: Some(Arc::new(host)), ..CallContext::new("c") };
        let completion = call_with(&server, "echo", r#"{"a":"7","b":2}"#, &context).await;
        let shown: Value = serde_json::from_str(&text(&completion)).unwrap();
        assert_eq!(shown, json!({"arguments": {"a": "7"}, "trace": "00-1-2-01"}));
        assert_eq!(completion.record.dropped, ["b"]);
        assert_eq!(completion.record.outcome, "ok");
        // Without values of the program, the server gets the span of the call.
        let caller = TraceContext::root();
        let context = CallContext { trace: Some(caller), ..CallContext::new("c") };
        let completion = call_with(&server, "echo", "{}", &context).await;
        let shown: Value = serde_json::from_str(&text(&completion)).unwrap();
        let span: TraceContext = shown["trace"].as_str().unwrap().parse().unwrap();
        assert_eq!(span.trace_id(), caller.trace_id());
        assert_ne!(span.span_id(), caller.span_id());
    }
}

#[tokio::test]
async fn labels_are_read_from_a_listing_and_from_results_and_stated_by_a_stranger() {
    for generation in [Generation::Auto, Generation::Handshake] {
        let mut settings = settings("plain", &[("LABELLED", "1")]);
        settings.generation = generation;
        let server = connected(settings).await;
        assert_eq!(server.states_for(), StatedBy::ThirdParty);
        let stated = server.labels(&ToolName::new("labelled").unwrap());
        let private = Some(Confidentiality::Private);
        assert_eq!((stated.confidentiality, stated.accepts_untrusted), (private, Some(true)));
        assert!(server.labels(&ToolName::new("echo").unwrap()).is_empty());
        let label = call(&server, "labelled", "{}").await.record.label.unwrap();
        assert_eq!(label.confidentiality, Confidentiality::UserIdentity);
        assert!(label.principals.contains("a"));
        assert_eq!(call(&server, "echo", "{}").await.record.label, None);
    }
}

#[tokio::test]
async fn a_server_gets_the_configured_environment_alone() {
    let server = connected(settings("plain", &[("TOKEN", "t")])).await;
    assert_eq!(text(&call(&server, "env", "{}").await), "COFFERDAM_TEST_SERVER TOKEN");
}

#[tokio::test]
async fn a_server_that_is_gone_is_started_again_for_the_next_call() {
    let server = connected(settings("plain", &[])).await;
    // The tool ends the server each time, so exactly two calls are made.
    let completion = call(&server, "exit", "{}").await;
    let Outcome::Error(error) = completion.outcome else { panic!("{:?}", completion.outcome) };
    assert_eq!(error.type_name(), "Mcp.ConnectionLost");
    let completion = call(&server, "echo", "{}").await;
    assert_eq!(completion.record.outcome, "ok", "{:?}", completion.outcome);
}

#[tokio::test]
async fn who_gives_up_is_heard_by_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cancelled");
    let server = connected(settings("plain", &[("CANCELLED", file.to_str().unwrap())])).await;
    let cancellation = CancellationToken::new();
    let context = CallContext { cancellation: cancellation.clone(), ..CallContext::new("c") };
    let giving_up = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        cancellation.cancel();
    };
    let (completion, ()) = tokio::join!(call_with(&server, "wait", "{}", &context), giving_up);
    assert_eq!(completion.outcome, Outcome::Cancelled);
    eventually("the server notices", || file.exists()).await;
}

struct Person;

#[async_trait]
impl Asker for Person {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        kind == QuestionKind::Elicitation
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        Ok(questions
            .iter()
            .map(|_| json!({"action": "accept", "content": {"who": "me"}}))
            .collect())
    }
}

#[tokio::test]
async fn a_question_reaches_the_one_whose_call_it_is() {
    let mut settings = settings("plain", &[]);
    settings.generation = Generation::Handshake;
    let server = connected(settings).await;
    assert_eq!(text(&call(&server, "ask", "{}").await), r#"{"action":"decline"}"#);
    let context = CallContext { asker: Some(Arc::new(Person)), ..CallContext::new("c") };
    let completion = call_with(&server, "ask", "{}", &context).await;
    assert_eq!(text(&completion), r#"{"action":"accept","content":{"who":"me"}}"#);
}

#[derive(Default)]
struct Reports(Mutex<Vec<Progress>>);

impl ProgressSink for Reports {
    fn report(&self, _call_id: &str, progress: Progress) {
        self.0.lock().unwrap().push(progress);
    }
}

#[tokio::test]
async fn progress_reaches_the_caller() {
    let server = connected(settings("plain", &[])).await;
    let reports = Arc::new(Reports::default());
    let context =
        CallContext { progress: Some(Arc::clone(&reports) as _), ..CallContext::new("c") };
    assert_eq!(text(&call_with(&server, "report", "{}", &context).await), "reported");
    let progress = Progress { done: 1.0, total: Some(2.0), message: Some("half".to_owned()) };
    assert_eq!(*reports.0.lock().unwrap(), [progress]);
}

#[tokio::test]
async fn a_changed_list_is_loaded_without_being_asked_for() {
    for generation in [Generation::Handshake, Generation::Stateless] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("grown");
        let mut settings = settings("plain", &[("GROWN", file.to_str().unwrap())]);
        settings.generation = generation;
        let server = connected(settings).await;
        assert_eq!(server.definitions().len(), 7);
        if generation == Generation::Stateless {
            // Changes before the subscription are lost, and nothing reports when it is active.
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        call(&server, "grow", "{}").await;
        eventually("the new tool", || server.definitions().len() == 8).await;
    }
}

fn is_running(pid: &str) -> bool {
    // A zombie process is not running any more.
    let status =
        std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    status
        .rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_that_is_given_up_takes_its_descendants_along() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let connecting = RemoteServer::connect(settings(
        "silent",
        &[("PID_FILE", file.to_str().unwrap()), ("PATH", "/usr/bin:/bin")],
    ));
    let gave_up = tokio::time::timeout(Duration::from_secs(3), connecting).await;
    assert!(gave_up.is_err(), "a server that says nothing was connected to");
    let pid = std::fs::read_to_string(&file).unwrap();
    eventually("the descendant is gone", || !is_running(&pid)).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_line_without_end_ends_the_connection() {
    let mut settings = settings("plain", &[("PATH", "/usr/bin:/bin")]);
    let ServerEndpoint::Command(command) = &mut settings.endpoint else { panic!("no command") };
    command.program = "/bin/sh".to_owned();
    command.arguments = ["-c", "yes | tr -d '\\n'"].map(str::to_owned).to_vec();
    // Without a limit, the handshake's timeout would pass before anything happened.
    let connecting = tokio::time::timeout(Duration::from_secs(20), RemoteServer::connect(settings));
    assert!(matches!(connecting.await.unwrap(), Err(ConnectError::Handshake(_))));
}

#[tokio::test]
async fn names_of_the_server_are_admitted_prefixed_and_approved_as_configured() {
    let mut settings = settings("plain", &[]);
    settings.admission.allowed_tools = Some(vec!["echo".to_owned(), "gone".to_owned()]);
    settings.admission.prefix = Some("far.".to_owned());
    settings.approval =
        serde_json::from_value(json!({"always_require_approval": ["echo"]})).unwrap();
    let server = connected(settings).await;
    let names: Vec<_> = server.definitions().iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(names.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["far_echo"]);
    assert!(server.needs_approval(&names[0]));
    assert_eq!(call(&server, "far_echo", "{}").await.record.outcome, "ok");
}

/// Leaves out `echo` and the instructions.
struct Careful;

impl Review for Careful {
    fn left_out(&self, statements: &Statements) -> IgnoredStatements {
        assert_eq!(statements.instructions.as_deref(), Some("be kind"));
        assert!(statements.tools.contains_key("echo") && statements.tools.contains_key("env"));
        IgnoredStatements {
            instructions: true,
            tools: ["echo".to_owned()].into(),
            ..IgnoredStatements::default()
        }
    }
}

#[tokio::test]
async fn what_a_review_does_not_accept_is_left_out() {
    let mut settings = settings("plain", &[]);
    settings.review = Some(Arc::new(Careful));
    let server = connected(settings).await;
    let names: Vec<_> = server.definitions().iter().map(|tool| tool.name.to_string()).collect();
    assert!(!names.contains(&"echo".to_owned()) && names.contains(&"env".to_owned()), "{names:?}");
    assert_eq!(server.instructions(), None);
}
