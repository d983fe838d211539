//! Replies of the Messages API: a list of blocks, or events about them.

use std::collections::HashMap;

use cofferdam_agent::{FinishReason, TokenUsage};
use serde_json::Map;

use super::super::decode::{DONE, Decode};
use super::super::fault::{ReplyError, checked};
use super::super::fields::Fields;
use super::super::pieces::Pieces;
use super::CONTAINER;
use super::block::{Block, NO_INPUT};
use cofferdam_sse::Event;

/// Decoder of one reply.
#[derive(Default)]
pub(in super::super) struct AnthropicDecoder {
    /// Blocks that have begun and not ended, by index.
    open: HashMap<u64, Block>,
    usage: Counts,
    /// Numbers of the calls of programs.
    program_calls: Vec<usize>,
    /// Container in which programs run, if the reply names one.
    container: Option<String>,
    has_stop_reason: bool,
    is_over: bool,
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
            self.begin(json, pieces)?.end(pieces)?;
        }
        self.run_in(body);
        self.stop(body, pieces);
        self.count(body, pieces);
        self.is_over = true;
        self.name_container(pieces)
    }

    fn event(&mut self, event: &Event, pieces: &mut Pieces) -> Result<(), ReplyError> {
        if event.data.trim() == DONE {
            return Ok(());
        }
        let event = checked(&event.data)?;
        let index = event.count("index").unwrap_or(0);
        match event.text("type").unwrap_or_default().as_str() {
            "message_start" => {
                let message = event.object("message").unwrap_or_default();
                self.run_in(&message);
                self.count(&message, pieces);
            }
            "content_block_start" => {
                let json = event.raw("content_block").unwrap_or(NO_INPUT);
                let block = self.begin(json, pieces)?;
                self.open.insert(index, block);
            }
            "content_block_delta" => {
                if let Some(block) = self.open.get_mut(&index) {
                    block.add(event.raw("delta").unwrap_or(NO_INPUT), pieces)?;
                }
            }
            "content_block_stop" => self.end(index, pieces)?,
            "message_delta" => {
                let delta = event.object("delta").unwrap_or_default();
                self.run_in(&delta);
                self.stop(&delta, pieces);
                self.count(&event, pieces);
            }
            "message_stop" => {
                let mut open: Vec<_> = self.open.keys().copied().collect();
                open.sort_unstable();
                open.into_iter().try_for_each(|index| self.end(index, pieces))?;
                self.is_over = true;
                self.name_container(pieces)?;
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
    fn begin(&mut self, json: &str, pieces: &mut Pieces) -> Result<Block, ReplyError> {
        let block = Block::begin(json, pieces)?;
        self.program_calls.extend(block.program_call());
        Ok(block)
    }

    /// Reads the container in which programs run.
    fn run_in(&mut self, fields: &Fields<'_>) {
        let container = fields.object("container").and_then(|container| container.some_text("id"));
        self.container = container.or(self.container.take());
    }

    /// Adds the container to the calls of programs: the request with their results has to name it.
    fn name_container(&mut self, pieces: &mut Pieces) -> Result<(), ReplyError> {
        let Some(container) = self.container.take() else { return Ok(()) };
        let field = Map::from_iter([(CONTAINER.to_owned(), container.into())]);
        self.program_calls.drain(..).try_for_each(|call| pieces.wire_fields(call, field.clone()))
    }

    fn end(&mut self, index: u64, pieces: &mut Pieces) -> Result<(), ReplyError> {
        self.open.remove(&index).map_or(Ok(()), |block| block.end(pieces))
    }

    fn stop(&mut self, fields: &Fields<'_>, pieces: &mut Pieces) {
        let Some(reason) = fields.some_text("stop_reason") else { return };
        self.has_stop_reason = true;
        pieces.finish(match reason.as_str() {
            "end_turn" | "stop_sequence" => FinishReason::Stop,
            "tool_use" => FinishReason::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
            "refusal" => FinishReason::Refusal,
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
            cache_write_input: counts.written_to_cache,
            reasoning: 0,
        });
    }
}
