//! Calls with questions, and tasks of the extension.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::CallContext;
use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use serde_json::{Map, Value, json};

use crate::client::testing::Scripted;
use crate::client::{
    CallError, Calls, Item, Questions, Resend, SelectionMode, TaskOptions, TaskSupport, into_output,
};

struct Person;

#[async_trait]
impl Asker for Person {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        kind == QuestionKind::Elicitation
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        let answer = |question: &Question| {
            let content =
                json!({"message": question.parameters["message"], "question": question.name});
            json!({"action": "accept", "content": content})
        };
        Ok(questions.iter().map(answer).collect())
    }
}

async fn called(server: &Arc<Scripted>, with_person: bool) -> Result<Vec<Item>, CallError> {
    let calls = Calls {
        remote: Arc::clone(server) as _,
        tasks: TaskOptions::default(),
        selection: SelectionMode::default(),
        questions: Arc::new(Questions::default()),
        loads_tools: true,
        resend: Resend::Always,
        wait: None,
    };
    let asker = with_person.then(|| Arc::new(Person) as _);
    let context = CallContext { asker, ..CallContext::new("c") };
    let parameters = Map::from_iter([("name".to_owned(), json!("t"))]);
    calls.call("t", TaskSupport::Other, parameters, &context).await
}

fn question(message: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"message": message, "requestedSchema": {}}})
}

fn done() -> Value {
    json!({"content": [{"type": "text", "text": "done"}]})
}

#[tokio::test]
async fn each_round_takes_its_own_answers_and_the_state_as_it_came() {
    let server = Arc::new(Scripted::answering(vec![
        json!({"resultType": "input_required", "requestState": "s1", "inputRequests": {"q": question("a"), "r": {"method": "roots/list"}}}),
        json!({"resultType": "input_required", "inputRequests": {"q/2": question("b")}}),
        json!({"resultType": "input_required", "requestState": "s3"}),
        done(),
    ]));
    let items = called(&server, true).await.unwrap();
    assert_eq!(into_output(items).text(), "done");
    let sent = server.sent();
    assert_eq!(sent[0].1, json!({"name": "t"}));
    let answer = |message: &str, question: &str| json!({"action": "accept", "content": {"message": message, "question": question}});
    let responses = json!({"q": answer("a", "0-0-q"), "r": {"roots": []}});
    assert_eq!(sent[1].1, json!({"name": "t", "requestState": "s1", "inputResponses": responses}));
    assert_eq!(sent[2].1, json!({"name": "t", "inputResponses": {"q/2": answer("b", "1-0-q2")}}));
    assert_eq!(sent[3].1, json!({"name": "t", "requestState": "s3"}));
}

#[tokio::test]
async fn without_a_client_to_ask_a_question_is_declined_and_sampling_ends_the_call() {
    let asks =
        |request: Value| json!({"resultType": "input_required", "inputRequests": {"q": request}});
    let server = Arc::new(Scripted::answering(vec![asks(question("a")), done()]));
    called(&server, false).await.unwrap();
    assert_eq!(server.sent()[1].1["inputResponses"], json!({"q": {"action": "decline"}}));
    let url = json!({"method": "elicitation/create", "params": {"mode": "url", "url": "https://x.example", "message": "a"}});
    let server = Arc::new(Scripted::answering(vec![asks(url), done()]));
    called(&server, true).await.unwrap();
    assert_eq!(server.sent()[1].1["inputResponses"], json!({"q": {"action": "decline"}}));
    let server = Arc::new(Scripted::answering(vec![asks(
        json!({"method": "sampling/createMessage", "params": {}}),
    )]));
    let error = called(&server, true).await.unwrap_err();
    assert_eq!(error.to_string(), "Failed to call tool 't'.");
    let endless =
        (0..20).map(|_| json!({"resultType": "input_required", "requestState": "s"})).collect();
    let server = Arc::new(Scripted::answering(endless));
    assert!(called(&server, true).await.is_err());
    assert_eq!(server.sent().len(), 10);
}

#[tokio::test]
async fn a_task_that_the_server_made_ends_with_the_result_in_its_state() {
    let state = |status: &str| json!({"taskId": "k", "status": status, "pollIntervalMs": 700});
    let with = |status: &str, name: &str, value: Value| {
        let mut state = state(status);
        state[name] = value;
        state
    };
    let created = || with("working", "resultType", json!("task"));
    let server = Arc::new(Scripted::answering(vec![
        created(),
        state("working"),
        with("input_required", "inputRequests", json!({"q": question("a")})),
        json!({"resultType": "complete"}),
        with("completed", "result", done()),
    ]));
    assert_eq!(into_output(called(&server, true).await.unwrap()).text(), "done");
    let sent = server.sent();
    let methods: Vec<_> = sent.iter().map(|(method, _)| *method).collect();
    assert_eq!(methods, ["tools/call", "tasks/get", "tasks/get", "tasks/update", "tasks/get"]);
    assert_eq!(sent[3].1["inputResponses"]["q"]["content"]["message"], "a");
    assert_eq!(server.pauses_s(), [0.7, 0.7]);

    let failed = with("failed", "error", json!({"code": -32000, "message": "no disk"}));
    let server = Arc::new(Scripted::answering(vec![created(), failed]));
    let error = called(&server, true).await.unwrap_err();
    assert_eq!(error.to_string(), "Tool 't' task failed: no disk");
    let asks = json!({"q": {"method": "sampling/createMessage"}});
    let server = Arc::new(Scripted::answering(vec![
        created(),
        with("input_required", "inputRequests", asks),
    ]));
    let error = called(&server, true).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Tool 't' task input_required: MCP task requires additional input and cannot continue."
    );
    assert_eq!(server.sent().last().unwrap().0, "tasks/cancel");
}

#[tokio::test]
async fn a_call_that_is_dropped_cancels_its_task() {
    let server =
        Arc::new(Scripted::answering(vec![json!({"task": {"taskId": "k", "status": "working"}})]));
    let call = tokio::time::timeout(std::time::Duration::from_millis(50), called(&server, true));
    assert!(call.await.is_err());
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(server.sent().last().unwrap().0, "tasks/cancel");
}
