//! Tests of compactions, in single runs and across runs.

mod sessions;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;
use crate::{
    Agent, BudgetLimits, ChatError, ChatErrorKind, Message, MessageContent, Reasoning, Reply, Role,
    RunError, ScriptedClient, ScriptedReply, TokenBudget, TokenUsage,
};

/// Returns a conversation of the user's task and calls, each with reasoning before it.
fn long_run(calls: usize) -> Vec<Message> {
    let mut messages = vec![Message::system("rules"), Message::user("task")];
    for id in 0..calls {
        let thought =
            Reasoning { text: "hm".to_owned(), opaque: Some(json!("sig")), ..Reasoning::default() };
        let contents = vec![
            MessageContent::Reasoning(thought),
            MessageContent::call(id.to_string(), "f", "{}"),
        ];
        messages.push(Message::new(Role::Assistant, contents));
        let result = MessageContent::result(id.to_string(), "r".repeat(300));
        messages.push(Message::new(Role::Tool, vec![result]));
    }
    messages
}

fn replies(count: usize) -> ScriptedClient {
    ScriptedClient::new((0..count).map(|_| Reply::text("done"))).recording()
}

fn has_reasoning(messages: &[Arc<Message>]) -> bool {
    let mut contents = messages.iter().flat_map(|message| &message.contents);
    contents.any(|content| matches!(content, MessageContent::Reasoning(_)))
}

async fn requested(
    messages: Vec<Message>,
    strategy: impl CompactionStrategy + 'static,
) -> Vec<Arc<Message>> {
    let client = replies(1);
    let agent = Agent::builder(client.clone()).compaction(Compaction::new(strategy));
    agent.build().unwrap().run(messages).await.unwrap();
    client.requests().remove(0).messages
}

#[tokio::test]
async fn reasoning_stays_only_if_nothing_before_it_changes() {
    assert!(has_reasoning(&requested(long_run(4), SlidingWindow::new(5)).await));
    let summaries = ScriptedClient::new([Reply::text("short")]);
    assert!(!has_reasoning(&requested(long_run(4), SlidingWindow::new(3)).await));
    assert!(!has_reasoning(&requested(long_run(4), ToolResults::shorten(3, 10)).await));
    assert!(!has_reasoning(&requested(long_run(4), ToolResults::remove(3)).await));
    assert!(!has_reasoning(&requested(long_run(9), Summarize::new(summaries)).await));
}

#[tokio::test]
async fn a_model_that_fails_changes_nothing() {
    let failed = ChatError::new(ChatErrorKind::Server, "no");
    for reply in [ScriptedReply::from(Reply::text(" ")), ScriptedReply::from(failed)] {
        let summaries = ScriptedClient::new([reply]);
        let messages = requested(long_run(9), Summarize::new(summaries)).await;
        assert_eq!(messages.len(), long_run(9).len());
        assert!(has_reasoning(&messages));
    }
}

#[tokio::test]
async fn a_long_record_is_summarised_in_parts() {
    let summaries = ScriptedClient::new(["first", "second", "third"].map(Reply::text)).recording();
    let strategy = Summarize::new(summaries.clone()).input_tokens_max(250);
    let messages = requested(long_run(10), strategy).await;
    let requests = summaries.requests();
    assert!(requests.len() > 1, "{}", requests.len());
    assert!(requests[1].messages[0].text().starts_with("Person: first\n"));
    // Every result is in one of the requests.
    let asked: String = requests.iter().map(|request| request.messages[0].text()).collect();
    assert_eq!(asked.matches("Result: ").count(), 6);
    assert!(messages[1].text().starts_with("Summary of what has happened so far:\n"));
}

#[tokio::test]
async fn the_tokens_of_a_summary_count() {
    let usage = TokenUsage { input: 70, output: 30, total: 100, ..TokenUsage::default() };
    let summary = || Reply { usage: Some(usage), ..Reply::text("short") };
    let run = async |budget: TokenBudget| {
        let summaries = ScriptedClient::new([summary()]).recording();
        let compaction = Compaction::new(Summarize::new(summaries.clone()));
        let agent = Agent::builder(replies(1)).compaction(compaction).budget(budget);
        (agent.build().unwrap().run(long_run(9)).await, summaries.requests().len())
    };
    let limits = |total| BudgetLimits { total: Some(total), ..BudgetLimits::default() };
    let (response, _) = run(TokenBudget::new(limits(1000))).await;
    assert_eq!(response.unwrap().usage, Some(usage));
    let (response, _) = run(TokenBudget::new(limits(100))).await;
    assert!(matches!(response, Err(RunError::BudgetExceeded(_))));
    // A budget that is used up pays for no summary.
    let spent = TokenBudget::new(limits(100));
    spent.count(usage);
    let (response, asked) = run(spent).await;
    assert!(matches!(response, Err(RunError::BudgetExceeded(_))) && asked == 0);
}

#[tokio::test]
async fn the_size_is_what_the_provider_counted_and_what_was_added() {
    let usage = TokenUsage { input: 5000, output: 100, total: 5100, ..TokenUsage::default() };
    let call = Message::new(Role::Assistant, vec![MessageContent::call("1", "missing", "{}")]);
    let first = Reply { messages: vec![call], usage: Some(usage), ..Reply::default() };
    let client = ScriptedClient::new([first, Reply::text("done")]).recording();
    let reports = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&reports);
    // The messages have some 40 tokens by the counter, of which the provider makes 5000.
    let compaction = Compaction::new(TokenLimit::new(4000)).observer(move |report| {
        seen.lock().unwrap().push(report.clone());
    });
    let tools = cofferdam_tool::Functions::new("tests").with(
        cofferdam_tool::declaration::Declaration::new("f", "For tests.", r#"{"type":"object"}"#),
        async |_, _| Ok(json!(1)),
    );
    let mut toolset = cofferdam_tool::Toolset::new();
    toolset.add(Arc::new(tools.unwrap())).unwrap();
    let agent = Agent::builder(client.clone()).tools(toolset).compaction(compaction);
    let messages = ["one", "two", "three"].map(|word| Message::user(word.repeat(20))).to_vec();
    agent.build().unwrap().run(messages).await.unwrap();
    let reports = reports.lock().unwrap();
    assert_eq!(reports.len(), 1);
    let added = Message::new(
        Role::Tool,
        vec![MessageContent::result("1", "Error: Requested function \"missing\" not found.")],
    );
    assert_eq!(reports[0].tokens_before, 5100 + TokenEstimate::default().message(&added));
    assert!(reports[0].tokens_after < reports[0].tokens_before);
    assert_eq!((reports[0].messages_before, reports[0].messages_after), (5, 4));
}

#[tokio::test]
async fn a_service_that_keeps_the_conversation_shortens_it_itself() {
    struct Counting(Arc<AtomicUsize>);
    #[async_trait]
    impl CompactionStrategy for Counting {
        async fn compact(&self, _: &mut Conversation<'_>) -> Result<(), BoxError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }
    let count = Arc::new(AtomicUsize::new(0));
    let call = Message::new(Role::Assistant, vec![MessageContent::call("1", "f", "{}")]);
    let on_service =
        Reply { messages: vec![call], conversation_id: Some("c".to_owned()), ..Reply::default() };
    let agent = Agent::builder(ScriptedClient::new([on_service, Reply::text("done")]))
        .compaction(Compaction::new(Counting(Arc::clone(&count))));
    agent.build().unwrap().run("go").await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[cfg(feature = "openai-tokens")]
#[test]
fn tokens_of_openai_are_counted_exactly() {
    let (new, old) = (OpenAiTokens::for_model("gpt-5.6"), OpenAiTokens::for_model("gpt-4-turbo"));
    assert_eq!(new.text("hello world"), 2);
    assert_eq!(old.text("hello world"), 2);
    // The vocabularies differ.
    let greeting = "नमस्ते दुनिया";
    assert!(new.text(greeting) < old.text(greeting));
    assert_eq!(new.message(&Message::user("hello world")), 6);
}
