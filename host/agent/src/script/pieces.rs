//! Splitting of a reply into the pieces in which a provider would stream it.

use crate::{Delta, FunctionCall, Message, MessageContent, Reply, TextContent, Update};

/// Number of characters per piece of arguments.
const FRAGMENT_CHARS: usize = 8;

/// Splits a reply into updates, which combine to the same reply.
pub(super) fn of(reply: Reply) -> Vec<Update> {
    let Reply { messages, usage, conversation_id, finish } = reply;
    let mut calls = 0;
    let mut updates: Vec<_> =
        messages.into_iter().flat_map(|message| of_message(message, &mut calls)).collect();
    updates.push(Update { usage, conversation_id, finish, ..Update::default() });
    updates
}

fn of_message(message: Message, calls: &mut usize) -> Vec<Update> {
    let role = message.role;
    let mut deltas = Vec::new();
    let mut is_after_text = false;
    for content in message.contents {
        let is_text = matches!(content, MessageContent::Text(_));
        match content {
            MessageContent::Text(text) if text.extra.is_empty() => {
                deltas.extend(words(&text, is_after_text))
            }
            MessageContent::FunctionCall(call) => {
                deltas.extend(fragments(call, *calls));
                *calls += 1;
            }
            other => deltas.push(Delta::Content(other)),
        }
        is_after_text = is_text;
    }
    let update = |delta| Update { role: Some(role), deltas: vec![delta], ..Update::default() };
    deltas.into_iter().map(update).collect()
}

/// Splits a text into words. A text that follows another one starts a new content, because the two
/// would be merged otherwise.
fn words(text: &TextContent, is_after_text: bool) -> Vec<Delta> {
    let mut words = text.text.split_inclusive(' ');
    let first = words.next().unwrap_or_default();
    let first = if is_after_text {
        Delta::Content(MessageContent::text(first))
    } else {
        Delta::Text(first.to_owned())
    };
    std::iter::once(first).chain(words.map(|word| Delta::Text(word.to_owned()))).collect()
}

/// Splits a call: first its name, then fragments of its arguments.
fn fragments(mut call: FunctionCall, index: usize) -> Vec<Delta> {
    let arguments: Vec<char> = std::mem::take(&mut call.arguments).chars().collect();
    let piece = |fragment: &[char]| Delta::Call {
        index,
        call: FunctionCall { arguments: fragment.iter().collect(), ..FunctionCall::default() },
    };
    let head = std::iter::once(Delta::Call { index, call });
    head.chain(arguments.chunks(FRAGMENT_CHARS).map(piece)).collect()
}
