//! Blocks of a reply while they arrive.

use serde_json::{Map, Value};

use super::super::fault::ReplyError;
use super::super::fields::{self, Fields};
use super::super::hosted::CALLER;
use super::super::pieces::Pieces;
use super::OF_API;
use super::request::TYPE;

/// Input of a call before any of it has arrived.
pub(super) const NO_INPUT: &str = "{}";
/// Field of a block with the input of a call.
const INPUT: &str = "input";
/// Field of a text with the sources that it cites, in a block and in the record of a text.
pub(super) const CITATIONS: &str = "citations";
/// Fields of a call that this crate knows.
const OF_CALL: [&str; 4] = [TYPE, "id", "name", INPUT];

/// A block that has begun.
pub(super) enum Block {
    Text(CitedText),
    Call(CallBlock),
    Opaque(OpaqueBlock),
}

/// A text, with the sources that it cites.
#[derive(Default)]
pub(super) struct CitedText {
    citations: Vec<Value>,
}

/// A call.
pub(super) struct CallBlock {
    number: usize,
    /// True if a program makes the call.
    is_of_program: bool,
    /// Input with which the block began.
    initial: String,
    /// Input so far, if it is not an object.
    odd: String,
}

/// A block that goes back to the provider as it arrived: thinking, or a type that this crate does
/// not know.
#[derive(Default)]
pub(super) struct OpaqueBlock {
    fields: Map<String, Value>,
    /// JSON of the field `input` so far, if it arrives in pieces.
    input: String,
}

impl Block {
    /// Begins a block, which may be complete.
    pub(super) fn begin(json: &str, pieces: &mut Pieces) -> Result<Self, ReplyError> {
        let block = Fields::read(json).unwrap_or_default();
        let text = |key| block.text(key).unwrap_or_default();
        Ok(match text(TYPE).as_str() {
            "text" => {
                pieces.begin_text();
                pieces.text(text("text"))?;
                let citations = block.raw(CITATIONS).unwrap_or_default();
                pieces.count(citations)?;
                let citations = fields::value(citations);
                let citations = citations.and_then(|list| list.as_array().cloned());
                Self::Text(CitedText { citations: citations.unwrap_or_default() })
            }
            "tool_use" => {
                let number = pieces.call(&text("id"), &text("name"))?;
                let mut others = object(json);
                others.retain(|key, _| !OF_CALL.contains(&key.as_str()));
                let is_of_program = others.get(CALLER).and_then(program_of).is_some();
                pieces.wire_fields(number, others)?;
                let initial = block.raw(INPUT).unwrap_or(NO_INPUT).to_owned();
                pieces.count(&initial)?;
                Self::Call(CallBlock { number, is_of_program, initial, odd: String::new() })
            }
            kind => {
                pieces.count(json)?;
                if kind == "thinking" {
                    pieces.thought(text("thinking"))?;
                }
                Self::Opaque(OpaqueBlock { fields: object(json), input: String::new() })
            }
        })
    }

    /// Returns the number of the call if the block is the call of a program.
    pub(super) fn program_call(&self) -> Option<usize> {
        match self {
            Self::Call(call) if call.is_of_program => Some(call.number),
            _ => None,
        }
    }

    /// Adds a delta to the block. `json` is the delta.
    pub(super) fn add(&mut self, json: &str, pieces: &mut Pieces) -> Result<(), ReplyError> {
        let delta = Fields::read(json).unwrap_or_default();
        let text = |key| delta.text(key).unwrap_or_default();
        match (self, text(TYPE).as_str()) {
            (Self::Text(_), "text_delta") => pieces.text(text("text")),
            (Self::Text(cited), "citations_delta") => {
                let citation = delta.raw("citation").unwrap_or_default();
                pieces.count(citation)?;
                cited.citations.extend(fields::value(citation));
                Ok(())
            }
            (Self::Call(call), "input_json_delta") => call.add(text("partial_json"), pieces),
            (Self::Opaque(block), "thinking_delta") => {
                let thought = text("thinking");
                append(&mut block.fields, "thinking", &thought);
                pieces.thought(thought)
            }
            (Self::Opaque(block), "input_json_delta") => {
                let more = text("partial_json");
                pieces.count(&more)?;
                block.input.push_str(&more);
                Ok(())
            }
            (Self::Opaque(block), _) => {
                pieces.count(json)?;
                block.merge(object(json));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Ends the block.
    pub(super) fn end(self, pieces: &mut Pieces) -> Result<(), ReplyError> {
        match self {
            Self::Text(cited) => cited.end(pieces),
            Self::Call(call) => call.end(pieces),
            Self::Opaque(block) => block.end(pieces),
        }
    }
}

impl CitedText {
    fn end(self, pieces: &mut Pieces) -> Result<(), ReplyError> {
        if self.citations.is_empty() {
            return Ok(());
        }
        pieces.cited(Map::from_iter([(CITATIONS.to_owned(), self.citations.into())]))
    }
}

impl CallBlock {
    fn add(&mut self, more: String, pieces: &mut Pieces) -> Result<(), ReplyError> {
        let is_first = !pieces.has_arguments(self.number);
        if !self.odd.is_empty() || (is_first && is_odd(&more)) {
            self.odd.push_str(&more);
        }
        pieces.arguments(self.number, more)
    }

    fn end(mut self, pieces: &mut Pieces) -> Result<(), ReplyError> {
        if !pieces.has_arguments(self.number) {
            let initial = std::mem::take(&mut self.initial);
            self.add(initial, pieces)?;
        }
        match fields::value(&self.odd) {
            Some(input) if !input.is_object() => {
                pieces.wire_fields(self.number, Map::from_iter([(INPUT.to_owned(), input)]))
            }
            _ => Ok(()),
        }
    }
}

impl OpaqueBlock {
    fn merge(&mut self, delta: Map<String, Value>) {
        for (key, value) in delta.into_iter().filter(|(key, _)| key != TYPE) {
            match value {
                Value::String(more) => append(&mut self.fields, &key, &more),
                value => {
                    self.fields.insert(key, value);
                }
            }
        }
    }

    fn end(mut self, pieces: &mut Pieces) -> Result<(), ReplyError> {
        if let Some(input) = fields::value(&self.input) {
            self.fields.insert(INPUT.to_owned(), input);
        }
        if self.fields.is_empty() {
            return Ok(());
        }
        pieces.sealed(Value::Object(self.fields), OF_API)
    }
}

/// Returns the id of the program that is the caller of a call.
pub(super) fn program_of(caller: &Value) -> Option<&str> {
    caller.get("tool_id").and_then(Value::as_str)
}

fn append(fields: &mut Map<String, Value>, key: &str, more: &str) {
    match fields.get_mut(key) {
        Some(Value::String(known)) => known.push_str(more),
        _ => {
            fields.insert(key.to_owned(), more.into());
        }
    }
}

/// Returns a JSON object with all its fields; an empty one if it cannot be read.
fn object(json: &str) -> Map<String, Value> {
    match fields::value(json) {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// Returns whether the beginning of an input is not that of an object.
fn is_odd(input: &str) -> bool {
    !input.trim_start().is_empty() && !input.trim_start().starts_with('{')
}
