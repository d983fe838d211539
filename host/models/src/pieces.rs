//! What has been read of a reply: pieces that go on to the caller, within limits.
//!
//! Whole and streamed replies are read into the same pieces, so that they give the same.

use cofferdam_agent::{Delta, FinishReason, FunctionCall, Reasoning, TokenUsage, Update};
use data_encoding::HEXLOWER;
use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::fault::Broken;
use super::fields;
use super::names::Names;
use super::settings::ReplyLimits;

/// Most parts of reasoning in a row. There are one or two.
const SEALED_MAX: usize = 256;

/// Pieces of one reply.
pub(super) struct Pieces {
    names: Arc<Names>,
    limits: ReplyLimits,
    /// Ids that a new call cannot have: those of the conversation, and those of the calls before
    /// it.
    taken: HashSet<String>,
    bytes: usize,
    calls: Vec<OpenCall>,
    /// What the provider wants back of the reasoning that came last. Reasoning that follows
    /// reasoning is one content with us.
    sealed: Vec<Value>,
    new: Vec<Delta>,
    usage: Option<TokenUsage>,
    conversation_id: Option<String>,
    finish: Option<FinishReason>,
}

#[derive(Default)]
struct OpenCall {
    has_id: bool,
    has_name: bool,
    argument_bytes: usize,
}

impl Pieces {
    /// For a reply to a conversation that has these ids.
    pub(super) fn new(names: Arc<Names>, limits: ReplyLimits, taken: HashSet<String>) -> Self {
        Self {
            names,
            limits,
            taken,
            bytes: 0,
            calls: Vec::new(),
            sealed: Vec::new(),
            new: Vec::new(),
            usage: None,
            conversation_id: None,
            finish: None,
        }
    }

    /// Takes note of text that is kept elsewhere until it is whole.
    pub(super) fn count(&mut self, text: &str) -> Result<(), Broken> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > self.limits.reply_bytes_max {
            Err(Broken::TooLarge("the reply is"))
        } else {
            Ok(())
        }
    }

    /// More text.
    pub(super) fn text(&mut self, text: String) -> Result<(), Broken> {
        if text.is_empty() {
            return Ok(());
        }
        self.count(&text)?;
        self.sealed.clear();
        self.new.push(Delta::Text(text));
        Ok(())
    }

    /// More of what may be shown of the reasoning.
    pub(super) fn thought(&mut self, text: String) -> Result<(), Broken> {
        if text.is_empty() {
            return Ok(());
        }
        self.count(&text)?;
        self.new.push(Delta::Reasoning(Reasoning { text, ..Reasoning::default() }));
        Ok(())
    }

    /// A part of the reasoning that goes back to the provider as it is, in JSON.
    pub(super) fn sealed(&mut self, json: &str) -> Result<(), Broken> {
        self.count(json)?;
        if self.sealed.len() >= SEALED_MAX {
            return Err(Broken::TooLarge("the number of parts of the reasoning is"));
        }
        let part = fields::value(json).ok_or(Broken::Malformed("reasoning that is not JSON"))?;
        self.sealed.push(part);
        let opaque = Some(Value::Array(self.sealed.clone()));
        self.new.push(Delta::Reasoning(Reasoning { opaque, ..Reasoning::default() }));
        Ok(())
    }

    /// Another call; its number is returned. What is not known yet is empty.
    pub(super) fn call(&mut self, id: &str, name: &str) -> Result<usize, Broken> {
        let number = self.calls.len();
        if number >= self.limits.calls_max {
            return Err(Broken::TooLarge("the number of function calls is"));
        }
        self.calls.push(OpenCall::default());
        self.sealed.clear();
        self.push_call(number, FunctionCall::default());
        self.label(number, id, name)?;
        Ok(number)
    }

    /// Id and name of a call, if they were missing. An id that another call has is none.
    pub(super) fn label(&mut self, number: usize, id: &str, name: &str) -> Result<(), Broken> {
        self.count(id)?;
        self.count(name)?;
        let Some(call) = self.calls.get_mut(number) else { return Ok(()) };
        let is_id = !id.is_empty() && !call.has_id && self.taken.insert(id.to_owned());
        call.has_id |= is_id;
        let call_id = if is_id { id.to_owned() } else { String::new() };
        let is_name = !name.is_empty() && !call.has_name;
        call.has_name |= is_name;
        let name = if is_name { self.names.ours(name).to_owned() } else { String::new() };
        if is_id || is_name {
            self.push_call(number, FunctionCall { call_id, name, ..FunctionCall::default() });
        }
        Ok(())
    }

    /// More of the arguments of a call.
    pub(super) fn arguments(&mut self, number: usize, text: String) -> Result<(), Broken> {
        let Some(call) = self.calls.get_mut(number) else { return Ok(()) };
        if text.is_empty() {
            return Ok(());
        }
        call.argument_bytes = call.argument_bytes.saturating_add(text.len());
        if call.argument_bytes > self.limits.arguments_bytes_max {
            return Err(Broken::TooLarge("the arguments of a function call are"));
        }
        self.count(&text)?;
        self.push_call(number, FunctionCall { arguments: text, ..FunctionCall::default() });
        Ok(())
    }

    /// Whether a call has arguments so far.
    pub(super) fn has_arguments(&self, number: usize) -> bool {
        self.calls.get(number).is_some_and(|call| call.argument_bytes > 0)
    }

    /// Whether there are calls.
    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    fn push_call(&mut self, index: usize, call: FunctionCall) {
        // What is known of a call at once goes on at once.
        match self.new.last_mut() {
            Some(Delta::Call { index: last, call: known })
                if *last == index && call.arguments.is_empty() =>
            {
                known.call_id.push_str(&call.call_id);
                known.name.push_str(&call.name);
            }
            _ => self.new.push(Delta::Call { index, call }),
        }
    }

    /// What the reply cost, in place of what was said before.
    pub(super) fn usage(&mut self, usage: TokenUsage) {
        self.usage = Some(usage);
    }

    /// The conversation that the service keeps.
    pub(super) fn conversation(&mut self, id: Option<String>) {
        self.conversation_id = id.or(self.conversation_id.take());
    }

    /// Why the model stopped.
    pub(super) fn finish(&mut self, finish: FinishReason) {
        self.finish = Some(finish);
    }

    /// What is new, if anything is.
    pub(super) fn take(&mut self) -> Option<Update> {
        let deltas = std::mem::take(&mut self.new);
        (!deltas.is_empty()).then(|| Update { deltas, ..Update::default() })
    }

    /// The last update. Calls that got no id get one.
    pub(super) fn end(&mut self) -> Update {
        for number in 0..self.calls.len() {
            if self.calls.get(number).is_some_and(|call| !call.has_id) {
                let call_id = fresh_id(number);
                self.new.push(Delta::Call {
                    index: number,
                    call: FunctionCall { call_id, ..FunctionCall::default() },
                });
            }
        }
        Update {
            role: None,
            deltas: std::mem::take(&mut self.new),
            usage: self.usage.take(),
            conversation_id: self.conversation_id.take(),
            finish: self.finish.take(),
        }
    }
}

fn fresh_id(number: usize) -> String {
    let mut bytes = [0; 12];
    // Without randomness the number still tells the calls of a reply apart.
    let _no_matter = getrandom::fill(&mut bytes);
    format!("call_{}{number}", HEXLOWER.encode(&bytes))
}
