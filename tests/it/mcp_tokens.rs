//! Tokens of a remote MCP server, and a user who interrupts twice.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use cofferdam_tests::{binary, shared_cache};
use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::wire::{Signal, send_signal};

/// Time that a refresh takes.
const REFRESH: Duration = Duration::from_millis(700);
/// Time between two signals, which would be one if they came together.
const BETWEEN: Duration = Duration::from_millis(200);

/// Starts a server that is its own authorization server. Returns its origin, and a message for each
/// refresh that begins.
fn start() -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (begun, refreshes) = channel();
    let own = origin.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (origin, begun) = (own.clone(), begun.clone());
            std::thread::spawn(move || answer(stream, &origin, &begun));
        }
    });
    (origin, refreshes)
}

fn answer(mut stream: TcpStream, origin: &str, begun: &Sender<()>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut first)?;
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    reader.take(length).read_to_string(&mut line)?;
    let path = first.split(' ').nth(1).unwrap_or_default();
    let document = if path == "/token" {
        let _ = begun.send(());
        std::thread::sleep(REFRESH);
        json!({"access_token": "a2", "token_type": "Bearer", "refresh_token": "r2"})
    } else if path.starts_with("/.well-known/oauth-protected-resource") {
        json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]})
    } else if path.starts_with("/.well-known/oauth-authorization-server") {
        json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        })
    } else {
        Value::Null
    };
    let status = if document.is_null() { "401 Unauthorized" } else { "200 OK" };
    let body = document.to_string();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: \
         close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn a_refreshed_token_is_stored_by_a_process_that_is_interrupted_twice() {
    let (origin, refreshes) = start();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("cofferdam.toml");
    std::fs::write(&config, format!("[servers.far]\nurl = \"{origin}/mcp\"\noauth = {{}}\n"))
        .unwrap();
    let directory = folder.path().join(".local/state/cofferdam/servers/far");
    std::fs::create_dir_all(&directory).unwrap();
    let key = HEXLOWER.encode(&Sha256::digest(format!("{origin}/mcp")));
    let path = directory.join(format!("{key}.json"));
    let stored = json!({
        "client_id": "registered",
        "token_response": {
            "access_token": "a1", "token_type": "Bearer", "expires_in": 60, "refresh_token": "r1",
        },
        "granted_scopes": [],
        "token_received_at": 1,
        "issuer": origin,
    });
    std::fs::write(&path, stored.to_string()).unwrap();

    let child = Command::new(binary())
        .env_clear()
        .env("HOME", folder.path())
        .env("COFFERDAM_CACHE_DIR", shared_cache())
        .args(["call", "echo", "{}", "--config"])
        .arg(&config)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    refreshes.recv_timeout(Duration::from_secs(60)).unwrap();
    send_signal(child.id(), Signal::INT);
    std::thread::sleep(BETWEEN);
    send_signal(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    let stored: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(stored["token_response"]["refresh_token"], "r2");
}
