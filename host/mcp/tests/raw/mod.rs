//! Byte-level requests: preflight requests of browsers, malformed heads, and clients with many
//! connections.

use super::*;

/// Response: status, head in lower case, and body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Running {
    /// Sends bytes on a new connection and reads until it is closed.
    async fn raw(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer))
            .await
            .unwrap()
            .unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status =
            head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// Posts a body. `head` contains header lines in addition to those of every request.
    async fn post(&self, head: &str, body: &str) -> Answer {
        let (address, length) = (self.address, body.len());
        self.raw(&format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: \
             close\r\n{head}\r\n{body}"
        ))
        .await
    }

    /// Sends the CORS preflight of a page that acts as an MCP client.
    async fn preflight(&self, origin: &str) -> Answer {
        let address = self.address;
        self.raw(&format!(
            "OPTIONS /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAccept: */*\r\nOrigin: {origin}\r\n\
             Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: \
             authorization,content-type,mcp-method,mcp-protocol-version\r\nAccess-Control-Request-Private-Network: \
             true\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Site: cross-site\r\n\r\n"
        ))
        .await
    }

    /// Opens a session of a session-based revision and returns its id.
    async fn session(&self, token: &str, revision: &str) -> Result<String, u16> {
        let parameters = json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": parameters});
        let answer =
            self.post(&format!("Authorization: Bearer {token}\r\n"), &body.to_string()).await;
        let id = answer
            .head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "))
            .map(str::to_owned);
        id.ok_or(answer.status)
    }
}

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const MODERN: &str = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";

fn with_page() -> HttpOptions {
    HttpOptions { origins: vec!["https://app.example:443".to_owned()], ..with_tokens() }
}

#[tokio::test]
async fn a_page_that_may_call_can() {
    let server = Running::start(with_page()).await;
    let asked = server.preflight("https://app.example").await;
    assert_eq!((asked.status, asked.body.as_str()), (204, ""), "{}", asked.head);
    for line in [
        "access-control-allow-origin: https://app.example",
        "access-control-allow-methods: get, post, delete",
        "access-control-allow-headers: authorization,content-type,mcp-method,mcp-protocol-version",
        "access-control-allow-private-network: true",
        "vary: origin",
    ] {
        assert!(asked.head.contains(line), "{line}: {}", asked.head);
    }
    assert!(!asked.head.contains("allow-credentials"), "{}", asked.head);
    // `fetch` without options sends `*/*`.
    let page = format!("{MODERN}Origin: https://app.example\r\nAccept: */*\r\n");
    let listed = server.post(&format!("{page}Authorization: Bearer {TOKEN}\r\n"), LIST).await;
    assert_eq!(listed.status, 200, "{} {}", listed.head, listed.body);
    assert!(
        listed.head.contains("access-control-allow-origin: https://app.example"),
        "{}",
        listed.head
    );
    assert!(
        listed.head.contains("access-control-expose-headers: mcp-session-id"),
        "{}",
        listed.head
    );
    // The page must be able to read why its request is refused.
    let refused = server.post(&page, LIST).await;
    assert_eq!(refused.status, 401);
    assert!(
        refused.head.contains("access-control-allow-origin: https://app.example"),
        "{}",
        refused.head
    );
    assert!(refused.head.contains("www-authenticate"), "{}", refused.head);
}

#[tokio::test]
async fn other_pages_receive_nothing() {
    let server = Running::start(with_page()).await;
    for origin in ["https://evil.example", "http://app.example", "https://app.example:444", "null"]
    {
        let asked = server.preflight(origin).await;
        assert!((400..500).contains(&asked.status), "{origin}: {}", asked.head);
        assert!(!asked.head.contains("access-control"), "{origin}: {}", asked.head);
        let head = format!("{MODERN}Origin: {origin}\r\nAuthorization: Bearer {TOKEN}\r\n");
        let called = server.post(&head, LIST).await;
        assert_eq!(called.status, 403, "{origin}");
        assert!(!called.head.contains("access-control"), "{origin}: {}", called.head);
    }
    let program = server.post(&format!("{MODERN}Authorization: Bearer {TOKEN}\r\n"), LIST).await;
    assert_eq!(program.status, 200, "no `Accept`: {}", program.body);
    assert!(!program.head.contains("access-control"), "{}", program.head);
    // A rebound host name is not one of the server's names, whichever page asks.
    let rebound = "OPTIONS /mcp HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\nOrigin: https://app.example\r\n\
                   Access-Control-Request-Method: POST\r\n\r\n";
    let rebound = server.raw(rebound).await;
    assert_eq!(rebound.status, 403, "{}", rebound.head);
    assert!(!rebound.head.contains("access-control-allow-methods"), "{}", rebound.head);
}

#[tokio::test]
async fn a_request_names_its_host_once() {
    let server = Running::start(open()).await;
    let address = server.address;
    let rest = format!(
        "Connection: close\r\nContent-Type: application/json\r\n{MODERN}Content-Length: \
         {}\r\n\r\n{LIST}",
        LIST.len()
    );
    for (status, head) in [
        (200, format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\n")),
        (200, format!("POST http://{address}/mcp HTTP/1.1\r\nHost: {address}\r\n")),
        (400, format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nHost: evil.example\r\n")),
        (400, format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nHost: {address}\r\n")),
        (400, "POST /mcp HTTP/1.1\r\n".to_owned()),
        (400, format!("POST http://evil.example/mcp HTTP/1.1\r\nHost: {address}\r\n")),
        (403, "POST http://evil.example/mcp HTTP/1.1\r\nHost: evil.example\r\n".to_owned()),
    ] {
        let answer = server.raw(&format!("{head}{rest}")).await;
        assert_eq!(answer.status, status, "{head}: {}", answer.head);
    }
    // Two lengths: the part that a proxy may take for a second request is never read.
    let smuggled = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let two = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{MODERN}Content-Length: \
         6\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{LIST}\r\n0\r\n\r\n{smuggled}",
        LIST.len()
    );
    let answer = server.raw(&two).await;
    assert!(answer.head.contains("connection: close"), "{}", answer.head);
    assert!(!answer.body.contains("HTTP/1.1"), "one answer: {}", answer.body);
}

#[tokio::test]
async fn silent_connections_do_not_hold_up_others() {
    let server = Running::start(with_tokens()).await;
    let mut silent = Vec::new();
    for number in 0..520 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        if number % 2 == 0 {
            stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: 127").await.unwrap();
        }
        silent.push(stream);
    }
    let honest = server.list(Some(TOKEN));
    let answer = tokio::time::timeout(Duration::from_secs(1), honest)
        .await
        .expect("an answer within a second");
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test]
async fn one_principal_cannot_take_all_sessions() {
    let server =
        Running::start(HttpOptions { rate: Rate { per_second: 0.0, burst: 0.0 }, ..with_tokens() })
            .await;
    let mut ids = Vec::new();
    let refused = loop {
        match server.session(TOKEN, "2025-11-25").await {
            Ok(id) => ids.push(id),
            Err(status) => break status,
        }
        assert!(ids.len() <= 250);
    };
    assert_eq!((refused, ids.len()), (503, 250));
    assert!(server.session(NARROW, "2025-11-25").await.is_ok(), "another principal has a share");
    assert_eq!(server.list(Some(TOKEN)).await.status(), StatusCode::OK, "no session is needed");
    // A session belongs to the principal that opened it.
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let with =
        |token: &str| format!("Authorization: Bearer {token}\r\nMcp-Session-Id: {}\r\n", ids[0]);
    let foreign = server.post(&with(NARROW), ping).await;
    let unknown =
        format!("Authorization: Bearer {NARROW}\r\nMcp-Session-Id: {}\r\n", "0".repeat(32));
    let unknown = server.post(&unknown, ping).await;
    assert_eq!((foreign.status, &foreign.body), (404, &unknown.body));
    assert!(foreign.body.contains("-32600"), "{}", foreign.body);
    let delete = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}\r\n",
        server.address,
        with(NARROW)
    );
    assert_eq!(server.raw(&delete).await.status, 404);
    assert_eq!(server.post(&with(TOKEN), ping).await.status, 200);
}

#[tokio::test]
async fn a_batch_of_the_revision_that_has_them_is_answered() {
    let server = Running::start(with_tokens()).await;
    let id = server.session(TOKEN, "2025-03-26").await.unwrap();
    let head = format!("Authorization: Bearer {TOKEN}\r\nMcp-Session-Id: {id}\r\n");
    let batch = r#" [{"jsonrpc":"2.0","method":"notifications/initialized"},
        {"jsonrpc":"2.0","id":"a","method":"ping"},
        {"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"who_red","arguments":{}}}]"#;
    let answer = server.post(&head, batch).await;
    assert_eq!(answer.status, 200, "{} {}", answer.head, answer.body);
    assert!(
        answer.body.contains(r#""id":"a""#) && answer.body.contains(r#""id":"b""#),
        "{}",
        answer.body
    );
    assert!(answer.body.contains("red"), "{}", answer.body);
    let notified =
        server.post(&head, r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#).await;
    assert_eq!((notified.status, notified.body.as_str()), (202, ""));
    let newer = server.post(&format!("{head}MCP-Protocol-Version: 2025-11-25\r\n"), batch).await;
    assert_eq!(newer.status, 400);
    assert!(newer.body.contains("2025-03-26"), "{}", newer.body);
    assert_eq!(server.post(&head, "[]").await.status, 400);
}
