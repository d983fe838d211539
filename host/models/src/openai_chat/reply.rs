//! Replies of the Chat Completions API.
//!
//! Deviations of compatible servers are tolerated: calls without an index, with the same index for
//! all, or whole in one piece; names and ids that come with every piece; arguments that are an
//! object; `stop` as the finish reason although there are calls; usage in every piece, or in one
//! without choices; no `[DONE]` at the end.

use cofferdam_agent::FinishReason;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::super::decode::{DONE, Decode};
use super::super::fault::{ReplyError, checked, text_or_json};
use super::super::fields::{self, Fields};
use super::super::openai_usage;
use super::super::pieces::Pieces;
use cofferdam_sse::Event;

/// Fields of a call that the API defines.
const OF_CALL: [&str; 4] = ["index", "id", "type", "function"];

/// Decoder of one reply.
#[derive(Default)]
pub(in super::super) struct ChatDecoder {
    calls: Vec<CallKey>,
    has_choice: bool,
    /// True if the model has refused to answer.
    has_refused: bool,
    /// True if the model has given a finish reason.
    is_complete: bool,
    is_over: bool,
}

/// A call, with what the provider identifies it by.
#[derive(Default)]
struct CallKey {
    number: usize,
    index: Option<u64>,
    id: String,
    name: String,
    /// Arguments so far, if the call has no index: only their end shows where the call ends.
    arguments: String,
}

impl Decode for ChatDecoder {
    fn whole(&mut self, body: &Fields<'_>, pieces: &mut Pieces) -> Result<(), ReplyError> {
        self.read(body, "message", pieces)?;
        if self.has_choice { Ok(()) } else { Err(ReplyError::Malformed("a reply without choices")) }
    }

    fn event(&mut self, event: &Event, pieces: &mut Pieces) -> Result<(), ReplyError> {
        if event.data.trim() == DONE {
            (self.is_complete, self.is_over) = (true, true);
            return if self.has_choice { Ok(()) } else { Err(ReplyError::CutOff) };
        }
        self.read(&checked(&event.data)?, "delta", pieces)
    }

    fn is_complete(&self) -> bool {
        self.is_complete
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

impl ChatDecoder {
    fn read(
        &mut self,
        body: &Fields<'_>,
        part: &str,
        pieces: &mut Pieces,
    ) -> Result<(), ReplyError> {
        if let Some(usage) = body.object("usage") {
            pieces.usage(openai_usage::read(&usage, "prompt", "completion"));
        }
        // The request asks for one choice only.
        let Some(choice) =
            body.objects("choices").find(|choice| choice.count("index").unwrap_or(0) == 0)
        else {
            return Ok(());
        };
        self.has_choice = true;
        if let Some(message) = choice.object(part) {
            self.message(&message, part == "message", pieces)?;
        }
        if let Some(reason) = choice.some_text("finish_reason") {
            self.is_complete = true;
            pieces.finish(finish(reason, self.has_refused));
        }
        Ok(())
    }

    fn message(
        &mut self,
        message: &Fields<'_>,
        is_whole: bool,
        pieces: &mut Pieces,
    ) -> Result<(), ReplyError> {
        let thought =
            ["reasoning_content", "reasoning"].iter().find_map(|key| message.some_text(key));
        pieces.thought(thought.unwrap_or_default())?;
        pieces.text(content(message))?;
        let refusal = message.text("refusal").unwrap_or_default();
        self.has_refused |= !refusal.is_empty();
        pieces.text(refusal)?;
        let calls = message.list("tool_calls").unwrap_or_default();
        let count = calls.len();
        for (index, json) in calls.into_iter().enumerate() {
            let Some(call) = Fields::read(json) else { continue };
            let number = self.call(&call, is_whole, PiecePosition { index, count }, pieces)?;
            pieces.wire_fields(number, unknown_fields(json))?;
        }
        Ok(())
    }

    /// Handles a call or a piece of one, and returns the number of the call.
    fn call(
        &mut self,
        call: &Fields<'_>,
        is_whole: bool,
        position: PiecePosition,
        pieces: &mut Pieces,
    ) -> Result<usize, ReplyError> {
        let function = call.object("function").unwrap_or_default();
        let piece = Piece {
            index: call.count("index"),
            id: call.text("id").unwrap_or_default(),
            name: function.text("name").unwrap_or_default(),
        };
        let arguments = function.raw("arguments").map(text_or_json).unwrap_or_default();
        let known = if is_whole { None } else { self.known(&piece, position) };
        match known.and_then(|index| self.calls.get_mut(index)) {
            Some(known) => {
                pieces.label(known.number, &piece.id, &piece.name)?;
                known.take(piece, &arguments);
                pieces.arguments(known.number, arguments)?;
                Ok(known.number)
            }
            None => {
                let number = pieces.call(&piece.id, &piece.name)?;
                let mut new = CallKey { number, index: piece.index, ..CallKey::default() };
                new.take(piece, &arguments);
                self.calls.push(new);
                pieces.arguments(number, arguments)?;
                Ok(number)
            }
        }
    }

    /// Returns the position of the call that a piece belongs to, if there is one already.
    fn known(&self, piece: &Piece, position: PiecePosition) -> Option<usize> {
        let last = self.calls.len().checked_sub(1);
        if piece.index.is_some() {
            // Servers that give every call the same index can still be distinguished by ids.
            return self.calls.iter().rposition(|call| {
                call.index == piece.index
                    && (piece.id.is_empty() || call.id.is_empty() || call.id == piece.id)
            });
        }
        if !piece.id.is_empty() {
            return self.calls.iter().rposition(|call| call.id == piece.id);
        }
        if piece.name.is_empty() {
            // Several pieces at once are in the order of their calls.
            return if position.count > 1 { Some(position.index).min(last) } else { last };
        }
        // With only a name, the piece continues the last call if the name is the same and the
        // arguments so far are incomplete.
        let goes_on =
            |call: &&CallKey| position.index == 0 && call.name == piece.name && !call.is_whole();
        self.calls.last().filter(goes_on).and(last)
    }
}

/// Position of a piece among those that arrived together.
#[derive(Clone, Copy)]
struct PiecePosition {
    index: usize,
    count: usize,
}

/// Identifiers of a call in one piece of it.
struct Piece {
    index: Option<u64>,
    id: String,
    name: String,
}

impl CallKey {
    fn take(&mut self, piece: Piece, arguments: &str) {
        for (known, new) in [(&mut self.id, piece.id), (&mut self.name, piece.name)] {
            if known.is_empty() {
                *known = new;
            }
        }
        if self.index.is_none() {
            self.arguments.push_str(arguments);
        }
    }

    fn is_whole(&self) -> bool {
        serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }
}

/// Returns the fields of a call that the API does not define. Gemini requires its own back.
fn unknown_fields(json: &str) -> Map<String, Value> {
    let Some(Value::Object(mut fields)) = fields::value(json) else { return Map::new() };
    fields.retain(|key, value| !OF_CALL.contains(&key.as_str()) && !value.is_null());
    fields
}

/// Returns the text of a message, which is a string or a list of parts with strings.
fn content(message: &Fields<'_>) -> String {
    let parts = message.objects("content").filter_map(|part| part.text("text"));
    message.text("content").unwrap_or_else(|| parts.collect())
}

fn finish(reason: String, has_refused: bool) -> FinishReason {
    match reason.as_str() {
        "stop" if has_refused => FinishReason::Refusal,
        "stop" => FinishReason::Stop,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other(reason),
    }
}
