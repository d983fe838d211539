//! Turns of a conversation for the Messages API.
//!
//! Newer models check that nothing before a replayed thinking block has changed. So what was sent
//! before an assistant turn is sent in the same way in every later request: system messages that
//! come after the first assistant turn are not moved, and blocks of the assistant go back as
//! they arrived.

use std::collections::HashSet;
use std::sync::Arc;

use cofferdam_agent::{FunctionCall, Message, MessageContent, Reasoning, Role, TextContent};
use serde_json::{Map, Value, json};

use super::super::attachment::Attachment;
use super::super::hosted::{self, CALLER};
use super::super::pieces::API;
use super::super::prepared::{PreparedRequest, is_reply};
use super::block::{CITATIONS, program_of};
use super::request::{TYPE, block, result_block};
use super::{CONTAINER, OF_API};

/// Key for arguments that are not a JSON object. An input has to be one, and the API accepts any
/// key in it, so the name is for the model, which wrote the arguments.
const NOT_JSON: &str = "INVALID_JSON";

/// Field of a block with the arguments of a call.
const INPUT: &str = "input";
/// Types of thinking blocks, which identify them in records that do not name the API.
const THINKING: [&str; 2] = ["thinking", "redacted_thinking"];

/// Author of a turn, as the API names it.
#[derive(Clone, Copy, PartialEq)]
enum Speaker {
    User,
    Assistant,
    System,
}

/// A turn with its blocks.
struct Turn {
    speaker: Speaker,
    blocks: Vec<Value>,
}

/// Returns the instructions: those of the request, and the system messages before the first
/// assistant turn.
pub(super) fn system(asked: &PreparedRequest<'_>) -> String {
    let instructions = asked.instructions().into_iter();
    let early = asked.messages.iter().take_while(|message| !is_reply(message));
    let early = early.filter(|message| message.role == Role::System);
    let texts = instructions.chain(early.map(|message| message.text()));
    texts.filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// Returns the turns of the conversation.
pub(super) fn turns(asked: &PreparedRequest<'_>) -> Vec<Value> {
    let programs = programs(asked);
    let mut all: Vec<Turn> = Vec::new();
    let mut group: Vec<Turn> = Vec::new();
    let mut has_reply = false;
    for message in &*asked.messages {
        has_reply |= is_reply(message);
        for content in &message.contents {
            let speaker = match content {
                MessageContent::FunctionResult(_) => Speaker::User,
                _ if message.role == Role::Assistant => Speaker::Assistant,
                _ if message.role == Role::System => Speaker::System,
                _ => Speaker::User,
            };
            let blocks = blocks(asked, &programs, message, content);
            if blocks.is_empty() {
                continue;
            }
            if speaker != Speaker::Assistant {
                // The first instructions are in their own field.
                if speaker == Speaker::User || has_reply {
                    add(&mut group, speaker, blocks);
                }
                continue;
            }
            all.extend(between_replies(asked, std::mem::take(&mut group)));
            add(&mut all, speaker, blocks);
        }
    }
    all.extend(between_replies(asked, group));
    all.into_iter().filter_map(Turn::into_json).collect()
}

fn add(turns: &mut Vec<Turn>, speaker: Speaker, blocks: Vec<Value>) {
    match turns.last_mut() {
        Some(last) if last.speaker == speaker => last.blocks.extend(blocks),
        _ => turns.push(Turn { speaker, blocks }),
    }
}

/// Arranges the turns between two of the assistant: results of calls come first, because the API
/// requires them directly after the calls, and a system message comes after the user's turn.
fn between_replies(asked: &PreparedRequest<'_>, group: Vec<Turn>) -> Vec<Turn> {
    let mut results = Vec::new();
    let mut rest: Vec<Turn> = Vec::new();
    for turn in group {
        if turn.speaker == Speaker::System && asked.adaptation.without_late_system {
            add(&mut rest, Speaker::User, turn.blocks.iter().map(as_user).collect());
            continue;
        }
        let (first, others): (Vec<_>, Vec<_>) =
            turn.blocks.into_iter().partition(|block| is(block, &["tool_result"]));
        results.extend(first);
        if !others.is_empty() {
            add(&mut rest, turn.speaker, others);
        }
    }
    let mut arranged = Vec::new();
    if !results.is_empty() {
        add(&mut arranged, Speaker::User, results);
    } else if rest.len() > 1 && rest.first().is_some_and(|turn| turn.speaker == Speaker::System) {
        rest.swap(0, 1);
    }
    for turn in rest {
        add(&mut arranged, turn.speaker, turn.blocks);
    }
    arranged
}

/// Returns the block of a system message in the form for a user's turn.
fn as_user(block: &Value) -> Value {
    let text = block.get("text").and_then(Value::as_str).unwrap_or_default();
    json!({TYPE: "text", "text": format!("<system-message>\n{text}\n</system-message>")})
}

impl Turn {
    fn into_json(mut self) -> Option<Value> {
        let role = match self.speaker {
            Speaker::User => "user",
            Speaker::System => "system",
            Speaker::Assistant => {
                // The API rejects a turn that ends in thinking, as it does after a reply was cut
                // off.
                while self.blocks.last().is_some_and(|last| is(last, &THINKING)) {
                    self.blocks.pop();
                }
                "assistant"
            }
        };
        let content = self.blocks;
        (!content.is_empty()).then(|| json!({"role": role, "content": content}))
    }
}

fn is(block: &Value, kinds: &[&str]) -> bool {
    block.get(TYPE).and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind))
}

/// Returns the ids of the programs in the conversation.
fn programs<'m>(asked: &'m PreparedRequest<'_>) -> HashSet<&'m str> {
    hosted::programs(asked.messages.iter().map(Arc::as_ref), "server_tool_use", "id")
}

/// Returns the container of the programs that wait for the results at the end of the conversation.
pub(super) fn container<'m>(asked: &'m PreparedRequest<'_>) -> Option<&'m str> {
    let last = asked.messages.iter().rev().find(|message| is_reply(message))?;
    last.calls().find_map(|call| asked.wire_fields(call)?.get(CONTAINER)?.as_str())
}

fn blocks(
    asked: &PreparedRequest<'_>,
    programs: &HashSet<&str>,
    message: &Message,
    content: &MessageContent,
) -> Vec<Value> {
    match content {
        // The API rejects blank text.
        MessageContent::Text(text) if text.text.trim().is_empty() => vec![],
        MessageContent::Text(text) => vec![text_block(message, text)],
        MessageContent::Data(_) | MessageContent::Uri(_)
            if matches!(message.role, Role::User | Role::Tool) =>
        {
            Attachment::of(content).map(block).into_iter().collect()
        }
        MessageContent::Reasoning(reasoning) if message.role == Role::Assistant => {
            own_blocks(reasoning)
        }
        MessageContent::FunctionCall(call) => vec![call_block(asked, programs, call)],
        MessageContent::FunctionResult(result) => vec![result_block(asked, result)],
        _ => vec![],
    }
}

fn text_block(message: &Message, text: &TextContent) -> Value {
    let mut block = Map::new();
    block.insert(TYPE.to_owned(), "text".into());
    block.insert("text".to_owned(), text.text.as_str().into());
    let citations = text.extra.get(CITATIONS).filter(|_| message.role == Role::Assistant);
    block.extend(citations.map(|citations| (CITATIONS.to_owned(), citations.clone())));
    Value::Object(block)
}

/// Returns blocks that go back as they arrived: thinking, and types that this crate does not know.
/// Blocks of another API are dropped.
fn own_blocks(reasoning: &Reasoning) -> Vec<Value> {
    let is_ours = reasoning.extra.get(API).and_then(Value::as_str) == Some(OF_API);
    let blocks = reasoning.opaque.as_ref().and_then(Value::as_array);
    blocks.into_iter().flatten().filter(|block| is_ours || is(block, &THINKING)).cloned().collect()
}

fn call_block(asked: &PreparedRequest<'_>, programs: &HashSet<&str>, call: &FunctionCall) -> Value {
    let mut block = Map::new();
    block.insert(TYPE.to_owned(), "tool_use".into());
    block.insert("id".to_owned(), asked.ids.wire(&call.call_id).into());
    block.insert("name".to_owned(), asked.names.wire(&call.name).into());
    let fields = asked.wire_fields(call);
    let received = fields.and_then(|fields| fields.get(INPUT));
    block.insert(INPUT.to_owned(), input(&call.arguments, received));
    // The API knows no caller whose program a compaction has removed.
    let is_sent = |key: &str, value: &Value| match key {
        CONTAINER => false,
        CALLER => program_of(value).is_none_or(|program| programs.contains(program)),
        _ => true,
    };
    let fields = fields.into_iter().flatten();
    for (key, value) in fields.filter(|(key, value)| is_sent(key, value)) {
        block.entry(key.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(block)
}

/// Returns the arguments as the input of a call. `received` is an input that is not an object and
/// that the API itself sent.
fn input(arguments: &str, received: Option<&Value>) -> Value {
    if arguments.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(arguments) {
        Ok(Value::Object(input)) => Value::Object(input),
        Ok(value) if received == Some(&value) => value,
        _ => json!({NOT_JSON: arguments}),
    }
}
