use super::*;
use crate::{
    Agent, ApprovalMode, Approvals, MessageContent, Reply, Role, RunContext, ScriptedClient,
};

fn model(replies: u32) -> ScriptedClient {
    let reply = |number| Reply {
        usage: Some(TokenUsage { total: 10, ..TokenUsage::default() }),
        ..Reply::text(format!("reply {number}"))
    };
    ScriptedClient::new((0..replies).map(reply)).recording()
}

fn bounded(model: &ScriptedClient) -> BoundedLoop {
    let agent = Agent::builder(model.clone()).name("worker").build().unwrap();
    let condition = |response: &Response, _| match response.text() == "reply 24" {
        true => LoopDecision::Done,
        false => LoopDecision::Continue { note: format!(" did {} ", response.text()) },
    };
    BoundedLoop::new(agent, condition)
}

#[tokio::test]
async fn each_iteration_sees_the_input_and_bounded_notes_only() {
    let model = model(30);
    let looped = bounded(&model).max_iterations(100).next_message("Go on.");
    let session = Session::with_id("s");
    let request = AgentRequest::new("task").session(&session);
    let response = looped.run(request).await.unwrap();
    assert_eq!((response.text().as_str(), response.usage.unwrap().total), ("reply 24", 250));
    assert_eq!(response.messages.len(), 1);
    let requests = model.requests();
    let texts = |index: usize| -> Vec<String> {
        requests[index].messages.iter().map(|message| message.text()).collect()
    };
    assert_eq!(texts(0), ["task"]);
    let second = "### Progress so far\n1. did reply 0\n2. did reply 1\n\nGo on.";
    assert_eq!(texts(2), ["task", second]);
    assert_eq!(texts(24).len(), 2);
    assert!(texts(24)[1].starts_with("### Progress so far\n5. did reply 4\n"), "{:?}", texts(24));
    assert_eq!(session, Session::with_id("s"));
}

#[tokio::test]
async fn the_number_of_iterations_is_limited() {
    for (limit, made) in [(None, 10), (Some(3), 3), (Some(0), 1)] {
        let model = model(30);
        let looped = bounded(&model);
        let looped = match limit {
            Some(limit) => looped.max_iterations(limit),
            None => looped,
        };
        let response = looped.stream(AgentRequest::new("task")).finish().await.unwrap();
        assert_eq!(response.text(), format!("reply {}", made - 1));
        assert_eq!(model.requests().len(), made);
    }
}

#[test]
fn notes_are_cut_and_blank_ones_left_out() {
    let mut notes = VecDeque::new();
    add_note(&mut notes, 1, " \n");
    add_note(&mut notes, 2, &"ä".repeat(3000));
    assert_eq!((notes.len(), notes[0].1.chars().count()), (1, 2000));
    assert_eq!(bounded(&model(0)).progress(&VecDeque::new()).text(), NEXT);
}

#[tokio::test]
async fn a_loop_ends_when_it_is_canceled_or_needs_an_approval() {
    let model = model(30);
    let context = RunContext::default();
    let cancellation = context.cancellation.clone();
    let agent = Agent::builder(model.clone()).build().unwrap();
    let looped = BoundedLoop::new(agent, move |_: &Response, _| {
        cancellation.cancel();
        LoopDecision::Continue { note: String::new() }
    });
    let ended = looped.run(AgentRequest::new("task").context(context)).await;
    assert!(matches!(ended, Err(RunError::Cancelled)), "{ended:?}");
    assert_eq!(model.requests().len(), 1);

    let call = MessageContent::call("1", "todos_get_all", "{}");
    let reply =
        Reply { messages: vec![Message::new(Role::Assistant, vec![call])], ..Reply::default() };
    let agent = Agent::builder(ScriptedClient::new([reply]))
        .approvals(Approvals::by_default(ApprovalMode::Always))
        .context_provider(crate::TodoList::new().unwrap())
        .build()
        .unwrap();
    let looped = BoundedLoop::new(agent, |_: &Response, _: u32| LoopDecision::Done);
    let ended = looped.run(AgentRequest::new("task")).await.unwrap_err();
    assert_eq!(ended.to_string(), "the user has to approve its call of `todos_get_all`");
}

/// Returns a loop over an agent whose calls need approval, with this script of a model. It is done
/// when the model says so.
fn asking(script: &str) -> (BoundedLoop, ScriptedClient) {
    let model = ScriptedClient::read("script", script.as_bytes()).unwrap().recording();
    let agent = Agent::builder(model.clone())
        .approvals(Approvals::by_default(ApprovalMode::Always))
        .context_provider(crate::TodoList::new().unwrap())
        .build()
        .unwrap();
    let looped = BoundedLoop::new(agent, |response: &Response, _| match response.text().as_str() {
        "done" => LoopDecision::Done,
        note => LoopDecision::Continue { note: note.to_owned() },
    });
    (looped, model)
}

const TWO_CALLS: &str = r#"
{"text":"first"}
{"calls":[{"tool":"todos_get_all","arguments":{}}]}
{"text":"second"}
{"calls":[{"tool":"todos_get_all","arguments":{}}]}
{"text":"done"}
"#;

fn approved(response: &Response) -> Vec<MessageContent> {
    response.approval_requests().map(crate::ApprovalRequest::approve).collect()
}

#[tokio::test]
async fn a_loop_waits_for_approvals_in_the_session_of_its_request() {
    let (looped, model) = asking(TWO_CALLS);
    let session = Session::new();
    let asks = looped.run(AgentRequest::new("task").session(&session)).await.unwrap();
    assert_eq!((approved(&asks).len(), model.requests().len()), (1, 2));
    // The session may be stored until the user answers.
    let stored = serde_json::to_string(&session).unwrap();
    let session: Session = serde_json::from_str(&stored).unwrap();
    let asks = looped.run(AgentRequest::new(approved(&asks)).session(&session)).await.unwrap();
    assert_eq!((approved(&asks).len(), model.requests().len()), (1, 4));
    let done = looped.run(AgentRequest::new(approved(&asks)).session(&session)).await.unwrap();
    assert_eq!(done.text(), "done");
    let texts: Vec<_> = model.requests()[3].messages.iter().map(|message| message.text()).collect();
    assert_eq!(texts[0], "task");
    assert!(texts[1].starts_with("### Progress so far\n1. first\n2. second\n"), "{texts:?}");
    assert_eq!(session.part(PART), Value::Null);
}

/// Fails before the second run.
#[derive(Default)]
struct FailsOnce(std::sync::atomic::AtomicU32);

#[async_trait]
impl crate::ContextProvider for FailsOnce {
    fn source_id(&self) -> &str {
        "fails-once"
    }

    async fn before_run(&self, _: &mut crate::context::BeforeRun<'_>) -> Result<(), BoxError> {
        match self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            1 => Err("the store is away".into()),
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn answers_count_again_if_a_run_fails_before_its_calls_start() {
    let script = r#"
{"calls":[{"tool":"todos_get_all","arguments":{}}]}
{"text":"done"}
{"text":"nothing to do"}
"#;
    let model = ScriptedClient::read("script", script.as_bytes()).unwrap().recording();
    let agent = Agent::builder(model.clone())
        .approvals(Approvals::by_default(ApprovalMode::Always))
        .context_provider(crate::TodoList::new().unwrap())
        .context_provider(FailsOnce::default())
        .build()
        .unwrap();
    let looped = BoundedLoop::new(agent, |_: &Response, _: u32| LoopDecision::Done);
    let session = Session::new();
    let asks = looped.run(AgentRequest::new("task").session(&session)).await.unwrap();
    let answers = || AgentRequest::new(approved(&asks)).session(&session);
    let failed = looped.run(answers()).await.unwrap_err();
    assert!(failed.to_string().contains("the store is away"), "{failed}");
    let done = looped.run(answers()).await.unwrap();
    assert_eq!(done.text(), "done");
    let results = || {
        let requests = model.requests();
        let last = requests.last().unwrap().messages.clone();
        let contents = last.iter().flat_map(|message| message.contents.clone());
        contents.filter(|it| matches!(it, MessageContent::FunctionResult(_))).count()
    };
    assert_eq!((model.requests().len(), results()), (2, 1));
    // The calls have run, so the answers are to nothing.
    looped.run(answers()).await.unwrap();
    assert_eq!(results(), 0);
}

#[tokio::test]
async fn another_request_abandons_a_loop_that_waits() {
    let (looped, model) = asking(TWO_CALLS);
    let session = Session::new();
    let asks = looped.run(AgentRequest::new("task").session(&session)).await.unwrap();
    let other = looped.run(AgentRequest::new("other").session(&session)).await.unwrap();
    let texts = |index: usize| model.requests()[index].messages[0].text();
    assert_eq!((texts(1).as_str(), texts(2).as_str()), ("task", "other"));
    // The answers belong to the abandoned loop, so they approve nothing.
    assert_eq!(approved(&other).len(), 1);
    looped.run(AgentRequest::new(approved(&asks)).session(&session)).await.unwrap();
    let results =
        model.requests().iter().flat_map(|request| request.messages.clone()).any(|message| {
            message.contents.iter().any(|it| matches!(it, MessageContent::FunctionResult(_)))
        });
    assert!(!results);
}

#[tokio::test]
async fn what_the_user_always_allows_is_allowed_in_every_iteration() {
    let model = ScriptedClient::read("script", TWO_CALLS.as_bytes()).unwrap();
    let agent = Agent::builder(model)
        .approvals(Approvals::by_default(ApprovalMode::Always))
        .context_provider(crate::TodoList::new().unwrap())
        .build()
        .unwrap();
    let looped =
        BoundedLoop::new(agent, |response: &Response, _| match response.text() == "done" {
            true => LoopDecision::Done,
            false => LoopDecision::Continue { note: String::new() },
        });
    let session = Session::new();
    let asks = looped.run(AgentRequest::new("task").session(&session)).await.unwrap();
    let request = asks.approval_requests().next().unwrap();
    allow_always(&session, crate::Scope::every_call(request).unwrap());
    let done = looped.run(AgentRequest::new(approved(&asks)).session(&session)).await.unwrap();
    assert_eq!(done.text(), "done");
}
