//! Tests of streams that are split anywhere or contain anything.

use cofferdam_sse::EventReader;
use proptest::prelude::*;

use super::super::fault::ReplyError;
use super::super::names::NameMap;
use super::super::pieces::Pieces;
use super::super::{Decode, ReplyLimits, anthropic, openai_chat, openai_responses};
use super::{Provider, Reply, ReplyBuilder, conversations};

fn decoder(provider: Provider) -> Box<dyn Decode> {
    match provider {
        Provider::OpenAiChat => Box::new(openai_chat::ChatDecoder::default()),
        Provider::OpenAiResponses => Box::new(openai_responses::ResponsesDecoder::new(false)),
        Provider::Anthropic => Box::new(anthropic::AnthropicDecoder::default()),
    }
}

/// Returns the reply in the bytes, split into these pieces; `None` if the reply is not complete.
fn read(provider: Provider, pieces: &[&[u8]]) -> Result<Option<Reply>, ReplyError> {
    let mut reader = EventReader::new(1 << 20);
    let mut decoder = decoder(provider);
    let mut into = Pieces::new(
        NameMap::new(64).into(),
        ReplyLimits::default(),
        std::collections::HashSet::new(),
        String::new(),
    );
    let mut builder = ReplyBuilder::default();
    for piece in pieces {
        reader.push(piece).unwrap();
        while let Some(event) = reader.next_event() {
            decoder.event(&event, &mut into)?;
            into.take().into_iter().for_each(|update| builder.add(update));
        }
    }
    builder.add(into.end());
    Ok(decoder.is_complete().then(|| builder.build()))
}

#[test]
fn a_stream_that_is_cut_in_two_anywhere_gives_the_same_reply() {
    for provider in Provider::ALL {
        let text = conversations::in_events(provider);
        for at in 0..text.len() {
            let (left, right) = text.as_bytes().split_at(at);
            let reply = read(provider, &[left, right]).unwrap();
            assert_eq!(reply, Some(conversations::expected(provider)), "{provider} cut at {at}");
        }
    }
}

#[test]
fn a_stream_that_comes_byte_by_byte_gives_the_same_reply() {
    for provider in Provider::ALL {
        for line_end in ["\n", "\r\n", "\r"] {
            let text =
                conversations::in_events(provider).replace("\r\n", "\n").replace('\n', line_end);
            let bytes: Vec<_> = text.as_bytes().chunks(1).collect();
            assert_eq!(
                read(provider, &bytes).unwrap(),
                Some(conversations::expected(provider)),
                "{provider}"
            );
        }
    }
}

#[test]
fn what_begins_a_block_counts_against_the_limit_of_the_reply() {
    let long = "x".repeat(1 << 19);
    for block in [
        serde_json::json!({"type": "new_kind", "content": long}),
        serde_json::json!({"type": "tool_use", "id": "1", "name": "f", "input": {"a": long}}),
        serde_json::json!({"type": "text", "text": "", "citations": [long]}),
    ] {
        let events: Vec<_> = (0..40)
            .map(|index| {
                let start = serde_json::json!({"type": "content_block_start", "index": index, "content_block": block});
                format!("event: content_block_start\ndata: {start}\n\n")
            })
            .collect();
        let pieces: Vec<_> = events.iter().map(String::as_bytes).collect();
        let ended = read(Provider::Anthropic, &pieces);
        assert!(matches!(ended, Err(ReplyError::TooLarge(_))), "{}", block["type"]);
    }
}

#[test]
fn parts_of_reasoning_reach_the_caller_once() {
    let mut pieces = Pieces::new(
        NameMap::new(64).into(),
        ReplyLimits::default(),
        std::collections::HashSet::new(),
        String::new(),
    );
    let mut parts = 0;
    for number in 0..100 {
        pieces.sealed(number.into(), "api").unwrap();
        parts += pieces.take().map_or(0, |update| update.deltas.len());
    }
    assert_eq!((parts, pieces.end().deltas.len()), (0, 1));
}

proptest! {
    #[test]
    fn a_stream_in_any_pieces_gives_the_same_reply(cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        for provider in Provider::ALL {
            let text = conversations::in_events(provider);
            let mut at: Vec<_> = cuts.iter().map(|cut| cut.index(text.len())).collect();
            at.sort_unstable();
            let ends = at.iter().copied().chain([text.len()]);
            let starts = [0].into_iter().chain(at.iter().copied());
            let pieces: Vec<_> = starts.zip(ends).map(|(start, end)| &text.as_bytes()[start..end]).collect();
            prop_assert_eq!(read(provider, &pieces).unwrap(), Some(conversations::expected(provider)));
        }
    }

    #[test]
    fn no_bytes_do_harm(
        at in any::<prop::sample::Index>(),
        removed in 0_usize..40,
        put in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        for provider in Provider::ALL {
            let mut bytes = conversations::in_events(provider).into_bytes();
            let at = at.index(bytes.len());
            let end = (at + removed).min(bytes.len());
            bytes.splice(at..end, put.iter().copied());
            // Any result is fine; the property is that reading ends.
            let _any = read(provider, &[&bytes]);
        }
    }

    #[test]
    fn a_body_may_be_anything(text in "[\\[\\]{}\",:a-z0-9 ]{0,60}|\\PC{0,60}") {
        for provider in Provider::ALL {
            let mut into = Pieces::new(NameMap::new(64).into(), ReplyLimits::default(), std::collections::HashSet::new(), String::new());
            if let Ok(fields) = super::super::fault::checked(&text) {
                let _any = decoder(provider).whole(&fields, &mut into);
            }
        }
    }
}
