//! `/healthz` and `/metrics` of `serve`, and spans that are sent to a collector.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::cli_skills;
use crate::wire::{Pipe, command};

/// Maximum time of a request or of a span on its way.
const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a collector and returns its address and the bodies that it receives.
fn collector() -> (SocketAddr, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            while let Some(body) = export_request(&connection) {
                (&connection).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
                if send.send(body).is_err() {
                    return;
                }
            }
        }
    });
    (address, receive)
}

/// Reads a request of a connection and returns its body.
fn export_request(connection: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(connection);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&lower);
    }
    assert!(head.starts_with("post /v1/traces http/1.1"), "{head}");
    assert!(head.contains("authorization: bearer of-the-collector"), "{head}");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut text = String::new();
    GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

/// Returns the names of the spans of a request.
fn names(body: &Value) -> Vec<String> {
    let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
    spans.as_array().unwrap().iter().map(|span| span["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until a server or a worker says where its pages are, and returns their address.
pub(crate) fn address(pipe: &Pipe) -> SocketAddr {
    let said = pipe.has_said("health and metrics are at http://");
    said.split("http://").nth(1).unwrap().split('/').next().unwrap().parse().unwrap()
}

pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Writes a configuration whose log is in `folder` and is sent to a collector.
fn configuration(folder: &Path, collector: SocketAddr) -> String {
    let text = format!(
        "[records]\ndirectory = \"records\"\n[records.otlp]\nurl = \"http://{collector}\"\n\
         headers = {{ authorization = {{ env = \"COLLECTOR\" }} }}\n"
    );
    let path = folder.join("cofferdam.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_server_shows_its_health_and_counts_and_sends_spans() {
    let folder = tempfile::tempdir().unwrap();
    let (collector, spans) = collector();
    let config = configuration(folder.path(), collector);
    let flags = ["--config", &config, "--monitoring", "127.0.0.1:0"];
    let mut serving = command(&["text"], &flags);
    serving.env("COLLECTOR", "bearer of-the-collector");
    let mut pipe = Pipe::of(&mut serving);
    let address = address(&pipe);
    pipe.call("word_count", json!({"text": "a b"}));
    pipe.call("word_count", json!({"words": "a b"}));
    let health = get(address, "/healthz");
    assert!(health.starts_with("HTTP/1.1 200 OK"), "{health}");
    assert!(health.contains("the call log is written"), "{health}");
    let metrics = get(address, "/metrics");
    let counted = "cofferdam_calls_total{plugin=\"text\",tool=\"word_count\",outcome=\"ok\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    assert!(metrics.contains("text/plain; version=0.0.4"), "{metrics}");
    assert!(get(address, "/").starts_with("HTTP/1.1 404"));
    let body = spans.recv_timeout(PATIENCE).expect("a span arrives while the server runs");
    assert!(names(&body).contains(&"execute_tool word_count".to_owned()), "{body}");
    let (code, errors, _) = pipe.end();
    assert_eq!(code, Some(0), "{errors:?}");
    // What is in the log can be sent again, with the address and the key of the configuration.
    let mut export =
        cli_skills::command(folder.path(), &["log", "export", "--config", &config, "--otlp"]);
    let output = export.env("COLLECTOR", "bearer of-the-collector").output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{errors}");
    assert!(errors.contains("sent"), "{errors}");
    assert!(!names(&spans.recv_timeout(PATIENCE).unwrap()).is_empty());
}
