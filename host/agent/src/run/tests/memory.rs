//! What a long run costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;

use super::{Log, told, toolset};
use crate::{
    Agent, ChatClient, ChatError, ChatRequest, Compaction, Content, LoopSettings, Message, Reply,
    ReplyStream, Role, ScriptedClient,
};

/// A model that calls for as long as it is let, and notes how much it was sent.
#[derive(Default)]
struct Tireless {
    asked: AtomicUsize,
    largest: AtomicUsize,
}

#[async_trait]
impl ChatClient for Tireless {
    fn model(&self) -> &str {
        "tireless"
    }

    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError> {
        self.largest.fetch_max(request.messages.len(), Ordering::SeqCst);
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        let contents = match request.options.tool_choice {
            Some(_) => vec![Content::text("done")],
            None => vec![Content::call(asked.to_string(), "echo", r#"{"text":"0123456789"}"#)],
        };
        Ok(Reply { messages: vec![Message::new(Role::Assistant, contents)], ..Reply::default() })
    }

    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        Ok(self.reply(request).await?.into())
    }
}

#[tokio::test]
async fn a_run_of_a_thousand_calls_ends_with_everything_in_its_response() {
    let client = Arc::new(Tireless::default());
    let settings = LoopSettings { max_iterations: 1000, ..LoopSettings::default() };
    let agent = Agent::builder(Arc::clone(&client)).tools(toolset(&Log::default())).settings(settings);
    let response = agent.build().unwrap().run("go").await.unwrap();
    assert_eq!(response.messages.len(), 2001);
    assert_eq!(client.largest.load(Ordering::SeqCst), 2001);
}

#[tokio::test]
async fn what_a_model_is_sent_stays_short_where_old_messages_are_summarised() {
    let summaries = ScriptedClient::new((0..1000).map(|index| Reply::text(format!("summary {index}"))));
    let client = Arc::new(Tireless::default());
    let settings = LoopSettings {
        max_iterations: 200,
        iteration_completed: Some(Arc::new(Compaction::new(summaries, 500, 4))),
        ..LoopSettings::default()
    };
    let agent = Agent::builder(Arc::clone(&client)).tools(toolset(&Log::default())).settings(settings);
    let response = agent.build().unwrap().run("go").await.unwrap();
    assert_eq!(response.messages.len(), 401);
    assert_eq!(told(&response.messages).last().map(String::as_str), Some("done"));
    let largest = client.largest.load(Ordering::SeqCst);
    assert!(largest < 60, "{largest} messages in one request");
}
