//! A plain `tools/call`, read in one go.
//!
//! The SDK reads a message into a tree and tries one type of request after the other on it, each of which fails with a text of
//! its own. Here is one type, which refuses what it does not know: then the line is the SDK's to read, so that nothing is taken
//! or refused that the SDK would not.

use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest,
    JsonObject, JsonRpcVersion2_0, MetaObject, RequestId, RequestMetaObject,
};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    params: Params,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    name: String,
    arguments: Option<JsonObject>,
    #[serde(rename = "_meta")]
    meta: Option<JsonObject>,
}

/// The message in a line if it is such a call, and nothing else.
pub(super) fn read(line: &[u8]) -> Option<ClientJsonRpcMessage> {
    let call: Call = serde_json::from_slice(line).ok()?;
    let mut params = CallToolRequestParams::new(call.params.name);
    params.arguments = call.params.arguments;
    let mut request = CallToolRequest::new(params);
    if let Some(meta) = call.params.meta {
        request.extensions.insert(RequestMetaObject(MetaObject(meta)));
    }
    Some(ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(request), call.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_sdk(line: &str) -> Option<ClientJsonRpcMessage> {
        serde_json::from_str(line).ok()
    }

    fn shown(message: Option<ClientJsonRpcMessage>) -> String {
        format!("{message:?}")
    }

    #[test]
    fn a_call_is_what_the_sdk_reads() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t","arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":-7,"method":"tools/call","params":{"name":"t","arguments":null,"_meta":null}}"#,
            r#"{"params":{"_meta":{"progressToken":3},"name":"\u0074"},"method":"tools\/call","id":2.0,"jsonrpc":"2.0"}"#,
            concat!(
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"#,
                r#""b":[1,-1,1.50,1e3,18446744073709551615,18446744073709551616,-0,null],"a":{"x":"é\n"},"b":2},"#,
                r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","k":{"k":[true]}}}}"#,
            ),
            "  {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}}\r\n",
        ] {
            let read = read(line.as_bytes());
            assert!(read.is_some(), "{line}");
            assert_eq!(shown(read), shown(by_sdk(line)), "{line}");
        }
    }

    #[test]
    fn anything_else_is_left_to_the_sdk() {
        for line in [
            "",
            "{}",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"tools/call","params":{"name":"t"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","name":"u"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","requestState":"s"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","other":1}}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}]"#,
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}} x",
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}}",
        ] {
            assert!(read(line.as_bytes()).is_none(), "{line}");
        }
    }
}
