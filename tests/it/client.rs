//! `cofferdam:plugin/client`: questions and log lines of a running tool to its caller.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_engine::{Component, Grants, PluginOptions};
use cofferdam_tests::{Host, guest};
use cofferdam_tool::ask::{AskError, Asker, LogLevel, LogSink, Question, QuestionKind};
use cofferdam_tool::output::ResourceBody;
use cofferdam_tool::permission::SecretText;
use cofferdam_tool::recording::RecordingLevel;
use cofferdam_tool::{CallContext, Completion, Content, Limits, Output, PluginName, ToolName};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::script;

const SCHEMA: &str = r#"{"type":"object"}"#;

/// Answers questions, after a delay if one is set, and records them.
#[derive(Default)]
struct Person {
    asked: Mutex<Vec<Vec<Question>>>,
    /// Replaces the usual answers.
    answers: Option<Result<Vec<Value>, AskError>>,
    takes: Duration,
    began: Notify,
}

#[async_trait]
impl Asker for Person {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        kind != QuestionKind::Roots
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        self.began.notify_one();
        tokio::time::sleep(self.takes).await;
        let usual = questions.iter().map(|question| match question.kind {
            QuestionKind::Elicitation => json!({"action": "accept", "content": {"name": "Ada"}}),
            QuestionKind::Sampling => {
                json!({"role": "assistant", "content": {"type": "text", "text": "4"}})
            }
            QuestionKind::Roots => json!({"roots": [{"uri": "file:///work", "name": "work"}]}),
        });
        let usual = Ok(usual.collect());
        self.asked.lock().unwrap().push(questions);
        self.answers.clone().unwrap_or(usual)
    }
}

/// Records log lines.
#[derive(Default)]
struct Listener(Mutex<Vec<(String, LogLevel, String)>>);

impl LogSink for Listener {
    fn log(&self, call_id: &str, level: LogLevel, message: &str) {
        self.0.lock().unwrap().push((call_id.to_owned(), level, message.to_owned()));
    }
}

/// Returns a host with the plugin `stores` and these grants.
async fn host(kinds: &[QuestionKind], limits: Limits) -> Host {
    let grants = Grants {
        ask: kinds.iter().copied().collect(),
        tools: [ToolName::new("stores").unwrap()].into(),
        secrets: [("key".to_owned(), SecretText::new("open sesame"))].into(),
        ..Grants::default()
    };
    let mut host = Host::new();
    let options = PluginOptions {
        recording: RecordingLevel::All,
        ..PluginOptions::new(PluginName::new("stores").unwrap(), grants, limits)
    };
    let component = Component::from_file_ambient(guest("stores"));
    let plugin = host.engine.load(&component, options, &()).await.unwrap();
    host.add(plugin);
    host
}

async fn with_everything() -> Host {
    host(&QuestionKind::ALL, Limits::default()).await
}

async fn run(host: &Host, steps: &[&[&str]], context: &CallContext) -> Completion {
    host.try_call("stores", &script::arguments(steps), context).await.unwrap()
}

fn asking(person: &Arc<Person>) -> CallContext {
    let asker: Arc<dyn Asker> = Arc::clone(person) as _;
    CallContext { asker: Some(asker), ..CallContext::new("c") }
}

fn answers_of(completion: &Completion) -> Vec<String> {
    let shown = completion.outcome.shown().unwrap();
    assert!(!shown.is_error, "{:?}", completion.outcome);
    script::answers(&shown.text())
}

#[tokio::test]
async fn several_questions_are_put_at_once_and_answered_in_order() {
    let host = with_everything().await;
    let person = Arc::new(Person::default());
    let steps: &[&[&str]] =
        &[&["ask", "sample", r#"{"maxTokens":5}"#, "form", "Who?", SCHEMA, "roots"]];
    let completion = run(&host, steps, &asking(&person)).await;
    let [answers] = <[String; 1]>::try_from(answers_of(&completion)).unwrap();
    let positions: Vec<_> = ["Message(", "Accepted(", "Ada", "Roots(", "file:///work"]
        .map(|part| answers.find(part))
        .into();
    assert!(positions.is_sorted() && positions[0].is_some(), "{answers}");
    let asked = person.asked.lock().unwrap();
    let parameters: Vec<_> =
        asked[0].iter().map(|question| Value::Object(question.parameters.clone())).collect();
    assert_eq!(
        parameters,
        [
            json!({"maxTokens": 5}),
            json!({"mode": "form", "message": "Who?", "requestedSchema": {"type": "object"}}),
            json!({})
        ]
    );
    assert_eq!((asked.len(), completion.record.questions), (1, 3));
}

#[tokio::test]
async fn a_question_without_a_grant_is_denied_and_recorded() {
    let host = host(&[QuestionKind::Roots], Limits::default()).await;
    let person = Arc::new(Person::default());
    let steps: &[&[&str]] =
        &[&["ask", "roots", "form", "Who?", SCHEMA], &["ask", "roots"], &["can_ask"]];
    let completion = run(&host, steps, &asking(&person)).await;
    let answers = answers_of(&completion);
    assert!(answers[0].starts_with("Error::Denied"), "{}", answers[0]);
    assert!(
        answers[0].contains("`ask:form`") && answers[0].contains("cofferdam grant stores ask:form")
    );
    assert!(answers[1].starts_with("[Answer::Roots"), "{}", answers[1]);
    // Roots are granted, but this user has none.
    assert_eq!(answers[2], "[false, false, false]");
    let refused: Vec<_> =
        completion.record.refused.iter().map(|refusal| &refusal.capability).collect();
    assert_eq!(refused, ["ask:form"]);
    assert_eq!(person.asked.lock().unwrap().len(), 1, "what is denied reaches no client");
}

#[tokio::test]
async fn who_can_be_asked_is_known_before() {
    let host = with_everything().await;
    let person = Arc::new(Person::default());
    assert_eq!(
        answers_of(&run(&host, &[&["can_ask"]], &asking(&person)).await),
        ["[true, true, false]"]
    );
    let without_client = CallContext::new("c");
    let steps: &[&[&str]] = &[&["can_ask"], &["ask", "form", "Who?", SCHEMA]];
    assert_eq!(
        answers_of(&run(&host, steps, &without_client).await),
        ["[false, false, false]", "Error::Unsupported"]
    );
}

#[tokio::test]
async fn a_tool_that_another_tool_has_called_asks_and_notifies_no_client() {
    let host = with_everything().await;
    let (person, listener) = (Arc::new(Person::default()), Arc::new(Listener::default()));
    let inner = script::arguments(&[&["can_ask"], &["ask", "roots"], &["log", "inner"]]);
    let context = CallContext { log: Some(Arc::clone(&listener) as _), ..asking(&person) };
    let steps: &[&[&str]] = &[&["call", "stores", &inner], &["ask", "roots"]];
    let answers = answers_of(&run(&host, steps, &context).await);
    assert_eq!(
        script::answers(&answers[0]),
        ["[false, false, false]", "Error::Unsupported", "logged"]
    );
    assert!(answers[1].contains("file:///work"), "{}", answers[1]);
    assert!(listener.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn what_the_client_says_instead_of_an_answer_is_an_error_of_the_guest() {
    let host = with_everything().await;
    let steps: &[&[&str]] = &[&["ask", "form", "Who?", SCHEMA]];
    for (answers, expected) in [
        (Err(AskError::Unsupported(QuestionKind::Elicitation)), "Error::Unsupported"),
        (Err(AskError::Failed("no".into())), r#"Error::Failed("the client did not answer: no")"#),
        (Ok(vec![]), r#"Error::Failed("the client did not answer every question")"#),
        (
            Ok(vec![json!({"action": "wave"})]),
            r#"Error::Failed("the client's answer is not valid MCP")"#,
        ),
        (Ok(vec![json!({"action": "decline"})]), "[Answer::Declined]"),
        (Ok(vec![json!({"action": "cancel"})]), "[Answer::Cancelled]"),
        (
            Ok(vec![json!({"action": "accept", "content": {"a": "x".repeat(1 << 20)}})]),
            r#"Error::Limit("the answers have more than 1048576 bytes")"#,
        ),
    ] {
        let person = Arc::new(Person { answers: Some(answers), ..Person::default() });
        assert_eq!(answers_of(&run(&host, steps, &asking(&person)).await), [expected]);
    }
}

#[tokio::test]
async fn a_call_may_ask_so_much_and_no_more() {
    let host = with_everything().await;
    let person = Arc::new(Person::default());
    let many = [&["ask"][..], &["roots"; 63]].concat();
    let long = "x".repeat(65_536);
    let steps: &[&[&str]] = &[
        &many,
        &["ask", "roots", "roots"],
        &["ask", "form", &long, SCHEMA],
        &["ask", "form", "Who?", "not JSON"],
        &["ask", "roots"],
        &["ask", "roots"],
        &["ask"],
    ];
    let completion = run(&host, steps, &asking(&person)).await;
    let answers = answers_of(&completion);
    assert_eq!(answers[0].matches("Answer::Roots").count(), 63);
    let limit = r#"Error::Limit("a call may ask 64 questions")"#;
    assert_eq!(
        (answers[1].as_str(), answers[5].as_str(), answers[6].as_str()),
        (limit, limit, "[]")
    );
    assert!(
        answers[2].starts_with("Error::Limit(\"a question has at most 65536 bytes"),
        "{}",
        answers[2]
    );
    assert!(answers[3].starts_with("Error::Invalid("), "{}", answers[3]);
    assert!(answers[4].starts_with("[Answer::Roots"), "{}", answers[4]);
    assert_eq!(completion.record.questions, 64);
}

#[tokio::test]
async fn questions_have_names_that_are_unique_within_the_call() {
    let host = with_everything().await;
    let person = Arc::new(Person::default());
    let steps: &[&[&str]] = &[
        &["ask", "roots", "roots:user_name"],
        &["ask", "roots:user_name"],
        &["ask", "roots:a b"],
        &["ask", "roots:"],
        &["ask", "roots:a", "roots:a"],
        &["ask", "roots"],
    ];
    let answers = answers_of(&run(&host, steps, &asking(&person)).await);
    for refused in &answers[1..5] {
        assert!(refused.starts_with("Error::Invalid("), "{refused}");
    }
    let asked = person.asked.lock().unwrap();
    let names: Vec<_> = asked.iter().flatten().map(|question| question.name.as_str()).collect();
    assert_eq!(names, ["question-1", "user_name", "question-3"]);
}

#[tokio::test]
async fn the_wall_clock_stands_still_while_a_person_thinks() {
    let limits = Limits { wall_ms_max: 1500, ..Limits::default() };
    let host = host(&QuestionKind::ALL, limits).await;
    let person = Arc::new(Person { takes: Duration::from_secs(3), ..Person::default() });
    let completion = run(&host, &[&["ask", "roots"], &["time_left"]], &asking(&person)).await;
    let answers = answers_of(&completion);
    assert!(answers[0].contains("file:///work"), "{}", answers[0]);
    let left: u64 = answers[1].parse().unwrap();
    assert!((1..=1500).contains(&left), "{left}");
    let phases = completion.record.phases;
    assert!(
        phases.asking >= Duration::from_secs(3) && phases.run < Duration::from_secs(3),
        "{phases:?}"
    );
    // After the answer, the guest goes on and ends the call.
    let context = asking(&person);
    let asks_and_spins = run(&host, &[&["ask", "roots"], &["spin"]], &context);
    let ended = tokio::time::timeout(Duration::from_secs(60), asks_and_spins);
    assert_eq!(ended.await.unwrap().record.error_type.as_deref(), Some("Timeout"));
}

#[tokio::test]
async fn cancellation_and_the_callers_deadline_end_a_call_that_waits_for_an_answer() {
    let host = with_everything().await;
    let slow = || Arc::new(Person { takes: Duration::from_secs(3600), ..Person::default() });
    let person = slow();
    let context = asking(&person);
    let cancellation = context.cancellation.clone();
    let cancel = async {
        person.began.notified().await;
        cancellation.cancel();
    };
    let cancelled = async { tokio::join!(run(&host, &[&["ask", "roots"]], &context), cancel).0 };
    let ended = tokio::time::timeout(Duration::from_secs(60), cancelled).await.expect("it ends");
    assert_eq!(ended.record.outcome, "cancelled");
    let soon = tokio::time::Instant::now() + Duration::from_millis(300);
    let context = CallContext { deadline: Some(soon), ..asking(&slow()) };
    let late =
        tokio::time::timeout(Duration::from_secs(60), run(&host, &[&["ask", "roots"]], &context));
    assert_eq!(late.await.expect("it ends").record.outcome, "cancelled");
}

#[tokio::test]
async fn secrets_stay_out_of_questions_and_of_what_is_logged() {
    let host = with_everything().await;
    let (person, listener) = (Arc::new(Person::default()), Arc::new(Listener::default()));
    let context = CallContext { log: Some(Arc::clone(&listener) as _), ..asking(&person) };
    let schema = r#"{"type":"object","properties":{"open sesame":{"type":"string"}}}"#;
    let steps: &[&[&str]] =
        &[&["ask", "form", "Is it open sesame?", schema], &["log", "open sesame"]];
    answers_of(&run(&host, steps, &context).await);
    let asked = format!("{:?}", person.asked.lock().unwrap());
    assert!(!asked.contains("open sesame") && asked.contains("[secret key]"), "{asked}");
    assert_eq!(
        *listener.0.lock().unwrap(),
        [("c".into(), LogLevel::Warning, "[secret key]".into())]
    );
}

#[tokio::test]
async fn what_a_call_logs_has_limits() {
    let host = host(&[], Limits::default()).await;
    let log = async |steps: &[&[&str]]| {
        let listener = Arc::new(Listener::default());
        let context =
            CallContext { log: Some(Arc::clone(&listener) as _), ..CallContext::new("c") };
        answers_of(&run(&host, steps, &context).await);
        let lines = listener.0.lock().unwrap();
        lines.iter().map(|(_, _, line)| line.len()).collect::<Vec<_>>()
    };
    let (longest, longer) = ("x".repeat(8192), "x".repeat(8193));
    assert_eq!(log(&[&["log", &longer], &["log", "a"], &["log", &longest]]).await, [1, 8192]);
    assert_eq!(log(&[&["log", &longest][..]; 33]).await.len(), 32);
    assert_eq!(log(&[&["log", "x"][..]; 1001]).await.len(), 1000);
    // Without a listener, log lines are dropped.
    answers_of(&run(&host, &[&["log", "x"]], &CallContext::new("c")).await);
}

/// Returns a host with the plugin of the conformance suite and all grants of its manifest except
/// the store.
async fn conformance() -> Host {
    let mut host = Host::new();
    host.grants.ask = QuestionKind::ALL.into();
    host.load("mcp_conformance").await;
    host
}

#[tokio::test]
async fn a_tool_written_with_the_sdk_asks_what_it_needs() {
    let host = conformance().await;
    let person = Arc::new(Person::default());
    let answer = async |tool: &str, arguments: &str| {
        let completion = host.try_call(tool, arguments, &asking(&person)).await.unwrap();
        completion.outcome.shown().unwrap().text()
    };
    assert_eq!(answer("test_input_required_result_elicitation", "{}").await, "Hello, Ada!");
    assert_eq!(answer("test_sampling", r#"{"prompt":"2 + 2"}"#).await, "LLM response: 4");
    assert_eq!(
        answer("test_input_required_result_list_roots", "{}").await,
        "Client roots: file:///work"
    );
    assert_eq!(
        answer("test_input_required_result_multiple_inputs", "{}").await,
        "All inputs received"
    );
    assert_eq!(
        answer("test_elicitation_sep1330_enums", "{}").await,
        r#"Elicitation completed: action=accept, content={"name":"Ada"}"#
    );
    // This user declares in advance that there are no roots.
    assert_eq!(
        answer("test_input_required_result_capabilities", "{}").await,
        "Questions that were answered: 2"
    );
    let asked = person.asked.lock().unwrap();
    let names: Vec<Vec<_>> = asked
        .iter()
        .map(|round| round.iter().map(|question| question.name.as_str()).collect())
        .collect();
    assert_eq!(
        names,
        [
            vec!["user_name"],
            vec!["question-1"],
            vec!["client_roots"],
            vec!["user_name", "greeting", "client_roots"],
            vec!["question-1"],
            vec!["user_name", "greeting"],
        ]
    );
}

#[tokio::test]
async fn resources_and_schemas_come_out_as_they_were_written() {
    let host = conformance().await;
    let answer = host.call("test_multiple_content_types", "{}").await;
    let Some(Output::Contents(contents)) = answer.outcome.shown().map(|shown| shown.output) else {
        panic!("several items")
    };
    assert!(matches!(&contents[1], Content::Blob { media_type, .. } if media_type == "image/png"));
    let resource = Content::Resource {
        uri: "test://mixed-content-resource".into(),
        media_type: Some("application/json".into()),
        body: ResourceBody::Text(r#"{"test":"data","value":123}"#.into()),
    };
    assert_eq!(contents[2], resource);
    let definitions = host.toolset().definitions();
    let schema =
        definitions.into_iter().find(|d| d.name.as_str() == "json_schema_2020_12_tool").unwrap();
    let keys: Vec<_> =
        schema.input.published().as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "$schema",
            "type",
            "$defs",
            "properties",
            "allOf",
            "if",
            "then",
            "else",
            "additionalProperties"
        ]
    );
    assert_eq!(schema.input.published()["$defs"]["address"]["$anchor"], "addressDef");
}

#[tokio::test]
async fn a_replay_answers_from_the_recording_and_asks_no_question() {
    let host = with_everything().await;
    let person = Arc::new(Person::default());
    let steps: &[&[&str]] = &[
        &["ask", "sample", r#"{"maxTokens":5}"#, "form", "Who?", SCHEMA, "roots"],
        &["ask", "form", "Again?", SCHEMA],
    ];
    let completion = run(&host, steps, &asking(&person)).await;
    let recording = completion.record.recording.unwrap();
    assert_eq!(recording.questions.len(), 2);
    let report = cofferdam::replay::run(host.plugin(), &recording).await.unwrap();
    assert!(report.is_identical(), "{:?}", report.differences);
    assert_eq!(person.asked.lock().unwrap().len(), 2);

    // Another question is not answered.
    let mut other = (*recording).clone();
    let text = serde_json::to_string(&other.questions).unwrap().replace("Again?", "Once more?");
    other.questions = serde_json::from_str(&text).unwrap();
    let report = cofferdam::replay::run(host.plugin(), &Arc::new(other)).await.unwrap();
    let first = report.differences.first().map(ToString::to_string);
    assert_eq!(first.as_deref(), Some("new input: ask the caller (form)"));
}
