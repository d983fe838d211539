//! Registry for tests: keeps artifacts in memory, speaks plain HTTP on this machine, and can be
//! made to misbehave.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use data_encoding::BASE64;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::manifest::{Document, INDEX_TYPE, MANIFEST_TYPE};
use crate::{Descriptor, Digest, WasmArtifact};

/// Maximum size of the head of a request in bytes.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Token that the registry gives out.
const TOKEN: &str = "token-of-the-test-registry";

/// A request that the registry has received.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method.
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Headers, with names in lower case.
    pub headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// Response of the registry.
#[derive(Debug, Clone)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: ReplyBody,
}

/// Body of a response.
#[derive(Debug, Clone)]
enum ReplyBody {
    Whole(Vec<u8>),
    /// The connection closes after the first part of the body.
    Cut {
        sent: Vec<u8>,
        length: usize,
    },
    /// The body never ends.
    Endless,
}

/// Decides about a request before the registry does.
type Interceptor = Box<dyn Fn(&Request) -> Option<Reply> + Send + Sync>;

#[derive(Default)]
struct State {
    blobs: BTreeMap<Digest, Vec<u8>>,
    /// Digests of manifests, by repository and tag.
    tags: BTreeMap<(String, String), Digest>,
    requests: Vec<Request>,
    /// Whether the registry lists artifacts that refer to others.
    lists_referrers: bool,
    login: Option<Login>,
    interceptor: Option<Interceptor>,
}

/// User of a registry that requires a login.
#[derive(Clone)]
struct Login {
    authorization: String,
    realm: Option<String>,
}

/// Registry on a free port of this machine. It ends when it is dropped.
pub struct TestRegistry {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    server: tokio::task::JoinHandle<()>,
}

impl Drop for TestRegistry {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Reply {
    /// Creates a response with a body.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: ReplyBody::Whole(body.into()) }
    }

    /// Creates a response whose body never ends.
    #[must_use]
    pub fn endless() -> Self {
        Self { status: 200, headers: Vec::new(), body: ReplyBody::Endless }
    }

    /// Creates a response whose connection closes after `sent` of `length` bytes.
    pub fn cut(sent: impl Into<Vec<u8>>, length: usize) -> Self {
        Self {
            status: 200,
            headers: Vec::new(),
            body: ReplyBody::Cut { sent: sent.into(), length },
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

impl TestRegistry {
    /// Starts a registry.
    ///
    /// # Errors
    /// Returns an error if no port is free.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let server = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                tokio::spawn(async move {
                    // A client may end the connection at any time.
                    let _ = serve(connection, address, &state).await;
                });
            }
        });
        Ok(Self { address, state, server })
    }

    /// Returns host and port.
    #[must_use]
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Returns a reference to a repository and its version, such as `acme/csv:1.0.0`.
    #[must_use]
    pub fn reference(&self, name: &str) -> String {
        format!("oci://{}/{name}", self.host())
    }

    /// Adds an artifact under a tag.
    pub fn add(&self, repository: &str, tag: &str, artifact: &WasmArtifact) {
        self.add_manifest(repository, tag, &artifact.manifest);
        self.add_blob(&artifact.config);
        self.add_blob(&artifact.component);
    }

    /// Adds a manifest under a tag.
    pub fn add_manifest(&self, repository: &str, tag: &str, manifest: &[u8]) {
        let digest = self.add_blob(manifest);
        self.state.lock().tags.insert((repository.to_owned(), tag.to_owned()), digest);
    }

    /// Adds a blob. Returns its digest.
    pub fn add_blob(&self, content: &[u8]) -> Digest {
        let digest = Digest::of(content);
        self.state.lock().blobs.insert(digest, content.to_owned());
        digest
    }

    /// Returns the digest of a tag.
    #[must_use]
    pub fn tag(&self, repository: &str, tag: &str) -> Option<Digest> {
        self.state.lock().tags.get(&(repository.to_owned(), tag.to_owned())).copied()
    }

    /// Requires a login for every request. The token comes from `realm`, or else from this
    /// registry.
    pub fn require_login(&self, username: &str, password: &str, realm: Option<String>) {
        let pair = BASE64.encode(format!("{username}:{password}").as_bytes());
        self.state.lock().login = Some(Login { authorization: format!("Basic {pair}"), realm });
    }

    /// Lets the registry list artifacts that refer to others, as OCI 1.1 has it.
    pub fn list_referrers(&self) {
        self.state.lock().lists_referrers = true;
    }

    /// Lets `interceptor` answer requests first.
    pub fn intercept(
        &self,
        interceptor: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static,
    ) {
        self.state.lock().interceptor = Some(Box::new(interceptor));
    }

    /// Returns and removes the requests so far.
    #[must_use]
    pub fn take_requests(&self) -> Vec<Request> {
        std::mem::take(&mut self.state.lock().requests)
    }
}

/// Answers one request of a connection.
async fn serve(
    mut connection: TcpStream,
    address: SocketAddr,
    state: &Mutex<State>,
) -> io::Result<()> {
    let Some(request) = read_request(&mut connection).await? else { return Ok(()) };
    let reply = {
        let mut state = state.lock();
        state.requests.push(request.clone());
        let intercepted = state.interceptor.as_ref().and_then(|intercept| intercept(&request));
        intercepted.unwrap_or_else(|| state.reply(&request, address))
    };
    let mut head = format!("HTTP/1.1 {} Reply\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match &reply.body {
        ReplyBody::Whole(body) => head.push_str(&format!("content-length: {}\r\n", body.len())),
        ReplyBody::Cut { length, .. } => head.push_str(&format!("content-length: {length}\r\n")),
        ReplyBody::Endless => head.push_str("transfer-encoding: chunked\r\n"),
    }
    head.push_str("\r\n");
    connection.write_all(head.as_bytes()).await?;
    if request.method == "HEAD" {
        return Ok(());
    }
    match reply.body {
        ReplyBody::Whole(body) | ReplyBody::Cut { sent: body, .. } => {
            connection.write_all(&body).await?;
        }
        ReplyBody::Endless => loop {
            let piece = [b'x'; 4096];
            connection.write_all(b"1000\r\n").await?;
            connection.write_all(&piece).await?;
            connection.write_all(b"\r\n").await?;
        },
    }
    connection.shutdown().await
}

/// Reads a request. Returns `None` for what is not HTTP, such as a TLS handshake.
async fn read_request(connection: &mut TcpStream) -> io::Result<Option<Request>> {
    let mut received: Vec<u8> = Vec::new();
    let end = loop {
        if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        let is_tls = received.first().is_some_and(|first| !first.is_ascii_alphabetic());
        if is_tls
            || received.len() > HEAD_BYTES_MAX
            || connection.read_buf(&mut received).await? == 0
        {
            return Ok(None);
        }
    };
    let mut body = received.split_off(end.saturating_add(4));
    let head = String::from_utf8_lossy(&received).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while body.len() < length {
        if connection.read_buf(&mut body).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(Request { method, path, headers, body }))
}

impl State {
    fn reply(&mut self, request: &Request, address: SocketAddr) -> Reply {
        let not_found = || Reply::new(404, br#"{"errors":[{"code":"NAME_UNKNOWN"}]}"#.to_vec());
        if let Some(login) = self.login.clone() {
            let sent = request.headers.get("authorization").map(String::as_str);
            if request.path.starts_with("/token") {
                let is_known = sent == Some(login.authorization.as_str());
                let token = format!(r#"{{"token":"{TOKEN}","expires_in":300}}"#);
                return if is_known { Reply::new(200, token) } else { Reply::new(401, "") };
            }
            if sent != Some(format!("Bearer {TOKEN}").as_str()) {
                let realm = login.realm.unwrap_or_else(|| format!("http://{address}/token"));
                let challenge = format!("Bearer realm=\"{realm}\",service=\"test\"");
                return Reply::new(401, "").with_header("www-authenticate", challenge);
            }
        }
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let Some(rest) = path.strip_prefix("/v2/") else { return not_found() };
        if rest.is_empty() {
            return Reply::new(200, "{}");
        }
        if let Some((repository, version)) = rest.split_once("/manifests/") {
            return self.manifest(request, repository, version).unwrap_or_else(not_found);
        }
        if let Some((_, digest)) = rest.split_once("/referrers/").filter(|_| self.lists_referrers) {
            let reply = Reply::new(200, self.referrers(digest));
            return reply.with_header("content-type", INDEX_TYPE);
        }
        let Some((repository, name)) = rest.split_once("/blobs/") else { return not_found() };
        match request.method.as_str() {
            "POST" => {
                let upload = format!("/v2/{repository}/blobs/uploads/1?state=x");
                Reply::new(202, "").with_header("location", upload)
            }
            "PUT" => {
                let digest = Digest::of(&request.body);
                let named = format!("digest={digest}").replace(':', "%3A");
                if !query.contains(&named) {
                    return Reply::new(400, br#"{"errors":[{"code":"DIGEST_INVALID"}]}"#.to_vec());
                }
                self.blobs.insert(digest, request.body.clone());
                Reply::new(201, "")
            }
            _ => {
                let content = name.parse().ok().and_then(|digest| self.blobs.get(&digest));
                content.map_or_else(not_found, |content| part(content, request))
            }
        }
    }

    /// Returns an index of the manifests that refer to `digest`.
    fn referrers(&self, digest: &str) -> String {
        let of_subject =
            self.blobs.values().filter(|blob| subject(blob).as_deref() == Some(digest));
        let entries = of_subject.map(|blob| {
            let json: Value = serde_json::from_slice(blob).unwrap_or_default();
            let mut entry = serde_json::json!(Descriptor::of(MANIFEST_TYPE, blob));
            if let Some(entry) = entry.as_object_mut() {
                for name in ["artifactType", "annotations"] {
                    if let Some(value) = json.get(name) {
                        entry.insert(name.to_owned(), value.clone());
                    }
                }
            }
            entry
        });
        let entries: Vec<_> = entries.collect();
        serde_json::json!({"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": entries})
            .to_string()
    }

    fn manifest(&mut self, request: &Request, repository: &str, version: &str) -> Option<Reply> {
        if request.method == "PUT" {
            let digest = Digest::of(&request.body);
            self.blobs.insert(digest, request.body.clone());
            self.tags.insert((repository.to_owned(), version.to_owned()), digest);
            let subject = subject(&request.body).filter(|_| self.lists_referrers);
            let reply = Reply::new(201, "");
            return Some(match subject {
                Some(subject) => reply.with_header("oci-subject", subject),
                None => reply,
            });
        }
        let digest = match version.parse() {
            Ok(digest) => digest,
            Err(_) => *self.tags.get(&(repository.to_owned(), version.to_owned()))?,
        };
        let reply = Reply::new(200, self.blobs.get(&digest)?.clone());
        let reply = reply.with_header("content-type", MANIFEST_TYPE);
        Some(reply.with_header("docker-content-digest", digest.to_string()))
    }
}

/// Returns whether `bytes` are a manifest or an index.
#[must_use]
pub fn is_document(bytes: &[u8]) -> bool {
    Document::parse(Bytes::copy_from_slice(bytes)).is_ok()
}

/// Returns the digest of what a manifest refers to.
fn subject(manifest: &[u8]) -> Option<String> {
    let json: Value = serde_json::from_slice(manifest).ok()?;
    Some(json.pointer("/subject/digest")?.as_str()?.to_owned())
}

/// Returns a blob, or the part of it that the request asks for.
fn part(content: &[u8], request: &Request) -> Reply {
    let first = request
        .headers
        .get("range")
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    match first.and_then(|first| Some((first, content.get(first..)?))) {
        Some((first, rest)) => {
            let (last, total) = (content.len().saturating_sub(1), content.len());
            let range = format!("bytes {first}-{last}/{total}");
            Reply::new(206, rest).with_header("content-range", range)
        }
        None => Reply::new(200, content),
    }
}
