//! Replies of the Messages API: a list of blocks, or events about them.

use std::collections::HashMap;

use cofferdam_agent::{FinishReason, TokenUsage};
use serde_json::json;

use super::super::decode::{DONE, Decode};
use super::super::fault::{ReplyError, checked};
use super::super::fields::Fields;
use super::super::pieces::Pieces;
use cofferdam_sse::Event;

/// Input of a call before any of it has arrived.
const NO_INPUT: &str = "{}";

/// Decoder of one reply.
#[derive(Default)]
pub(in super::super) struct AnthropicDecoder {
    /// Blocks that have begun and not ended, by index.
    open: HashMap<u64, Block>,
    usage: Counts,
    has_stop_reason: bool,
    is_over: bool,
}

enum Block {
    /// A call, with its initial input.
    Call {
        number: usize,
        input: String,
    },
    Thinking {
        text: String,
        signature: String,
    },
    Other,
}

/// Token counts so far. Later counts are totals and replace earlier ones.
#[derive(Default)]
struct Counts {
    input: u64,
    cached: u64,
    written_to_cache: u64,
    output: u64,
}

impl Decode for AnthropicDecoder {
    fn whole(&mut self, body: &Fields<'_>, pieces: &mut Pieces) -> Result<(), ReplyError> {
        let blocks =
            body.list("content").ok_or(ReplyError::Malformed("a message without content"))?;
        for json in blocks {
            let Some(block) = Fields::read(json) else { continue };
            match self.begin(&block, json, pieces)? {
                Block::Call { number, input } => pieces.arguments(number, input)?,
                Block::Thinking { .. } => pieces.sealed(json)?,
                Block::Other => {}
            }
        }
        self.stop(body, pieces);
        self.count(body, pieces);
        self.is_over = true;
        Ok(())
    }

    fn event(&mut self, event: &Event, pieces: &mut Pieces) -> Result<(), ReplyError> {
        if event.data.trim() == DONE {
            return Ok(());
        }
        let event = checked(&event.data)?;
        let place = event.count("index").unwrap_or(0);
        match event.text("type").unwrap_or_default().as_str() {
            "message_start" => self.count(&event.object("message").unwrap_or_default(), pieces),
            "content_block_start" => {
                let json = event.raw("content_block").unwrap_or(NO_INPUT);
                let block = self.begin(&Fields::read(json).unwrap_or_default(), json, pieces)?;
                self.open.insert(place, block);
            }
            "content_block_delta" => {
                self.delta(place, &event.object("delta").unwrap_or_default(), pieces)?
            }
            "content_block_stop" => self.end(place, pieces)?,
            "message_delta" => {
                self.stop(&event.object("delta").unwrap_or_default(), pieces);
                self.count(&event, pieces);
            }
            "message_stop" => {
                let mut open: Vec<_> = self.open.keys().copied().collect();
                open.sort_unstable();
                open.into_iter().try_for_each(|place| self.end(place, pieces))?;
                self.is_over = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.is_over || (self.has_stop_reason && self.open.is_empty())
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

impl AnthropicDecoder {
    /// Handles a block, complete or just begun.
    fn begin(
        &mut self,
        block: &Fields<'_>,
        json: &str,
        pieces: &mut Pieces,
    ) -> Result<Block, ReplyError> {
        let text = |key| block.text(key).unwrap_or_default();
        match text("type").as_str() {
            "text" => {
                pieces.text(text("text"))?;
                Ok(Block::Other)
            }
            "thinking" => {
                pieces.thought(text("thinking"))?;
                Ok(Block::Thinking { text: text("thinking"), signature: text("signature") })
            }
            "redacted_thinking" => {
                pieces.sealed(json)?;
                Ok(Block::Other)
            }
            "tool_use" => {
                let number = pieces.call(&text("id"), &text("name"))?;
                Ok(Block::Call { number, input: block.raw("input").unwrap_or(NO_INPUT).to_owned() })
            }
            _ => Ok(Block::Other),
        }
    }

    fn delta(
        &mut self,
        place: u64,
        delta: &Fields<'_>,
        pieces: &mut Pieces,
    ) -> Result<(), ReplyError> {
        let text = |key| delta.text(key).unwrap_or_default();
        match (text("type").as_str(), self.open.get_mut(&place)) {
            ("text_delta", _) => pieces.text(text("text")),
            ("input_json_delta", Some(Block::Call { number, .. })) => {
                pieces.arguments(*number, text("partial_json"))
            }
            ("thinking_delta", Some(Block::Thinking { text: thought, .. })) => {
                thought.push_str(&text("thinking"));
                pieces.thought(text("thinking"))
            }
            ("signature_delta", Some(Block::Thinking { signature, .. })) => {
                let more = text("signature");
                pieces.count(&more)?;
                signature.push_str(&more);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn end(&mut self, place: u64, pieces: &mut Pieces) -> Result<(), ReplyError> {
        match self.open.remove(&place) {
            Some(Block::Call { number, input }) if !pieces.has_arguments(number) => {
                pieces.arguments(number, input)
            }
            Some(Block::Thinking { text, signature }) => {
                let block = json!({"type": "thinking", "thinking": text, "signature": signature});
                pieces.sealed(&block.to_string())
            }
            _ => Ok(()),
        }
    }

    fn stop(&mut self, fields: &Fields<'_>, pieces: &mut Pieces) {
        let Some(reason) = fields.some_text("stop_reason") else { return };
        self.has_stop_reason = true;
        pieces.finish(match reason.as_str() {
            "end_turn" | "stop_sequence" => FinishReason::Stop,
            "tool_use" => FinishReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" => FinishReason::ContentFilter,
            _ => FinishReason::Other(reason),
        });
    }

    fn count(&mut self, fields: &Fields<'_>, pieces: &mut Pieces) {
        let Some(usage) = fields.object("usage") else { return };
        let counts = &mut self.usage;
        for (key, count) in [
            ("input_tokens", &mut counts.input),
            ("cache_read_input_tokens", &mut counts.cached),
            ("cache_creation_input_tokens", &mut counts.written_to_cache),
            ("output_tokens", &mut counts.output),
        ] {
            *count = usage.count(key).unwrap_or(*count);
        }
        // Anthropic does not count tokens read from or written to the cache as input.
        let input =
            counts.input.saturating_add(counts.cached).saturating_add(counts.written_to_cache);
        pieces.usage(TokenUsage {
            input,
            output: counts.output,
            total: input.saturating_add(counts.output),
            cached_input: counts.cached,
            reasoning: 0,
        });
    }
}
