//! One reply of each provider, whole and as events: reasoning, a text, and two calls whose pieces
//! interleave if the API allows it.

use cofferdam_agent::{FinishReason, Message, MessageContent, Reasoning, Reply, Role, TokenUsage};
use serde_json::{Value, json};

use super::{data, named};
use crate::Provider;

pub(super) fn whole(provider: Provider) -> Value {
    match provider {
        Provider::OpenAiChat => json!({
            "id": "x", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "logprobs": null, "message": {
                "role": "assistant", "content": "Both.", "reasoning_content": "Hm.", "refusal": null,
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "echo", "arguments": "{\"t\": \"é\"}"}},
                    {"id": "b", "type": "function", "function": {"name": "broken", "arguments": "{\"a\": "}},
                ],
            }}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
                "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 2}},
        }),
        Provider::OpenAiResponses => response(),
        Provider::Anthropic => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZGF0YQ=="},
                {"type": "text", "text": "Both."},
                {"type": "tool_use", "id": "a", "name": "echo", "input": {"t":"é"}},
                {"type": "tool_use", "id": "b", "name": "none", "input": {}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 5, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1, "output_tokens": 5},
        }),
    }
}

fn response() -> Value {
    json!({
        "id": "resp_1", "object": "response", "status": "completed", "error": null, "incomplete_details": null,
        "output": [
            reasoning_item(),
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Both.", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "echo", "arguments": "{\"t\": \"é\"}"},
            {"type": "function_call", "id": "fc_2", "call_id": "b", "name": "broken", "arguments": "{\"a\": "},
        ],
        "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 3}, "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2}, "total_tokens": 15},
    })
}

fn reasoning_item() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}], "encrypted_content": "ZW5j"})
}

pub(super) fn in_events(provider: Provider) -> String {
    match provider {
        Provider::OpenAiChat => chat_events() + "data: [DONE]\n\n",
        Provider::OpenAiResponses => response_events(),
        Provider::Anthropic => message_events(),
    }
}

fn chat_events() -> String {
    let chunk = |delta: Value| json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let piece = |index: u64, arguments: &str| {
        chunk(json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
    };
    let start = |index: u64, id: &str, name: &str| {
        let function = json!({"name": name, "arguments": ""});
        chunk(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}),
        )
    };
    ": keep-alive\r\n\r\n".to_owned()
        + &data(&[
            chunk(json!({"role": "assistant", "content": "", "reasoning_content": "H"})),
            chunk(json!({"content": null, "reasoning_content": "m."})),
            chunk(json!({"content": "Bo"})),
            chunk(json!({"content": "th."})),
            start(0, "a", "echo"),
            start(1, "b", "broken"),
            piece(1, "{\"a\""),
            piece(0, "{\"t\": "),
            piece(1, ": "),
            piece(0, "\"é\"}"),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
            json!({"choices": [], "usage": whole(Provider::OpenAiChat)["usage"]}),
        ])
}

fn response_events() -> String {
    let item = |kind: &str, index: usize, item: Value| json!({"type": kind, "output_index": index, "item": item});
    let added = |index, value| item("response.output_item.added", index, value);
    let done = |index: usize| {
        item("response.output_item.done", index, response()["output"][index].clone())
    };
    let call = |id: &str, name: &str| json!({"type": "function_call", "call_id": id, "name": name, "arguments": ""});
    let piece = |index: usize, delta: &str| json!({"type": "response.function_call_arguments.delta", "output_index": index, "delta": delta});
    let text = |kind: &str, index: usize, delta: &str| json!({"type": kind, "output_index": index, "delta": delta});
    named(&[
        json!({"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}),
        added(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        json!({"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 0}),
        text("response.reasoning_summary_text.delta", 0, "H"),
        text("response.reasoning_summary_text.delta", 0, "m."),
        done(0),
        added(1, json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []})),
        text("response.output_text.delta", 1, "Bo"),
        text("response.output_text.delta", 1, "th."),
        json!({"type": "response.output_text.done", "output_index": 1, "text": "Both."}),
        done(1),
        added(2, call("a", "echo")),
        added(3, call("b", "broken")),
        piece(3, "{\"a\""),
        piece(2, "{\"t\": "),
        piece(3, ": "),
        piece(2, "\"é\"}"),
        json!({"type": "response.function_call_arguments.done", "output_index": 2, "arguments": "{\"t\": \"é\"}"}),
        done(2),
        done(3),
        json!({"type": "response.something_new", "output_index": 3}),
        json!({"type": "response.completed", "response": response()}),
    ])
}

fn message_events() -> String {
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let call =
        |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    named(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage":
            {"input_tokens": 5, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "H"})),
        delta(0, json!({"type": "thinking_delta", "thinking": "m."})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        start(1, json!({"type": "redacted_thinking", "data": "ZGF0YQ=="})),
        stop(1),
        start(2, json!({"type": "text", "text": ""})),
        delta(2, json!({"type": "text_delta", "text": "Bo"})),
        delta(2, json!({"type": "text_delta", "text": "th."})),
        stop(2),
        start(3, call("a", "echo")),
        delta(3, json!({"type": "input_json_delta", "partial_json": ""})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"t\":"})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "\"é\"}"})),
        stop(3),
        start(4, call("b", "none")),
        stop(4),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ])
}

/// Returns the reply that both forms give.
pub(super) fn expected(provider: Provider) -> Reply {
    let thinking = json!({"type": "thinking", "thinking": "Hm.", "signature": "c2ln"});
    let redacted = json!({"type": "redacted_thinking", "data": "ZGF0YQ=="});
    let (opaque, arguments, second) = match provider {
        Provider::OpenAiChat => (None, "{\"t\": \"é\"}", ("broken", "{\"a\": ")),
        Provider::OpenAiResponses => {
            (Some(json!([reasoning_item()])), "{\"t\": \"é\"}", ("broken", "{\"a\": "))
        }
        Provider::Anthropic => (Some(json!([thinking, redacted])), "{\"t\":\"é\"}", ("none", "{}")),
    };
    let contents = vec![
        MessageContent::Reasoning(Reasoning {
            text: "Hm.".to_owned(),
            extra: opaque.iter().map(|_| ("api".to_owned(), json!(provider.name()))).collect(),
            opaque,
        }),
        MessageContent::text("Both."),
        MessageContent::call("a", "echo", arguments),
        MessageContent::call("b", second.0, second.1),
    ];
    let (cache_write_input, reasoning) =
        if provider == Provider::Anthropic { (1, 0) } else { (3, 2) };
    Reply {
        messages: vec![Message::new(Role::Assistant, contents)],
        usage: Some(TokenUsage {
            input: 10,
            output: 5,
            total: 15,
            cached_input: 4,
            cache_write_input,
            reasoning,
        }),
        conversation_id: None,
        finish: Some(FinishReason::ToolCalls),
    }
}
