//! Replies of the Responses API: a list of items, or events about them.
//!
//! The event that completes an item repeats the item, and the last event repeats everything. Only
//! what did not arrive in pieces is read from these.

use std::collections::HashMap;

use cofferdam_agent::FinishReason;
use serde_json::{Map, Value};

use super::super::Provider;
use super::super::decode::{DONE, Decode};
use super::super::fault::{ProviderMessage, ReplyError, checked, text_or_json};
use super::super::fields::{self, Fields};
use super::super::hosted::CALLER;
use super::super::openai_usage;
use super::super::pieces::Pieces;
use cofferdam_sse::Event;

/// Field of a part with the sources that it cites, also in the record of a text.
const ANNOTATIONS: &str = "annotations";
/// Separator between the parts of a summary.
const PARAGRAPH: &str = "\n\n";

/// Decoder of one reply.
pub(in super::super) struct ResponsesDecoder {
    /// True if the service keeps the conversation, so that the reply's id continues it.
    keeps_conversation: bool,
    /// Items seen so far, by index.
    items: HashMap<u64, Item>,
    /// True if the model has refused to answer.
    has_refused: bool,
    is_complete: bool,
}

#[derive(Default)]
struct Item {
    /// Number of the call, if the item is one.
    call: Option<usize>,
    /// True if any of its text has been read.
    has_text: bool,
    is_done: bool,
}

impl Decode for ResponsesDecoder {
    fn whole(&mut self, body: &Fields<'_>, pieces: &mut Pieces) -> Result<(), ReplyError> {
        if body.list("output").is_none() {
            return Err(ReplyError::Malformed("a response without output"));
        }
        self.end(body, pieces)
    }

    fn event(&mut self, event: &Event, pieces: &mut Pieces) -> Result<(), ReplyError> {
        if event.data.trim() == DONE {
            return Ok(());
        }
        let event = checked(&event.data)?;
        let index = event.count("output_index").unwrap_or(0);
        let delta = || event.text("delta").unwrap_or_default();
        match event.text("type").unwrap_or_default().as_str() {
            "response.output_item.added" => {
                let item = event.object("item").unwrap_or_default();
                if item.text("type").as_deref() == Some("function_call") {
                    self.call(index, &item, pieces)?;
                }
                Ok(())
            }
            "response.output_item.done" => {
                self.item(index, event.raw("item").unwrap_or("{}"), pieces)
            }
            kind @ ("response.output_text.delta" | "response.refusal.delta") => {
                self.has_refused |= kind == "response.refusal.delta";
                self.items.entry(index).or_default().has_text = true;
                pieces.text(delta())
            }
            "response.function_call_arguments.delta" => match self.known_call(index) {
                Some(call) => pieces.arguments(call, delta()),
                None => Ok(()),
            },
            "response.function_call_arguments.done" => match self.known_call(index) {
                Some(call) => missing_arguments(call, &event, pieces),
                None => Ok(()),
            },
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.items.entry(index).or_default().has_text = true;
                pieces.thought(delta())
            }
            "response.reasoning_summary_part.added" if event.count("summary_index") > Some(0) => {
                pieces.thought(PARAGRAPH.to_owned())
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.end(&event.object("response").unwrap_or_default(), pieces)
            }
            _ => Ok(()),
        }
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn is_over(&self) -> bool {
        self.is_complete
    }
}

impl ResponsesDecoder {
    pub(in super::super) fn new(keeps_conversation: bool) -> Self {
        Self { keeps_conversation, items: HashMap::new(), has_refused: false, is_complete: false }
    }

    fn known_call(&self, index: u64) -> Option<usize> {
        self.items.get(&index).and_then(|item| item.call)
    }

    /// Returns the number of the call in an item, adding the call if it is new.
    fn call(
        &mut self,
        index: u64,
        item: &Fields<'_>,
        pieces: &mut Pieces,
    ) -> Result<usize, ReplyError> {
        let text = |key| item.text(key).unwrap_or_default();
        let (id, name) = (text("call_id"), text("name"));
        if let Some(call) = self.known_call(index) {
            pieces.label(call, &id, &name)?;
            return Ok(call);
        }
        let call = pieces.call(&id, &name)?;
        if let Some(caller) = item.raw(CALLER).and_then(fields::value) {
            pieces.wire_fields(call, Map::from_iter([(CALLER.to_owned(), caller)]))?;
        }
        self.items.entry(index).or_default().call = Some(call);
        Ok(call)
    }

    /// Handles a complete item.
    fn item(&mut self, index: u64, json: &str, pieces: &mut Pieces) -> Result<(), ReplyError> {
        let Some(item) = Fields::read(json) else { return Ok(()) };
        let known = self.items.entry(index).or_default();
        if std::mem::replace(&mut known.is_done, true) {
            return Ok(());
        }
        let has_text = known.has_text;
        match item.text("type").unwrap_or_default().as_str() {
            "message" => {
                self.has_refused |=
                    item.objects("content").any(|part| part.some_text("refusal").is_some());
                if !has_text {
                    item.objects("content")
                        .filter_map(|part| part.text("text").or_else(|| part.text("refusal")))
                        .try_for_each(|text| pieces.text(text))?;
                }
                pieces.cited(annotations(&item))
            }
            "function_call" => {
                let call = self.call(index, &item, pieces)?;
                missing_arguments(call, &item, pieces)
            }
            "reasoning" => {
                if !has_text {
                    pieces.thought(thought(&item))?;
                }
                self.seal(&item, json, pieces)
            }
            "program" | "program_output" if !self.keeps_conversation => sealed(json, pieces),
            _ => Ok(()),
        }
    }

    /// Keeps reasoning to send it back. Reasoning that consists only of an id is dropped: the
    /// service would look it up and has not stored it.
    fn seal(&self, item: &Fields<'_>, json: &str, pieces: &mut Pieces) -> Result<(), ReplyError> {
        let is_all_there = item.some_text("encrypted_content").is_some()
            || item.objects("content").next().is_some();
        if !is_all_there || self.keeps_conversation {
            return Ok(());
        }
        sealed(json, pieces)
    }

    /// Handles the whole response, which is the body of a response or the end of a stream.
    fn end(&mut self, response: &Fields<'_>, pieces: &mut Pieces) -> Result<(), ReplyError> {
        if let Some(said) = ProviderMessage::in_object(response) {
            return Err(ReplyError::Said(said));
        }
        let status = response.text("status").unwrap_or_default();
        if matches!(status.as_str(), "failed" | "cancelled" | "queued" | "in_progress") {
            let text = format!("the response is {status}");
            return Err(ReplyError::Said(ProviderMessage { text, ..ProviderMessage::default() }));
        }
        if self.items.is_empty() {
            for (index, item) in (0_u64..).zip(response.list("output").unwrap_or_default()) {
                self.item(index, item, pieces)?;
            }
        }
        if let Some(usage) = response.object("usage") {
            pieces.usage(openai_usage::read(&usage, "input", "output"));
        }
        if self.keeps_conversation {
            pieces.conversation(response.some_text("id"));
        }
        let reason =
            response.object("incomplete_details").and_then(|details| details.some_text("reason"));
        let finish = finish(reason, pieces.has_calls());
        let is_refusal = self.has_refused && finish == FinishReason::Stop;
        pieces.finish(if is_refusal { FinishReason::Refusal } else { finish });
        self.is_complete = true;
        Ok(())
    }
}

/// Keeps an item to send it back.
fn sealed(json: &str, pieces: &mut Pieces) -> Result<(), ReplyError> {
    let item = fields::value(json).ok_or(ReplyError::Malformed("an item that is not JSON"))?;
    pieces.sealed(item, Provider::OpenAiResponses.name())
}

/// Adds arguments that have not arrived in pieces.
fn missing_arguments(
    call: usize,
    fields: &Fields<'_>,
    pieces: &mut Pieces,
) -> Result<(), ReplyError> {
    if pieces.has_arguments(call) {
        return Ok(());
    }
    pieces.arguments(call, fields.raw("arguments").map(text_or_json).unwrap_or_default())
}

/// Returns the sources that a message cites. Its parts are one text here, so positions in a part
/// become positions in that text.
fn annotations(item: &Fields<'_>) -> Map<String, Value> {
    let mut all = Vec::new();
    let mut before = 0_u64;
    for part in item.objects("content") {
        let of_part = part.raw(ANNOTATIONS).and_then(fields::value);
        for mut annotation in of_part.iter().filter_map(Value::as_array).flatten().cloned() {
            for key in ["start_index", "end_index"] {
                if let Some(position) = annotation.get_mut(key)
                    && let Some(in_part) = position.as_u64()
                {
                    *position = in_part.saturating_add(before).into();
                }
            }
            all.push(annotation);
        }
        let text = part.text("text").or_else(|| part.text("refusal")).unwrap_or_default();
        before = before.saturating_add(text.chars().count() as u64);
    }
    if all.is_empty() {
        return Map::new();
    }
    Map::from_iter([(ANNOTATIONS.to_owned(), all.into())])
}

/// Returns the reasoning that may be shown: its summary, or the reasoning itself from servers that
/// do not hide it.
fn thought(item: &Fields<'_>) -> String {
    let texts = |key| item.objects(key).filter_map(|part| part.text("text")).collect::<Vec<_>>();
    let summary = texts("summary").join(PARAGRAPH);
    if summary.is_empty() { texts("content").concat() } else { summary }
}

fn finish(reason: Option<String>, has_calls: bool) -> FinishReason {
    match reason.as_deref() {
        Some("max_output_tokens") => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        Some(_) => FinishReason::Other(reason.unwrap_or_default()),
        None if has_calls => FinishReason::ToolCalls,
        None => FinishReason::Stop,
    }
}
