//! Tests that a streamed run equals an unstreamed one (`LOOP-29`).

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures_util::StreamExt;
use proptest::prelude::*;

use super::{Log, agent, calling, toolset};
use crate::middleware::{AgentContext, AgentResult, ChatContext, ChatResult, Signal};
use crate::{
    AfterScript, Agent, Delta, ErrorLimitAction, Layer, LoopSettings, Message, MessageContent,
    Middleware, Next, Reply, ReplyBuilder, Response, Role, ScriptedClient, TokenUsage, Update,
};

fn content() -> impl Strategy<Value = MessageContent> {
    let call = |name: &'static str, arguments: &'static str| {
        "[a-c]".prop_map(move |id| MessageContent::call(id, name, arguments))
    };
    prop_oneof![
        "[ -~]{1,12}".prop_map(MessageContent::text),
        call("echo", r#"{"text":"é"}"#),
        call("echo", "{broken"),
        call("fail", "{}"),
        call("crash", ""),
        call("missing", "{}"),
    ]
}

fn reply() -> impl Strategy<Value = Reply> {
    let usage = proptest::option::of((0..9u64, 0..9u64));
    (proptest::collection::vec(content(), 0..4), usage).prop_map(|(contents, usage)| Reply {
        messages: vec![Message::new(Role::Assistant, contents)],
        usage: usage.map(|(input, output)| TokenUsage {
            input,
            output,
            total: input + output,
            ..TokenUsage::default()
        }),
        ..Reply::default()
    })
}

fn settings() -> impl Strategy<Value = LoopSettings> {
    (1..5u32, proptest::option::of(1..5u32), 0..3u32, any::<[bool; 3]>()).prop_map(
        |(max_iterations, max_function_calls, max_consecutive_errors, flags)| LoopSettings {
            max_iterations,
            max_function_calls,
            max_consecutive_errors,
            terminate_on_unknown: flags[0],
            allow_concurrent_invocation: flags[1],
            on_error_limit: if flags[2] {
                ErrorLimitAction::Raise
            } else {
                ErrorLimitAction::Answer
            },
            ..LoopSettings::default()
        },
    )
}

/// Returns the response of a run, the calls of its tools, and the number of model requests.
async fn ran(
    replies: &[Reply],
    settings: &LoopSettings,
    is_streaming: bool,
) -> (Result<Response, String>, Vec<String>, usize) {
    let log = Log::default();
    let client = ScriptedClient::new(replies.to_vec()).then(AfterScript::Silence).recording();
    let agent = Agent::builder(client.clone()).tools(toolset(&log)).settings(settings.clone());
    let run = agent.build().unwrap().run("go");
    let ended = if is_streaming { run.stream().finish().await } else { run.await };
    let called = log.lock().unwrap().clone();
    (ended.map_err(|error| error.to_string()), called, client.requests().len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_streamed_run_is_the_same_run(
        replies in proptest::collection::vec(reply(), 0..6),
        settings in settings(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (whole, streamed) = runtime.block_on(async {
            (ran(&replies, &settings, false).await, ran(&replies, &settings, true).await)
        });
        prop_assert_eq!(whole, streamed);
    }
}

#[tokio::test]
async fn the_updates_of_a_run_are_its_messages_in_order() {
    let client = calling(&[&[("echo", r#"{"text":"a"}"#)], &[("fail", "{}")]]);
    let agent = agent(&client, &Log::default()).build().unwrap();
    let mut stream = agent.run("go").stream();
    let (mut builder, mut tool_updates) = (ReplyBuilder::default(), 0);
    while let Some(update) = stream.next().await {
        let update: Update = update.unwrap();
        tool_updates += usize::from(update.role == Some(Role::Tool));
        builder.add(update);
    }
    let response = stream.finish().await.unwrap();
    let messages: Vec<_> = response.messages.iter().map(|message| (**message).clone()).collect();
    // The updates of a reply do not separate consecutive messages of the same role.
    assert_eq!(builder.build().messages, messages);
    assert_eq!(tool_updates, 2);
}

/// Records when it is entered and left, and changes the stream by its hooks (`MW-5`).
struct Hooks(Arc<Mutex<Vec<&'static str>>>);

impl Hooks {
    fn note(&self) -> impl Fn(&'static str) + Send + 'static {
        let events = Arc::clone(&self.0);
        move |event| events.lock().unwrap().push(event)
    }
}

#[async_trait]
impl Middleware<AgentContext> for Hooks {
    async fn process(
        &self,
        context: &mut AgentContext,
        next: Next<'_, AgentContext>,
    ) -> Result<(), Signal<Response>> {
        let (note, end) = (self.note(), self.note());
        note("agent in");
        next.run(context).await?;
        note("agent out");
        if let Some(AgentResult::Stream(stream)) = context.result.take() {
            let stream = stream.map_response(move |mut response| {
                note("response");
                response.messages.push(Arc::new(Message::assistant("and more")));
                response
            });
            context.result = Some(AgentResult::Stream(stream.on_end(move || end("agent end"))));
        }
        Ok(())
    }
}

#[async_trait]
impl Middleware<ChatContext> for Hooks {
    async fn process(
        &self,
        context: &mut ChatContext,
        next: Next<'_, ChatContext>,
    ) -> Result<(), Signal<Reply>> {
        let (note, end) = (self.note(), self.note());
        note("chat in");
        next.run(context).await?;
        note("chat out");
        if let Some(ChatResult::Stream(stream)) = context.result.take() {
            let stream = stream.map_updates(|mut update| {
                for delta in &mut update.deltas {
                    if let Delta::Text(text) = delta {
                        *text = text.to_uppercase();
                    }
                }
                update
            });
            context.result = Some(ChatResult::Stream(stream.on_end(move || end("chat end"))));
        }
        Ok(())
    }
}

#[tokio::test]
async fn middleware_is_left_before_the_stream_is_read_and_works_in_its_hooks() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let hooks = || Hooks(Arc::clone(&events));
    let agent = agent(&calling(&[]), &Log::default());
    let agent = agent.layer(Layer::agent(hooks())).layer(Layer::chat(hooks())).build().unwrap();
    let mut stream = agent.run("go").stream();
    let mut text = String::new();
    while let Some(update) = stream.next().await {
        for delta in update.unwrap().deltas {
            if let Delta::Text(more) = delta {
                text.push_str(&more);
            }
        }
    }
    assert_eq!(text, "DONE");
    let response = stream.finish().await.unwrap();
    assert_eq!(response.text(), "and more");
    assert_eq!(response.messages[0].text(), "DONE");
    let expected =
        ["agent in", "agent out", "chat in", "chat out", "chat end", "response", "agent end"];
    let mut seen = events.lock().unwrap().clone();
    assert_eq!(seen.len(), expected.len(), "{seen:?}");
    // The end is reported once, when the stream is read to its end.
    seen.sort_unstable();
    let mut sorted = expected;
    sorted.sort_unstable();
    assert_eq!(seen, sorted);
}
