//! Sessions of older clients that gateways share.

use serde_json::{Value, json};

use super::{Nats, callers};
use crate::wire::{Answer, Http, LEGACY};

/// Posts a message of a session.
fn post(gateway: &Http, session: Option<&str>, message: &Value) -> Answer {
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    let head = format!("MCP-Protocol-Version: {LEGACY}\r\n{session}");
    gateway.post(&head, message.to_string().as_bytes())
}

fn echo(gateway: &Http, session: &str) -> Answer {
    let params = json!({"name": "echo", "arguments": {"message": "hi"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    post(gateway, Some(session), &call)
}

/// Opens a session. Returns its id.
fn open(gateway: &Http) -> String {
    let params = json!({
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "wire", "version": "1"},
    });
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    let answer = post(gateway, None, &initialize);
    assert_eq!(answer.status, 200, "{answer:?}");
    let session = answer.head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
    });
    let session = session.unwrap_or_else(|| panic!("{answer:?}"));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(gateway, Some(&session), &initialized).status, 202);
    session
}

#[test]
fn any_gateway_serves_a_session() {
    let folder = tempfile::tempdir().unwrap();
    let Some(nats) = Nats::with_jetstream(folder.path()) else { return };
    let _worker = nats.worker(&["served"]);
    let ([ann, bob], config) = callers();
    let gateway = |(_, token): &(&str, String)| {
        let mut gateway = nats.sharing_gateway(&config);
        gateway.token.clone_from(token);
        gateway
    };
    let (first, mut other) = (gateway(&ann), gateway(&bob));
    let session = open(&first);
    // A session belongs to its caller at all gateways.
    assert_eq!(echo(&other, &session).status, 404);
    other.token.clone_from(&ann.1);
    for gateway in [&first, &other, &first] {
        let answer = echo(gateway, &session);
        assert!(answer.status == 200 && answer.body.contains("echoed"), "{answer:?}");
    }
    assert_eq!(echo(&other, "unknown").status, 404);
    drop(first);
    assert_eq!(echo(&other, &session).status, 200);
    // What one gateway ends, later ones do not know.
    let head = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nMcp-Session-Id: \
         {session}\r\nMCP-Protocol-Version: {LEGACY}\r\nConnection: close\r\n\r\n",
        other.address, ann.1,
    );
    let ended = other.send(&head, b"");
    assert!((200..300).contains(&ended.status), "{ended:?}");
    assert_eq!(echo(&gateway(&ann), &session).status, 404);
}
