//! Tests of structured answers: `LOOP-65` to `LOOP-67`.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Log, agent, texts};
use crate::compaction::{CompactionStrategy, Conversation};
use crate::{
    Agent, ApprovalMode, Approvals, BoxError, BudgetLimits, ChatClient, ChatError, ChatOptions,
    ChatRequest, Compaction, FinishReason, InvalidAnswer, InvalidAnswerKind, IterationContext,
    IterationHook, LoopSettings, Message, MessageContent, Reply, ReplyStream, ResponseFormat, Role,
    RunError, ScriptedClient, Session, TokenBudget, TokenUsage,
};

fn format(name: &str) -> ResponseFormat {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
        "required": ["city"],
    });
    ResponseFormat::new(name, &schema.to_string()).unwrap()
}

fn replies(texts: &[&str]) -> ScriptedClient {
    ScriptedClient::new(texts.iter().map(|text| Reply::text(*text))).recording()
}

fn built(client: &ScriptedClient) -> Agent {
    agent(client, &Log::default()).response_format(format("town")).build().unwrap()
}

fn invalid(error: RunError) -> InvalidAnswer {
    match error {
        RunError::Answer(invalid) => invalid,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn the_format_is_in_every_request_and_the_last_text_is_decoded() {
    let contents = vec![
        MessageContent::text(r#"{"city":"Bonn"}"#),
        MessageContent::call("1", "echo", r#"{"text":"a"}"#),
    ];
    let calling =
        Reply { messages: vec![Message::new(Role::Assistant, contents)], ..Reply::text("") };
    let client = ScriptedClient::new([calling, Reply::text(r#"{"city":"Cork","people":"9"}"#)]);
    let client = client.recording();
    let response = built(&client).run("go").await.unwrap();
    assert_eq!(response.value(), Some(&json!({"city": "Cork", "people": 9})));
    let formats: Vec<_> =
        client.requests().into_iter().map(|request| request.options.response_format).collect();
    assert_eq!(formats, [Some(format("town")), Some(format("town"))]);
}

#[tokio::test]
async fn an_empty_last_message_leaves_the_text_before_it() {
    let client = replies(&[""]);
    let contents = vec![
        MessageContent::text(r#"{"city":"Bonn"}"#),
        MessageContent::call("1", "echo", r#"{"text":"a"}"#),
    ];
    let calling =
        Reply { messages: vec![Message::new(Role::Assistant, contents)], ..Reply::text("") };
    let early = ScriptedClient::new([calling, Reply::text("")]);
    let response = built(&early).run("go").await.unwrap();
    assert_eq!(response.value(), Some(&json!({"city": "Bonn"})));
    // Without any text there is no answer to decode.
    let plain = agent(&client, &Log::default()).build().unwrap().run("go").await.unwrap();
    assert_eq!(plain.value(), None);
    let error = invalid(built(&replies(&["", ""])).run("go").await.unwrap_err());
    assert_eq!((error.text.as_str(), error.problems.join("")), ("", "The reply is empty.".into()));
}

#[tokio::test]
async fn the_format_of_a_run_wins_over_that_of_its_options_and_the_agent() {
    let client = replies(&[r#"{"city":"Cork"}"#; 3]);
    let agent = built(&client);
    let options =
        || ChatOptions { response_format: Some(format("of_options")), ..ChatOptions::default() };
    agent.run("a").response_format(format("of_run")).options(options()).await.unwrap();
    agent.run("b").options(options()).await.unwrap();
    agent.run("c").options(ChatOptions::default()).await.unwrap();
    let names: Vec<_> = client
        .requests()
        .into_iter()
        .map(|request| request.options.response_format.unwrap().name().to_owned())
        .collect();
    assert_eq!(names, ["of_run", "of_options", "town"]);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_gets_one_repair_round() {
    let client = replies(&["It is Cork.", r#"{"city":"Cork"}"#]);
    let session = Session::new();
    let response = built(&client).run("go").session(&session).await.unwrap();
    assert_eq!(response.value(), Some(&json!({"city": "Cork"})));
    let repair = "Your last answer does not have the required form. The reply is not a JSON \
                  object. Answer again, with the corrected JSON object and nothing else.";
    assert_eq!(texts(&response.messages), ["It is Cork.", repair, r#"{"city":"Cork"}"#]);
    let message = &response.messages[1];
    assert_eq!((message.role, message.source()), (Role::User, Some("answer_repair")));
    assert_eq!(texts(&client.requests()[1].messages), ["go", "It is Cork.", repair]);
    // The history has the round too: providers check what reasoning came after.
    let later = replies(&[r#"{"city":"Bonn"}"#]);
    built(&later).run("and").session(&session).await.unwrap();
    let texts = texts(&later.requests()[0].messages);
    assert_eq!(texts, ["go", "It is Cork.", repair, r#"{"city":"Cork"}"#, "and"]);
}

#[tokio::test]
async fn a_second_mismatch_is_an_error_with_the_text_and_the_problems() {
    let client = replies(&["Cork", r#"{"people":"many"}"#, "unused"]);
    let error = built(&client).run("go").await.unwrap_err();
    assert_eq!(client.replies_left(), 1);
    assert_eq!(
        error.to_string(),
        "the model's answer does not have the form `town`: Required argument 'city' was not \
         supplied to 'town'. Argument 'people' must be an integer, got a string."
    );
    let error = invalid(error);
    assert_eq!(error.kind, InvalidAnswerKind::Mismatch);
    assert_eq!((error.format.as_str(), error.text.as_str()), ("town", r#"{"people":"many"}"#));
    assert_eq!(error.problems.len(), 2);
}

#[tokio::test]
async fn a_refusal_and_a_cut_reply_are_errors_without_a_repair_round() {
    for (finish, kind, said) in [
        (FinishReason::Refusal, InvalidAnswerKind::Refusal, "but the model refused"),
        (FinishReason::ContentFilter, InvalidAnswerKind::Refusal, "but the model refused"),
        (FinishReason::Length, InvalidAnswerKind::TokenLimit, "maximum number of tokens"),
    ] {
        let cut = || Reply { finish: Some(finish.clone()), ..Reply::text(r#"{"city":"#) };
        let client = ScriptedClient::new([cut(), cut()]);
        let error = built(&client).run("go").await.unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        let error = invalid(error);
        assert_eq!((error.kind, error.text.as_str()), (kind, r#"{"city":"#));
        assert_eq!(client.replies_left(), 1);
    }
    // Some servers report the limit although the answer is complete.
    let whole = Reply { finish: Some(FinishReason::Length), ..Reply::text(r#"{"city":"Cork"}"#) };
    let response = built(&ScriptedClient::new([whole])).run("go").await.unwrap();
    assert!(response.value().is_some());
}

#[tokio::test]
async fn streamed_runs_are_repaired_too() {
    let client = replies(&["Cork", r#"{"city":"Cork"}"#]);
    let streamed = built(&client).run("go").stream().finish().await.unwrap();
    let whole = built(&client.then(crate::AfterScript::Fail)).run("go").await.unwrap();
    assert_eq!(streamed, whole);
    assert!(streamed.value().is_some());
}

#[tokio::test]
async fn a_client_without_the_option_gets_the_schema_in_its_instructions() {
    let client = replies(&["Cork", r#"{"city":"Cork"}"#]);
    let agent = agent(&client, &Log::default()).instructions("Be brief.");
    let town = format("town").with_description("A town.");
    agent.build().unwrap().run("go").response_format(town).await.unwrap();
    for request in client.requests() {
        let instructions = request.options.instructions.unwrap();
        assert!(instructions.starts_with(
            "Be brief.\nAnswer with one JSON object, and with nothing before or after it. The \
             object is: A town. It has to be valid by this JSON Schema:\n{"
        ));
        assert_eq!(instructions.matches("\"city\":{").count(), 1, "{instructions}");
    }
    let native = Native(client.then(crate::AfterScript::Silence));
    let agent = Agent::builder(Arc::new(native)).response_format(format("town")).build().unwrap();
    agent.run("go").await.unwrap();
}

/// A client of an API that has the option.
struct Native(ScriptedClient);

#[async_trait]
impl ChatClient for Native {
    fn model(&self) -> &str {
        "native"
    }

    fn supports_response_format(&self) -> bool {
        true
    }

    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError> {
        assert_eq!(request.options.instructions, None);
        assert!(request.options.response_format.is_some());
        self.0.reply(request).await
    }

    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        self.0.stream(request).await
    }
}

/// A hook that counts, and ends the run if that is requested.
#[derive(Default)]
struct Counter {
    seen: Mutex<Vec<(u32, String)>>,
    is_ending: bool,
}

#[async_trait]
impl IterationHook for Counter {
    async fn completed(&self, context: &mut IterationContext<'_>) -> Result<(), BoxError> {
        let text = context.response.messages.iter().map(Message::text).collect();
        self.seen.lock().unwrap().push((context.iteration, text));
        context.terminate = self.is_ending;
        Ok(())
    }
}

#[tokio::test]
async fn hooks_and_budgets_see_the_repair_round() {
    let run = async |hook: &Arc<Counter>, budget: u64| {
        let usage = Some(TokenUsage { total: 10, ..TokenUsage::default() });
        let reply = |text: &str| Reply { usage, ..Reply::text(text) };
        let client = ScriptedClient::new([reply("Cork"), reply(r#"{"city":"Cork"}"#)]);
        let hook: Arc<dyn IterationHook> = Arc::<Counter>::clone(hook);
        let settings = LoopSettings { iteration_completed: Some(hook), ..LoopSettings::default() };
        let limits = BudgetLimits { total: Some(budget), ..BudgetLimits::default() };
        let run = built(&client).run("go").settings(settings);
        run.budget(TokenBudget::new(limits)).await
    };
    let hook = Arc::new(Counter::default());
    let response = run(&hook, 100).await.unwrap();
    assert_eq!(*hook.seen.lock().unwrap(), [(0, "Cork".to_owned())]);
    assert_eq!(response.usage.map(|usage| usage.total), Some(20));
    let error = run(&Arc::default(), 10).await.unwrap_err();
    assert!(matches!(error, RunError::BudgetExceeded(_)), "{error}");
    let ending = Arc::new(Counter { is_ending: true, ..Counter::default() });
    assert_eq!(run(&ending, 100).await.unwrap().value(), None);
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Size {
    /// Fewer than a million people.
    Small,
    Large,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Town {
    /// Name of the town.
    city: String,
    people: Option<u32>,
    size: Size,
    towns: Vec<Town>,
}

#[tokio::test]
async fn answers_are_read_as_rust_types() {
    let text = r#"{"city":"Cork","people":null,"size":"SMALL","towns":[]}"#;
    let client = replies(&[r#"{"city":"Cork","people":-1,"size":"small","towns":[]}"#, text]);
    let agent = agent(&client, &Log::default()).build().unwrap();
    let town: Town = agent.run("go").answer_as().await.unwrap();
    let expected = Town { city: "Cork".into(), people: None, size: Size::Small, towns: vec![] };
    assert_eq!(town, expected);
    assert_eq!(client.requests()[0].options.response_format.as_ref().unwrap().name(), "Town");
    let error = agent.run("go").answer_as::<Vec<Town>>().await.unwrap_err();
    assert!(matches!(error, RunError::Chat(_)), "{error}");
}

#[tokio::test]
async fn a_run_that_waits_for_approval_has_no_answer_yet() {
    let client = super::calling(&[&[("echo", r#"{"text":"a"}"#)]]);
    let approvals = Approvals::by_default(ApprovalMode::Always);
    let agent = agent(&client, &Log::default()).approvals(approvals).build().unwrap();
    let session = Session::new();
    let response = agent.run("go").session(&session).response_format(format("town")).await.unwrap();
    assert_eq!((response.value(), response.approval_requests().count()), (None, 1));
    let client = super::calling(&[&[("echo", r#"{"text":"a"}"#)]]);
    let approvals = Approvals::by_default(ApprovalMode::Always);
    let agent = super::agent(&client, &Log::default()).approvals(approvals).build().unwrap();
    let run = agent.run("go").session(&Session::new());
    let error = invalid(run.answer_as::<Town>().await.unwrap_err());
    assert_eq!(error.kind, InvalidAnswerKind::Missing);
}

#[tokio::test]
async fn a_type_that_refuses_a_valid_answer_is_an_error() {
    #[derive(Debug, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is read")]
    struct Picky {
        city: String,
    }
    impl<'de> Deserialize<'de> for Picky {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let value = Value::deserialize(from)?;
            Err(serde::de::Error::custom(format!("no {value}")))
        }
    }
    let client = replies(&[r#"{"city":"Cork"}"#]);
    let agent = agent(&client, &Log::default()).build().unwrap();
    let error = invalid(agent.run("go").answer_as::<Picky>().await.unwrap_err());
    assert_eq!(error.problems, [r#"no {"city":"Cork"}."#]);
}

/// A strategy that counts the groups of messages of each request.
struct Groups(Arc<Mutex<Vec<usize>>>);

#[async_trait]
impl CompactionStrategy for Groups {
    async fn compact(&self, conversation: &mut Conversation<'_>) -> Result<(), BoxError> {
        self.0.lock().unwrap().push(conversation.groups().len());
        Ok(())
    }
}

#[tokio::test]
async fn compaction_sees_the_repair_round() {
    let client = replies(&["Cork", r#"{"city":"Cork"}"#]);
    let seen = Arc::default();
    let compaction = Compaction::new(Groups(Arc::clone(&seen)));
    let agent = agent(&client, &Log::default()).compaction(compaction);
    let agent = agent.response_format(format("town")).build().unwrap();
    agent.run("go").await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [1, 3]);
}
