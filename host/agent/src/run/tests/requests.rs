//! Tests of the requests that a model receives, and of their size in a long run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use cofferdam_tool::{CallContext, Completion, ToolCall, ToolDefinition, ToolSource, Toolset};

use super::{Log, agent, calling, texts, toolset};
use crate::compaction::{Summarize, TokenLimit};
use crate::{
    Agent, ChatClient, ChatError, ChatRequest, ChoiceBehavior, Compaction, LoopSettings, Message,
    MessageContent, Reply, ReplyStream, Role, ScriptedClient, Session,
};

/// A model that makes calls for as long as it may, and records how much it received.
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
            Some(_) => vec![MessageContent::text("done")],
            None => {
                vec![MessageContent::call(asked.to_string(), "echo", r#"{"text":"0123456789"}"#)]
            }
        };
        Ok(Reply { messages: vec![Message::new(Role::Assistant, contents)], ..Reply::default() })
    }

    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        Ok(self.reply(request).await?.into())
    }
}

/// `CHOICE-6`: the functions of `required` are withheld from the second request on.
#[tokio::test]
async fn functions_of_a_required_choice_are_withheld_after_the_first_request() {
    let client = calling(&[&[("echo", r#"{"text":"a"}"#)]]);
    let choice = ChoiceBehavior::required();
    agent(&client, &Log::default()).choice(choice).build().unwrap().run("go").await.unwrap();
    let requests = client.requests();
    let listed = |at: usize| (requests[at].tools.len(), requests[at].withheld_tools.len());
    assert_eq!((requests.len(), listed(0), listed(1)), (2, (5, 0), (0, 5)));
    assert!(Arc::ptr_eq(&requests[0].tools, &requests[1].withheld_tools));
}

#[tokio::test]
async fn requests_carry_the_id_of_their_session() {
    let client = calling(&[]);
    let agent = agent(&client, &Log::default()).build().unwrap();
    agent.run("go").session(&Session::with_id("alice")).await.unwrap();
    let ids: Vec<_> = client.requests().into_iter().map(|request| request.session_id).collect();
    assert_eq!(ids, [Some("alice".to_owned())]);
}

#[tokio::test]
async fn a_run_of_a_thousand_calls_ends_with_everything_in_its_response() {
    let client = Arc::new(Tireless::default());
    let settings = LoopSettings { max_iterations: 1000, ..LoopSettings::default() };
    let agent =
        Agent::builder(Arc::clone(&client)).tools(toolset(&Log::default())).settings(settings);
    let response = agent.build().unwrap().run("go").await.unwrap();
    assert_eq!(response.messages.len(), 2001);
    assert_eq!(client.largest.load(Ordering::SeqCst), 2001);
}

#[tokio::test]
async fn what_a_model_is_sent_stays_short_where_old_messages_are_summarised() {
    let summaries =
        ScriptedClient::new((0..1000).map(|index| Reply::text(format!("summary {index}"))));
    let client = Arc::new(Tireless::default());
    let settings = LoopSettings { max_iterations: 200, ..LoopSettings::default() };
    let strategy = TokenLimit::new(250).then(Summarize::new(summaries).keep(2));
    let agent = Agent::builder(Arc::clone(&client))
        .tools(toolset(&Log::default()))
        .settings(settings)
        .compaction(Compaction::new(strategy));
    let response = agent.build().unwrap().run("go").await.unwrap();
    assert_eq!(response.messages.len(), 401);
    assert_eq!(texts(&response.messages).last().map(String::as_str), Some("done"));
    let largest = client.largest.load(Ordering::SeqCst);
    assert!(largest < 60, "{largest} messages in one request");
}

/// A source with instructions for its tools.
struct Described(Arc<dyn ToolSource>);

#[async_trait]
impl ToolSource for Described {
    fn name(&self) -> &str {
        "described"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        self.0.definitions()
    }

    fn instructions(&self) -> Option<&str> {
        Some("Echo first.")
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        self.0.invoke(call, context).await
    }
}

#[tokio::test]
async fn what_sources_say_about_their_tools_comes_after_the_agents_own_words() {
    let source = Arc::clone(toolset(&Log::default()).source("echo").unwrap());
    let mut described = Toolset::new();
    described.add(Arc::new(Described(source))).unwrap();
    let client = super::calling(&[]);
    let agent =
        Agent::builder(client.clone()).tools(described).instructions("Be brief.").build().unwrap();
    agent.run("go").await.unwrap();
    let instructions = client.requests().remove(0).options.instructions;
    assert_eq!(
        instructions.as_deref(),
        Some("Be brief.\nAbout the tools of `described`:\nEcho first.")
    );
}
