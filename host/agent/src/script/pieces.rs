//! A reply in the pieces that a provider would send it in.

use crate::{Content, Delta, FunctionCall, Message, Reply, Text, Update};

/// Characters of arguments in one piece.
const FRAGMENT_CHARS: usize = 8;

/// The updates of a reply. Put together they are the reply again.
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
        let is_text = matches!(content, Content::Text(_));
        match content {
            Content::Text(text) if text.extra.is_empty() => {
                deltas.extend(words(&text, is_after_text))
            }
            Content::FunctionCall(call) => {
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

/// A text word by word. One that follows another text begins as a part of its own, or they would be
/// one.
fn words(text: &Text, is_after_text: bool) -> Vec<Delta> {
    let mut words = text.text.split_inclusive(' ');
    let first = words.next().unwrap_or_default();
    let first = if is_after_text {
        Delta::Content(Content::text(first))
    } else {
        Delta::Text(first.to_owned())
    };
    std::iter::once(first).chain(words.map(|word| Delta::Text(word.to_owned()))).collect()
}

/// A call: its name first, then its arguments bit by bit.
fn fragments(mut call: FunctionCall, index: usize) -> Vec<Delta> {
    let arguments: Vec<char> = std::mem::take(&mut call.arguments).chars().collect();
    let piece = |fragment: &[char]| Delta::Call {
        index,
        call: FunctionCall { arguments: fragment.iter().collect(), ..FunctionCall::default() },
    };
    let head = std::iter::once(Delta::Call { index, call });
    head.chain(arguments.chunks(FRAGMENT_CHARS).map(piece)).collect()
}
