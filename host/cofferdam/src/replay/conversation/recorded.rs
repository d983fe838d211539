//! Turns of a recorded conversation.
//!
//! A request continues the turn whose last calls it has the results of; every other request begins
//! a turn. Only the first request of a turn is stored whole.

use std::collections::HashMap;

use cofferdam_agent::{FunctionCall, FunctionResult, Message};
use cofferdam_record::{ModelExchange, UtcTime};
use serde_json::Value;

use crate::Result;
use crate::error::Context as _;

/// One turn: from new messages to an answer without calls.
#[derive(Debug)]
pub(super) struct RecordedTurn {
    /// Messages of the first request.
    pub(super) input: Vec<Message>,
    /// Requests of the turn, in order.
    pub(super) steps: Vec<TurnStep>,
}

/// Request to the model, and its reply.
#[derive(Debug)]
pub(super) struct TurnStep {
    /// Time at which the reply was complete.
    pub(super) at: UtcTime,
    /// Results in the request of the calls of the last reply, by call id.
    pub(super) results: HashMap<String, FunctionResult>,
    pub(super) reply: Vec<Message>,
}

impl TurnStep {
    pub(super) fn calls(&self) -> impl Iterator<Item = &FunctionCall> {
        self.reply.iter().flat_map(Message::calls)
    }
}

impl RecordedTurn {
    /// Returns the calls of the turn, in order.
    pub(super) fn calls(&self) -> impl Iterator<Item = &FunctionCall> {
        self.steps.iter().flat_map(TurnStep::calls)
    }

    /// Returns the recorded result of a call.
    pub(super) fn result(&self, call_id: &str) -> Option<&FunctionResult> {
        self.steps.iter().find_map(|step| step.results.get(call_id))
    }

    /// Returns the number of a call in the turn, from 1, with the time of the reply that made it.
    pub(super) fn position(&self, call_id: &str) -> Option<(usize, UtcTime)> {
        let calls = self.steps.iter().flat_map(|step| step.calls().map(|call| (call, step.at)));
        let mut calls = calls.zip(1..);
        calls.find_map(|((call, at), number)| (call.call_id == call_id).then_some((number, at)))
    }

    /// Returns the results that a request has of the calls of the last reply.
    fn continued(&self, request: &[Message]) -> HashMap<String, FunctionResult> {
        let Some(last) = self.steps.last() else { return HashMap::new() };
        let is_asked = |id: &str| last.calls().any(|call| call.call_id == id);
        let results = request.iter().flat_map(Message::results);
        let results = results.filter(|result| is_asked(&result.call_id));
        results.map(|result| (result.call_id.clone(), result.clone())).collect()
    }
}

/// Adds an exchange to the turn that it continues, or as another turn.
pub(super) fn add(
    exchange: ModelExchange,
    at: UtcTime,
    turns: &mut Vec<RecordedTurn>,
) -> Result<()> {
    let (request, reply) = (messages(exchange.request)?, messages(exchange.reply)?);
    for turn in turns.iter_mut().rev() {
        let results = turn.continued(&request);
        if !results.is_empty() {
            turn.steps.push(TurnStep { at, results, reply });
            return Ok(());
        }
    }
    let step = TurnStep { at, results: HashMap::new(), reply };
    turns.push(RecordedTurn { input: request, steps: vec![step] });
    Ok(())
}

fn messages(values: Vec<Value>) -> Result<Vec<Message>> {
    let read = values.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
    read.context("the recorded conversation has a message that cannot be read")
}
