//! Replies in the form of Chat Completions.
//!
//! What compatible servers do differently is taken as it is meant: calls without an index, with the
//! same index for all, or whole in one piece; names and ids that come with every piece; arguments
//! that are an object; `stop` as the reason to stop where there are calls; usage in every piece, or
//! in one without choices; no `[DONE]` at the end.

use cofferdam_agent::FinishReason;
use serde::de::IgnoredAny;

use super::super::decode::{DONE, Decode};
use super::super::fault::{Broken, checked, text_or_json};
use super::super::fields::Fields;
use super::super::openai_usage;
use super::super::pieces::Pieces;
use cofferdam_sse::Event;

/// Reads one reply.
#[derive(Default)]
pub(in super::super) struct Decoder {
    calls: Vec<Call>,
    has_choice: bool,
    /// The model has said why it stopped.
    is_complete: bool,
    is_over: bool,
}

/// A call as the provider tells it from others.
#[derive(Default)]
struct Call {
    number: usize,
    index: Option<u64>,
    id: String,
    name: String,
    /// Kept where nothing but the end of the arguments says where a call ends.
    arguments: String,
}

impl Decode for Decoder {
    fn whole(&mut self, body: &Fields<'_>, pieces: &mut Pieces) -> Result<(), Broken> {
        self.read(body, "message", pieces)?;
        if self.has_choice { Ok(()) } else { Err(Broken::Malformed("a reply without choices")) }
    }

    fn event(&mut self, event: &Event, pieces: &mut Pieces) -> Result<(), Broken> {
        if event.data.trim() == DONE {
            (self.is_complete, self.is_over) = (true, true);
            return if self.has_choice { Ok(()) } else { Err(Broken::CutOff) };
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

impl Decoder {
    fn read(&mut self, body: &Fields<'_>, part: &str, pieces: &mut Pieces) -> Result<(), Broken> {
        if let Some(usage) = body.object("usage") {
            pieces.usage(openai_usage::read(&usage, "prompt", "completion"));
        }
        // One reply was asked for.
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
            pieces.finish(finish(reason));
        }
        Ok(())
    }

    fn message(
        &mut self,
        message: &Fields<'_>,
        is_whole: bool,
        pieces: &mut Pieces,
    ) -> Result<(), Broken> {
        let thought =
            ["reasoning_content", "reasoning"].iter().find_map(|key| message.some_text(key));
        pieces.thought(thought.unwrap_or_default())?;
        pieces.text(content(message))?;
        pieces.text(message.text("refusal").unwrap_or_default())?;
        for (place, call) in message.objects("tool_calls").enumerate() {
            self.call(&call, is_whole, place == 0, pieces)?;
        }
        Ok(())
    }

    /// A call, or a piece of one.
    fn call(
        &mut self,
        call: &Fields<'_>,
        is_whole: bool,
        is_first: bool,
        pieces: &mut Pieces,
    ) -> Result<(), Broken> {
        let function = call.object("function").unwrap_or_default();
        let piece = Piece {
            index: call.count("index"),
            id: call.text("id").unwrap_or_default(),
            name: function.text("name").unwrap_or_default(),
        };
        let arguments = function.raw("arguments").map(text_or_json).unwrap_or_default();
        let known = if is_whole { None } else { self.known(&piece, is_first) };
        match known.and_then(|place| self.calls.get_mut(place)) {
            Some(known) => {
                pieces.label(known.number, &piece.id, &piece.name)?;
                known.take(piece, &arguments);
                pieces.arguments(known.number, arguments)
            }
            None => {
                let number = pieces.call(&piece.id, &piece.name)?;
                let mut new = Call { number, index: piece.index, ..Call::default() };
                new.take(piece, &arguments);
                self.calls.push(new);
                pieces.arguments(number, arguments)
            }
        }
    }

    /// Where the call is that a piece belongs to, if it was there before.
    fn known(&self, piece: &Piece, is_first: bool) -> Option<usize> {
        let last = self.calls.len().checked_sub(1);
        if piece.index.is_some() {
            // The same index for every call is a mistake that ids tell.
            return self.calls.iter().rposition(|call| {
                call.index == piece.index
                    && (piece.id.is_empty() || call.id.is_empty() || call.id == piece.id)
            });
        }
        if !piece.id.is_empty() {
            return self.calls.iter().rposition(|call| call.id == piece.id);
        }
        if piece.name.is_empty() {
            return last;
        }
        // With nothing but a name: the call goes on if it is the same name, and the arguments so
        // far are not whole.
        let goes_on = |call: &&Call| is_first && call.name == piece.name && !call.is_whole();
        self.calls.last().filter(goes_on).and(last)
    }
}

/// What a piece says about the call that it belongs to.
struct Piece {
    index: Option<u64>,
    id: String,
    name: String,
}

impl Call {
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

/// The text of a message: a text, or a list of parts that are texts.
fn content(message: &Fields<'_>) -> String {
    let parts = message.objects("content").filter_map(|part| part.text("text"));
    message.text("content").unwrap_or_else(|| parts.collect())
}

fn finish(reason: String) -> FinishReason {
    match reason.as_str() {
        "stop" => FinishReason::Stop,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other(reason),
    }
}
