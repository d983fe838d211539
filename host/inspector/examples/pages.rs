//! Time of pages over a log with many calls.
//!
//! `cargo run --release -p cofferdam-inspector --example pages [CALLS]`

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "an example"
)]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use cofferdam_inspector::{Inspector, InspectorOptions};
use cofferdam_record::{RecordOptions, Recorder};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::sink::CallSink;
use cofferdam_tool::{CallContext, Functions, Toolset};
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// Times that each page is requested.
const TIMES: usize = 20;

/// Records calls of two tools in a thousand sessions.
async fn record(calls: usize, recorder: &Arc<Recorder>) {
    let tool = |name| Declaration::new(name, "A tool.", r#"{"type":"object"}"#);
    let functions = Functions::new("samples")
        .with(tool("echo"), async |_, _| Ok(json!("done")))
        .unwrap()
        .with(tool("rare"), async |_, _| Ok(json!("done")))
        .unwrap();
    let mut toolset = Toolset::new();
    toolset.set_sink(Arc::clone(recorder) as Arc<dyn CallSink>);
    toolset.add(Arc::new(functions)).unwrap();
    for index in 0..calls {
        let context = CallContext {
            session: Some(format!("session-{}", index / 1000)),
            ..CallContext::new(format!("call-{index}"))
        };
        let tool = if index % 10_000 == 0 { "rare" } else { "echo" };
        toolset.call(tool, Some(b"{}"), &context).await.unwrap();
    }
}

fn send(address: SocketAddr, start: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "{start} HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\nconnection: close\r\n\
         sec-fetch-site: same-origin\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

#[tokio::main]
async fn main() {
    let calls: usize = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let recorder = Arc::new(Recorder::open(RecordOptions::new(&log)).unwrap());
    let start = Instant::now();
    record(calls, &recorder).await;
    recorder.close();
    println!("{calls} calls recorded in {:?}", start.elapsed());

    let start = Instant::now();
    let any = "127.0.0.1:0".parse().unwrap();
    let (inspector, listener) = Inspector::listen(InspectorOptions::new(log), any).await.unwrap();
    let address = listener.local_addr().unwrap();
    let login = inspector.login_address().unwrap();
    tokio::spawn(async move { inspector.serve(listener, CancellationToken::new()).await });
    let measured = tokio::task::spawn_blocking(move || {
        let (_, key) = login.split_once("#k=").unwrap();
        let headers = "content-type: application/json\r\nx-cofferdam: login\r\n";
        let answer = send(address, "POST /session", headers, &json!({ "key": key }).to_string());
        let (_, cookie) = answer.split_once("set-cookie: ").unwrap();
        let cookie = format!("cookie: {}\r\n", cookie.split(';').next().unwrap());
        let first = send(address, "GET /", &cookie, "");
        println!("start, login and first page: {:?}", start.elapsed());
        let (before, _) = first.split_once("\">Older</a>").unwrap();
        let second = before.rsplit("href=\"").next().unwrap().replace("&amp;", "&");
        let middle = format!("/?session=session-{}", calls / 2000);
        let session = format!("/session?name=session-{}", calls / 2000);
        let (_, call) = first.split_once("href=\"/call/").unwrap();
        let call = format!("/call/{}", call.split('"').next().unwrap());
        let pages = [
            "/",
            &second,
            &middle,
            "/?tool=rare",
            "/?outcome=error",
            &call,
            "/tools?since=all",
            "/plugins?since=all",
            "/sessions?since=all",
            &session,
            "/grants",
            "/events?since=all",
            "/health",
        ];
        for path in pages {
            let mut times = Vec::new();
            let start = Instant::now();
            send(address, &format!("GET {path}"), &cookie, "");
            let once = start.elapsed();
            for _ in 0..TIMES {
                let start = Instant::now();
                send(address, &format!("GET {path}"), &cookie, "");
                times.push(start.elapsed());
            }
            times.sort_unstable();
            let (median, longest) = (times[TIMES / 2], times[TIMES - 1]);
            println!("{path}: first {once:?}, then median {median:?}, longest {longest:?}");
        }
    });
    measured.await.unwrap();
}
