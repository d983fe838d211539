//! Any bytes as the lines of an MCP client: the server answers in lines of JSON-RPC and ends with
//! its input.

use std::io::Cursor;
use std::sync::Arc;

use cofferdam_mcp::{Offer, Server, ServerOptions};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Arguments, CallContext, Functions, Toolset};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

/// Maximum bytes of the answers.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Serves one client that sends the bytes and closes its end.
pub(crate) fn check(bytes: &[u8]) {
    let input = Cursor::new(bytes.to_vec());
    let answered = super::block_on(async {
        let server = Server::new(offer(), ServerOptions::default()).expect("random numbers");
        let (output, mut answers) = tokio::io::duplex(ANSWER_BYTES_MAX);
        let mut answered = Vec::new();
        let serving = server.serve_stream(input, output, CancellationToken::new());
        let (_served, read) = tokio::join!(serving, answers.read_to_end(&mut answered));
        read.expect("a pipe can be read");
        answered
    });
    let answered = String::from_utf8(answered).expect("answers are text");
    for line in answered.lines() {
        let message: Value = serde_json::from_str(line).expect("an answer is JSON");
        let messages = message.as_array().map_or(std::slice::from_ref(&message), Vec::as_slice);
        assert!(messages.iter().all(|message| message["jsonrpc"] == "2.0"), "no JSON-RPC: {line}");
    }
}

/// Offers a tool that returns its arguments.
fn offer() -> Offer {
    let schema = r#"{"properties":{"text":{"type":"string"},"count":{"type":"integer"}}}"#;
    let declaration = Declaration::new("echo", "Returns its arguments.", schema);
    let echo =
        async |arguments: Arguments, _: CallContext| Ok(json!({"arguments": arguments.to_json()}));
    let tools =
        Functions::new("fuzz").with(declaration, echo).expect("the declaration is constant");
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(tools)).expect("one source");
    Offer { toolset, ..Offer::default() }
}
