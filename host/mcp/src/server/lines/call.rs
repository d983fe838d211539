//! Parser for plain `tools/call` requests.
//!
//! The SDK reads a message into a tree and then tries one request type after the other, each of
//! which fails with its own error message. This parser tries a single type and rejects everything
//! unknown; the SDK then parses the line, so that no line is accepted or rejected that the SDK
//! would treat differently.

use std::fmt;
use std::marker::PhantomData;

use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, ClientJsonRpcMessage,
    ClientRequest, JsonObject, JsonRpcVersion2_0, MetaObject, RequestId, RequestMetaObject,
};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallLine {
    #[serde(rename = "jsonrpc")]
    _version: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    params: ObjectValue<Params>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    name: String,
    arguments: Option<JsonObject>,
    #[serde(rename = "_meta")]
    meta: Option<JsonObject>,
}

/// Value that must be a JSON object: serde would also accept a list of the members' values.
struct ObjectValue<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ObjectValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CallMembers(PhantomData))
    }
}

struct CallMembers<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for CallMembers<T> {
    type Value = ObjectValue<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(ObjectValue)
    }
}

/// Parses a line that is a plain `tools/call`. Returns `None` for any other line.
pub(super) fn read(line: &[u8]) -> Option<ClientJsonRpcMessage> {
    let ObjectValue(call): ObjectValue<CallLine> = serde_json::from_slice(line).ok()?;
    let ObjectValue(read) = call.params;
    let mut params = CallToolRequestParams::new(read.name);
    params.arguments = read.arguments;
    let mut request = CallToolRequest::new(params);
    if let Some(meta) = read.meta {
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
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}} \
             x",
            r#"["2.0",1,"tools/call",{"name":"t"}]"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["t",{},{}]}"#,
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}}",
        ] {
            assert!(read(line.as_bytes()).is_none(), "{line}");
        }
    }
}
