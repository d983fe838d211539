//! Pieces read of a reply, within limits, on their way to the caller.
//!
//! Whole and streamed replies are read into the same pieces, so that both give the same result.

use cofferdam_agent::{Delta, FinishReason, FunctionCall, Reasoning, TokenUsage, Update};
use data_encoding::HEXLOWER;
use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::fault::ReplyError;
use super::names::NameMap;
use super::settings::ReplyLimits;
use super::wire_fields;

/// Key of the API that a reasoning content came from.
pub(super) const API: &str = "api";
/// Maximum number of reasoning parts in a row. Usually there are one or two.
const SEALED_MAX: usize = 256;

/// Pieces of one reply.
pub(super) struct Pieces {
    names: Arc<NameMap>,
    limits: ReplyLimits,
    /// Ids that a new call cannot have: those of the conversation, and those of earlier calls in
    /// the reply.
    taken: HashSet<String>,
    bytes: usize,
    calls: Vec<OpenCall>,
    /// Host of the server, for fields that go back to it.
    host: String,
    /// True if the latest content is text.
    is_after_text: bool,
    /// Opaque parts of the latest reasoning, to be sent back to the provider, with the API that
    /// they came from. Consecutive parts form one content, which the next text or call or the
    /// end of the reply completes.
    sealed: Option<(Vec<Value>, String)>,
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
    /// Fields that go back to the server.
    wire_fields: Map<String, Value>,
}

impl Pieces {
    /// Creates the pieces of a reply to a conversation that uses these call ids.
    pub(super) fn new(
        names: Arc<NameMap>,
        limits: ReplyLimits,
        taken: HashSet<String>,
        host: String,
    ) -> Self {
        Self {
            names,
            limits,
            taken,
            bytes: 0,
            calls: Vec::new(),
            host,
            is_after_text: false,
            sealed: None,
            new: Vec::new(),
            usage: None,
            conversation_id: None,
            finish: None,
        }
    }

    /// Counts bytes that are stored elsewhere until they are complete.
    pub(super) fn count(&mut self, text: &str) -> Result<(), ReplyError> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > self.limits.reply_bytes_max {
            Err(ReplyError::TooLarge("the reply is"))
        } else {
            Ok(())
        }
    }

    /// Begins another text. Texts in a row stay separate contents, because a provider gets them
    /// back in the same parts.
    pub(super) fn begin_text(&mut self) {
        if self.is_after_text {
            self.end_text(Map::new());
        }
    }

    /// Ends a text and adds fields to its record.
    pub(super) fn cited(&mut self, fields: Map<String, Value>) -> Result<(), ReplyError> {
        if self.is_after_text && !fields.is_empty() {
            fields.values().try_for_each(|value| self.count(&value.to_string()))?;
            self.end_text(fields);
        }
        Ok(())
    }

    fn end_text(&mut self, fields: Map<String, Value>) {
        self.is_after_text = false;
        self.new.push(Delta::TextEnd(fields));
    }

    /// Adds text.
    pub(super) fn text(&mut self, text: String) -> Result<(), ReplyError> {
        if text.is_empty() {
            return Ok(());
        }
        self.count(&text)?;
        self.end_sealed();
        self.is_after_text = true;
        self.new.push(Delta::Text(text));
        Ok(())
    }

    /// Adds reasoning that may be shown.
    pub(super) fn thought(&mut self, text: String) -> Result<(), ReplyError> {
        if text.is_empty() {
            return Ok(());
        }
        self.count(&text)?;
        self.is_after_text = false;
        self.new.push(Delta::Reasoning(Reasoning { text, ..Reasoning::default() }));
        Ok(())
    }

    /// Adds a part of the reply that goes back unchanged to the API that it came from.
    pub(super) fn sealed(&mut self, part: Value, api: &str) -> Result<(), ReplyError> {
        self.count(&part.to_string())?;
        self.is_after_text = false;
        let (parts, _) = self.sealed.get_or_insert_with(|| (Vec::new(), api.to_owned()));
        if parts.len() >= SEALED_MAX {
            return Err(ReplyError::TooLarge("the number of parts of the reasoning is"));
        }
        parts.push(part);
        Ok(())
    }

    /// Completes the opaque parts of the latest reasoning.
    fn end_sealed(&mut self) {
        if let Some((parts, api)) = self.sealed.take() {
            let opaque = Some(Value::Array(parts));
            let extra = Map::from_iter([(API.to_owned(), api.into())]);
            self.new.push(Delta::Reasoning(Reasoning { opaque, extra, ..Reasoning::default() }));
        }
    }

    /// Adds a call and returns its number. An unknown id or name is empty.
    pub(super) fn call(&mut self, id: &str, name: &str) -> Result<usize, ReplyError> {
        let number = self.calls.len();
        if number >= self.limits.calls_max {
            return Err(ReplyError::TooLarge("the number of function calls is"));
        }
        self.calls.push(OpenCall::default());
        self.end_sealed();
        self.is_after_text = false;
        self.push_call(number, FunctionCall::default());
        self.label(number, id, name)?;
        Ok(number)
    }

    /// Sets the id and name of a call if they are missing. An id that another call has is ignored.
    pub(super) fn label(&mut self, number: usize, id: &str, name: &str) -> Result<(), ReplyError> {
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

    /// Adds to the arguments of a call.
    pub(super) fn arguments(&mut self, number: usize, text: String) -> Result<(), ReplyError> {
        let Some(call) = self.calls.get_mut(number) else { return Ok(()) };
        if text.is_empty() {
            return Ok(());
        }
        call.argument_bytes = call.argument_bytes.saturating_add(text.len());
        if call.argument_bytes > self.limits.arguments_bytes_max {
            return Err(ReplyError::TooLarge("the arguments of a function call are"));
        }
        self.count(&text)?;
        self.push_call(number, FunctionCall { arguments: text, ..FunctionCall::default() });
        Ok(())
    }

    /// Adds fields of a call that go back to the server. They are complete at the end of the reply.
    pub(super) fn wire_fields(
        &mut self,
        number: usize,
        fields: Map<String, Value>,
    ) -> Result<(), ReplyError> {
        if fields.is_empty() {
            return Ok(());
        }
        fields.values().try_for_each(|value| self.count(&value.to_string()))?;
        let Some(call) = self.calls.get_mut(number) else { return Ok(()) };
        call.wire_fields.extend(fields);
        Ok(())
    }

    /// Returns whether a call has any arguments yet.
    pub(super) fn has_arguments(&self, number: usize) -> bool {
        self.calls.get(number).is_some_and(|call| call.argument_bytes > 0)
    }

    /// Returns whether there are calls.
    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    fn push_call(&mut self, index: usize, call: FunctionCall) {
        // Id and name that become known together go into one delta.
        match self.new.last_mut() {
            Some(Delta::Call { index: last, call: known })
                if *last == index && call.arguments.is_empty() =>
            {
                known.call_id.push_str(&call.call_id);
                known.name.push_str(&call.name);
                known.extra.extend(call.extra);
            }
            _ => self.new.push(Delta::Call { index, call }),
        }
    }

    /// Sets the token usage of the reply, replacing an earlier one.
    pub(super) fn usage(&mut self, usage: TokenUsage) {
        self.usage = Some(usage);
    }

    /// Sets the id of the conversation that the service keeps, if given.
    pub(super) fn conversation(&mut self, id: Option<String>) {
        self.conversation_id = id.or(self.conversation_id.take());
    }

    /// Sets the reason why the model stopped.
    pub(super) fn finish(&mut self, finish: FinishReason) {
        self.finish = Some(finish);
    }

    /// Returns what is new since the last call, if anything.
    pub(super) fn take(&mut self) -> Option<Update> {
        let deltas = std::mem::take(&mut self.new);
        (!deltas.is_empty()).then(|| Update { deltas, ..Update::default() })
    }

    /// Returns the last update. Calls without an id get one.
    pub(super) fn end(&mut self) -> Update {
        self.end_sealed();
        for (index, known) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            let mut call = FunctionCall::default();
            if !known.has_id {
                call.call_id = fresh_id(index);
            }
            if !known.wire_fields.is_empty() {
                call.extra = wire_fields::record(&self.host, &known.wire_fields);
            }
            if call != FunctionCall::default() {
                self.new.push(Delta::Call { index, call });
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
    // Without randomness the number still distinguishes the calls of a reply.
    let _no_matter = getrandom::fill(&mut bytes);
    format!("call_{}{number}", HEXLOWER.encode(&bytes))
}
