//! Tests of approvals that an agent needs inside of a tool call.

use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use serde_json::Value;

use super::*;
use crate::{ApprovalMode, Approvals};

/// Answers all questions with one value and keeps them.
struct Form {
    answer: Value,
    can_ask: bool,
    asked: Mutex<Vec<Question>>,
}

impl Form {
    fn new(answer: Value) -> Arc<Self> {
        Arc::new(Self { answer, can_ask: true, asked: Mutex::default() })
    }
}

#[async_trait]
impl Asker for Form {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        self.can_ask && kind == QuestionKind::Elicitation
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        let answers = questions.iter().map(|_| self.answer.clone()).collect();
        self.asked.lock().unwrap().extend(questions);
        Ok(answers)
    }
}

/// Returns the toolset of an agent whose calls of `send` need approval, and the log of `send`.
fn guarded() -> (Toolset, Arc<Mutex<Vec<Value>>>) {
    let log: Arc<Mutex<Vec<Value>>> = Arc::default();
    let schema = r#"{"type":"object","properties":{"to":{"type":"string"}}}"#;
    let sent = Arc::clone(&log);
    let functions = Functions::new("mail").with(
        Declaration::new("send", "Sends.", schema),
        move |arguments, _| {
            sent.lock().unwrap().push(arguments.value()["to"].clone());
            async { Ok(json!("sent")) }
        },
    );
    let lines = [
        json!({"calls": [{"tool": "send", "arguments": {"to": "a\u{202e}b"}}], "usage": {"total": 1}}),
        json!({"text": "finished", "usage": {"total": 2}}),
    ];
    let approvals = Approvals::default().with("send", ApprovalMode::Always);
    let nested = child(&lines).tools(tools(functions.unwrap())).approvals(approvals);
    (tool(nested.build().unwrap()), log)
}

fn asking(form: &Arc<Form>) -> CallContext {
    CallContext { asker: Some(Arc::clone(form) as Arc<dyn Asker>), ..CallContext::new("1") }
}

#[tokio::test]
async fn the_caller_is_asked_and_decides() {
    for (answer, sent) in [
        (json!({"action": "accept", "content": {"approved": true}}), 1),
        (json!({"action": "accept", "content": {"approved": false}}), 0),
        (json!({"action": "accept", "content": {"approved": "true"}}), 0),
        (json!({"action": "decline", "content": {"approved": true}}), 0),
        (json!(true), 0),
    ] {
        let (toolset, log) = guarded();
        let form = Form::new(answer.clone());
        let ended = call(&toolset, &asking(&form)).await;
        assert_eq!(ended.outcome.shown().unwrap().text(), "finished", "{answer}");
        assert_eq!(log.lock().unwrap().len(), sent, "{answer}");
        assert_eq!(ended.record.questions, 1);
        let asked = form.asked.lock().unwrap().clone();
        let message = asked[0].parameters["message"].as_str().unwrap();
        let expected = "The agent `child` wants to call `send` with {\"to\":\"a\\u{202e}b\"}.\nAllow the call?";
        assert_eq!(message, expected);
        assert!(asked[0].name.len() <= 64, "{}", asked[0].name);
    }
}

#[tokio::test]
async fn a_question_has_the_same_name_for_the_same_call_only() {
    let mut names = Vec::new();
    for _ in 0..2 {
        let (toolset, _) = guarded();
        let form = Form::new(json!({"action": "decline"}));
        call(&toolset, &asking(&form)).await;
        names.push(form.asked.lock().unwrap()[0].name.clone());
    }
    assert_eq!(names[0], names[1]);
    let request = |arguments: &str| crate::ApprovalRequest {
        function_call: crate::FunctionCall {
            name: "send".to_owned(),
            arguments: arguments.to_owned(),
            ..crate::FunctionCall::default()
        },
        ..crate::ApprovalRequest::default()
    };
    let form = Form::new(json!({"action": "decline"}));
    for arguments in ["{}", r#"{"to":"x"}"#] {
        let mut questions = ApprovalQuestions::default();
        questions.ask("child", Some(&*form), &[request(arguments)]).await.unwrap();
    }
    let asked = form.asked.lock().unwrap().clone();
    assert_ne!(asked[0].name, asked[1].name);
}

#[tokio::test]
async fn without_a_client_to_ask_the_failure_names_the_call() {
    let silent =
        Arc::new(Form { can_ask: false, ..Arc::into_inner(Form::new(json!({}))).unwrap() });
    for context in [CallContext::new("1"), asking(&silent)] {
        let (toolset, log) = guarded();
        let ended = call(&toolset, &context).await;
        let expected =
            "The agent `child` cannot continue: the user has to approve its call of `send`.";
        assert_eq!(failure(&ended.outcome).message, expected);
        assert!(log.lock().unwrap().is_empty());
        assert_eq!(ended.record.questions, 0);
    }
}

#[tokio::test]
async fn approvals_reach_the_user_through_two_agents() {
    let (inner, log) = guarded();
    let lines = [calls("child"), says("done")];
    let middle = Agent::builder(client(&lines)).name("middle").tools(inner).build().unwrap();
    let lines = [calls("middle"), says("all done")];
    let outer = Agent::builder(client(&lines)).tools(tool(middle)).build().unwrap();
    let form = Form::new(json!({"action": "accept", "content": {"approved": true}}));
    let response = outer.run("go").asker(Arc::clone(&form) as Arc<dyn Asker>).await.unwrap();
    assert_eq!(response.text(), "all done");
    assert_eq!(log.lock().unwrap().len(), 1);
    // The usage of both rounds of the innermost agent counts.
    assert_eq!(response.usage.unwrap().total, 10 + 5 + 10 + 5 + 1 + 2);
    assert!(form.asked.lock().unwrap()[0].name.starts_with("1-approve-1-"));
}
