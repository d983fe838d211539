//! Pairing of results with calls.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::{FunctionCall, FunctionResult, Message, MessageContent};

/// Position of a content: the index of its message, and its index in the message.
pub type Position = (usize, usize);

/// Calls and their results, paired by position.
///
/// Call ids are not unique: a model may reuse one in a later turn, and a conversation may contain
/// calls that were never made. A result therefore belongs to the nearest message before it that has
/// an unanswered call with its id, and never to a later call. Several calls of one message with the
/// same id take their results in order.
#[derive(Default)]
pub struct Pairing {
    result_of: HashMap<Position, Position>,
    /// Calls and results of one message: the service made these calls (`LOOP-6`).
    of_service: HashMap<Position, Position>,
    /// Results of those calls.
    results_of_service: HashSet<Position>,
    /// Results without a call.
    unmatched: HashSet<Position>,
}

impl Pairing {
    /// Pairs the calls and results of `messages`.
    pub fn of(messages: &[Arc<Message>]) -> Self {
        let mut pairing = Self::default();
        // Unanswered calls by id: the nearest message last, and within a message its first call
        // last.
        let mut open: HashMap<&str, Vec<Vec<Position>>> = HashMap::new();
        for (index, message) in messages.iter().enumerate() {
            for (content_index, content) in message.contents.iter().enumerate().rev() {
                let MessageContent::FunctionCall(call) = content else { continue };
                let of_id = open.entry(&call.call_id).or_default();
                match of_id.last_mut().filter(|calls| calls.first().is_some_and(|at| at.0 == index))
                {
                    Some(calls) => calls.push((index, content_index)),
                    None => of_id.push(vec![(index, content_index)]),
                }
            }
            for (content_index, content) in message.contents.iter().enumerate() {
                let MessageContent::FunctionResult(result) = content else { continue };
                let result_at = (index, content_index);
                match take(open.get_mut(result.call_id.as_str())) {
                    Some(call_at) if call_at.0 == index => {
                        pairing.of_service.insert(call_at, result_at);
                        pairing.results_of_service.insert(result_at);
                    }
                    Some(call_at) => {
                        pairing.result_of.insert(call_at, result_at);
                    }
                    None => {
                        pairing.unmatched.insert(result_at);
                    }
                }
            }
        }
        pairing
    }

    /// Returns the result of a call that is in another message than the call.
    pub(crate) fn result<'m>(
        &self,
        messages: &'m [Arc<Message>],
        call_at: Position,
    ) -> Option<&'m FunctionResult> {
        let at = self.result_of.get(&call_at)?;
        messages.get(at.0)?.contents.get(at.1)?.as_result()
    }

    /// Returns the position of the result of a call, in the call's message or in another one.
    pub fn result_at(&self, call_at: Position) -> Option<Position> {
        self.result_of.get(&call_at).or_else(|| self.of_service.get(&call_at)).copied()
    }

    /// Returns whether the service made the call at this position.
    pub(crate) fn is_of_service(&self, call_at: Position) -> bool {
        self.of_service.contains_key(&call_at)
    }

    /// Returns whether the result at this position stays where it is: next to its call, or without
    /// one if the service keeps the conversation and therefore the call.
    pub(crate) fn stays(&self, result_at: Position, is_stored_by_service: bool) -> bool {
        self.results_of_service.contains(&result_at)
            || is_stored_by_service && self.unmatched.contains(&result_at)
    }

    /// Returns whether the nearest call with an id, in the message at `index` or before it, has a
    /// result.
    pub(crate) fn is_answered(
        &self,
        messages: &[Arc<Message>],
        index: usize,
        call_id: &str,
    ) -> bool {
        let earlier = messages.iter().enumerate().take(index.saturating_add(1)).rev();
        let mut calls = earlier.flat_map(|(index, message)| {
            let calls = message.contents.iter().enumerate().filter(|(_, content)| {
                content.as_call().is_some_and(|call| call.call_id == call_id)
            });
            calls.map(move |(content_index, _)| (index, content_index))
        });
        calls.next().is_some_and(|at| self.result_of.contains_key(&at) || self.is_of_service(at))
    }

    /// Returns the calls that have a result, in call order.
    pub fn answered<'m>(
        &self,
        messages: &'m [Arc<Message>],
    ) -> Vec<(&'m FunctionCall, &'m FunctionResult)> {
        let content = |at: Position| messages.get(at.0)?.contents.get(at.1);
        let mut positions: Vec<_> = self.result_of.iter().chain(&self.of_service).collect();
        positions.sort_unstable();
        let pairs = positions.into_iter().filter_map(|(call_at, result_at)| {
            Some((content(*call_at)?.as_call()?, content(*result_at)?.as_result()?))
        });
        pairs.collect()
    }

    /// Returns whether one message contains all of these calls, none of them with a result.
    pub(crate) fn holds_open<'c>(
        &self,
        messages: &[Arc<Message>],
        calls: impl Iterator<Item = &'c FunctionCall> + Clone,
    ) -> bool {
        messages.iter().enumerate().any(|(index, message)| {
            calls.clone().all(|wanted| {
                message.contents.iter().enumerate().any(|(content_index, content)| {
                    let is_wanted = |call: &FunctionCall| {
                        call.call_id == wanted.call_id && call.name == wanted.name
                    };
                    content.as_call().is_some_and(is_wanted)
                        && !self.result_of.contains_key(&(index, content_index))
                        && !self.is_of_service((index, content_index))
                })
            })
        })
    }
}

/// Removes and returns the call that the next result of an id belongs to.
fn take(open: Option<&mut Vec<Vec<Position>>>) -> Option<Position> {
    let of_id = open?;
    let nearest = of_id.last_mut()?;
    let call_at = nearest.pop();
    if nearest.is_empty() {
        of_id.pop();
    }
    call_at
}
