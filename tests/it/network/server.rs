//! HTTP server on loopback, written by hand: no library would send most of its answers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;

/// Requests and connections that a server has seen.
#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<String>>,
    open: AtomicUsize,
    open_most: AtomicUsize,
}

pub(crate) struct Server {
    pub(super) address: SocketAddr,
    seen: Arc<Seen>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::listen(None).await
    }

    /// Starts a server with a certificate for `name`. Returns it and the certificate of the
    /// authority that signed it.
    pub(crate) async fn start_tls(name: &str) -> (Self, Vec<u8>) {
        let authority_key = rcgen::KeyPair::generate().unwrap();
        let mut authority = rcgen::CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
        let issuer = rcgen::Issuer::new(authority, authority_key);
        let key = rcgen::KeyPair::generate().unwrap();
        let leaf = rcgen::CertificateParams::new(vec![name.to_owned()])
            .unwrap()
            .signed_by(&key, &issuer)
            .unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key.serialize_der().try_into().unwrap())
            .unwrap();
        (Self::listen(Some(TlsAcceptor::from(Arc::new(config)))).await, authority_pem.into_bytes())
    }

    async fn listen(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let shared = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, tls) = (Arc::clone(&shared), tls.clone());
                tokio::spawn(async move {
                    let open = seen.open.fetch_add(1, Ordering::SeqCst) + 1;
                    seen.open_most.fetch_max(open, Ordering::SeqCst);
                    match tls {
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, &seen).await;
                            }
                        }
                        None => serve(stream, &seen).await,
                    }
                    seen.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, seen, task }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns a URL of this server by its address.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns all requests, heads and bodies byte for byte.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.requests.lock().unwrap().clone()
    }

    /// Returns the maximum number of connections that were open at once.
    pub(crate) fn open_most(&self) -> usize {
        self.seen.open_most.load(Ordering::SeqCst)
    }

    /// Waits until `count` connections are open.
    pub(super) async fn open_becomes(&self, count: usize) {
        let waited = tokio::time::timeout(Duration::from_secs(10), async {
            while self.seen.open.load(Ordering::SeqCst) != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        waited.await.unwrap_or_else(|_| {
            panic!("{} connections are open", self.seen.open.load(Ordering::SeqCst))
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, seen: &Seen) {
    let mut stream = BufReader::new(stream);
    let Some(head) = read_head(&mut stream).await else { return };
    let path = head.split([' ', '?']).nth(1).unwrap_or("/").to_owned();
    let body = if path == "/early" { String::new() } else { read_body(&mut stream, &head).await };
    let request = format!("{head}{body}");
    seen.requests.lock().unwrap().push(request.clone());
    // A client that disconnects ends the answer.
    let _ = answer(&mut stream, &path, &request).await;
    let _ = stream.shutdown().await;
}

async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

/// Reads the body by its length or its chunks; chunks stay encoded.
async fn read_body(stream: &mut (impl AsyncBufRead + Unpin), head: &str) -> String {
    let head = head.to_ascii_lowercase();
    let mut body = Vec::new();
    if head.contains("transfer-encoding: chunked") {
        // A client that disconnects ends the body.
        let _ = read_chunks(stream, &mut body).await;
    } else if let Some(length) = head.split("content-length: ").nth(1) {
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        body.resize(length, 0);
        if stream.read_exact(&mut body).await.is_err() {
            return "cut off".to_owned();
        }
    }
    String::from_utf8_lossy(&body).into_owned()
}

async fn read_chunks(
    stream: &mut (impl AsyncBufRead + Unpin),
    body: &mut Vec<u8>,
) -> std::io::Result<()> {
    loop {
        let start = body.len();
        stream.read_until(b'\n', body).await?;
        let Some(size) = chunk_size(&body[start..]) else { return Ok(()) };
        if size == 0 {
            break;
        }
        let start = body.len();
        body.resize(start + size + 2, 0);
        stream.read_exact(&mut body[start..]).await?;
    }
    // Trailers, up to the empty line.
    while stream.read_until(b'\n', body).await? > 2 {}
    Ok(())
}

/// Returns the size in the line before a chunk.
fn chunk_size(line: &[u8]) -> Option<usize> {
    usize::from_str_radix(std::str::from_utf8(line).ok()?.trim(), 16).ok()
}

/// Returns a body without the encoding of its chunks.
fn decoded(head: &str, body: &str) -> String {
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let (mut rest, mut decoded) = (body, String::new());
    while let Some((line, after)) = rest.split_once("\r\n") {
        match chunk_size(line.as_bytes()) {
            Some(size) if size > 0 => {
                decoded.push_str(&after[..size]);
                rest = &after[size + 2..];
            }
            _ => break,
        }
    }
    decoded
}

async fn answer(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    path: &str,
    request: &str,
) -> std::io::Result<()> {
    let ok =
        |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let (what, with) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
    let number = || with.parse::<usize>().unwrap();
    match what {
        "echo" => stream.write_all(ok(request).as_bytes()).await,
        "redirect" => {
            let head =
                format!("HTTP/1.1 302 Found\r\nlocation: {with}\r\ncontent-length: 0\r\n\r\n");
            stream.write_all(head.as_bytes()).await
        }
        "large" => {
            stream
                .write_all(
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", number()).as_bytes(),
                )
                .await?;
            stream.write_all(&vec![b'y'; number()]).await
        }
        "endless" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            loop {
                stream.write_all(&[b'y'; 65536]).await?;
            }
        }
        "drip" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            loop {
                stream.write_all(b"y").await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        "stall" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nyy").await?;
            until_closed(stream).await
        }
        "silent" => until_closed(stream).await,
        "slow" => {
            tokio::time::sleep(Duration::from_millis(with.parse().unwrap())).await;
            stream.write_all(ok("late").as_bytes()).await
        }
        "header" => {
            let head = format!(
                "HTTP/1.1 200 OK\r\nx: {}\r\ncontent-length: 0\r\n\r\n",
                "y".repeat(number())
            );
            stream.write_all(head.as_bytes()).await
        }
        "headers" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n").await?;
            for index in 0.. {
                stream.write_all(format!("x-{index}: y\r\n").as_bytes()).await?;
            }
            Ok(())
        }
        "continue" => loop {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        },
        "short" => stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nyy").await,
        "upgrade" => {
            stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\nhello").await
        }
        "nonsense" => stream.write_all(b"220 mail.example ESMTP\r\n").await,
        "zipped" => {
            let head =
                b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nzip!";
            stream.write_all(head).await
        }
        "hop" => {
            let head = b"HTTP/1.1 200 OK\r\nkeep-alive: 5\r\nproxy-authenticate: x\r\nx-other: \
                y\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(head).await
        }
        _ => answer_client(stream, what, with, request).await,
    }
}

/// Answers requests of the conformance plugins.
async fn answer_client(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    what: &str,
    with: &str,
    request: &str,
) -> std::io::Result<()> {
    let (head, body) = request.split_once("\r\n\r\n").unwrap_or((request, ""));
    let (method, target) = head.split_once(' ').unwrap_or((head, ""));
    let given = |name: &str| {
        let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
    };
    let text = |status: &str, media_type: &str, body: &str| {
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if method == "HEAD" { head } else { head + body }
    };
    let plain = |body: &str| text("200 OK", "text/plain; charset=utf-8", body);
    let moved = |status: &str, location: &str| {
        format!("HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
    };
    let response = match what {
        "method" => plain(method),
        "query" => plain(target.split(['?', ' ']).nth(1).unwrap_or("")),
        "given" => plain(&given(with).unwrap_or_else(|| "(none)".to_owned())),
        "json" => text("200 OK", "application/json", r#"{"answer":42}"#),
        "typed" => text("200 OK", &format!("text/{method}"), ""),
        "body" => plain(&decoded(head, body)),
        "count" => plain(&decoded(head, body).len().to_string()),
        "framing" => plain(&given("transfer-encoding").unwrap_or_else(|| "length".to_owned())),
        "chunked" => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\
             4\r\none \r\n4\r\ntwo \r\n5;note=x\r\nthree\r\n0\r\n\r\n"
            .to_owned(),
        "status" if with == "204" => "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        "status" => text(&format!("{with} Failed"), "text/plain", &format!("status {with}")),
        "moved" => {
            let (status, location) = with.split_once('/').unwrap_or((with, ""));
            moved(status, location)
        }
        "near" if with == "end" => plain("near"),
        "near" => moved("302", "../near/end?x"),
        "loop" => moved("302", "/loop"),
        "nothing" => String::new(),
        "gzip" if with == "empty" => {
            "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
                .to_owned()
        }
        "gzip" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 31\r\n\r\n";
            return stream.write_all(&[head.as_bytes(), GZIP].concat()).await;
        }
        _ => "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine".to_owned(),
    };
    stream.write_all(response.as_bytes()).await
}

/// The text `hello, gzip`, compressed.
const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xcbH\xcd\xc9\xc9\xd7QH\xaf\xca,\
    \x00\x00J\x9b\xb1\\\x0b\x00\x00\x00";

async fn until_closed(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<()> {
    while stream.read(&mut [0; 64]).await? > 0 {}
    Ok(())
}
