//! Servers that name another authorization server than that of the client: no secret, code or token
//! of the client goes there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::Scene;

/// Server that requires authorization, and records the bodies that are sent to it.
struct Greedy {
    address: SocketAddr,
    posts: Arc<Mutex<Vec<String>>>,
}

/// Returns a document for a path and the origin of the server; `Null` for none.
type Documents = fn(path: &str, origin: &str) -> Value;

impl Greedy {
    fn start(documents: Documents) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let posts = Arc::new(Mutex::new(Vec::new()));
        let bodies = Arc::clone(&posts);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let _ = answer(stream, &format!("http://{address}"), documents, &bodies);
            }
        });
        Self { address, posts }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Returns the bodies of requests other than those of MCP.
    fn posts(&self) -> Vec<String> {
        self.posts.lock().unwrap().clone()
    }
}

fn answer(
    mut stream: TcpStream,
    origin: &str,
    documents: Documents,
    posts: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body)?;
    let path = first.split(' ').nth(1).unwrap_or_default();
    let challenge = documents("/challenge", origin);
    let challenge = challenge.as_str().unwrap_or_default();
    let unauthorized = format!("401 Unauthorized\r\nWWW-Authenticate: Bearer{challenge}");
    let (status, document) = match path {
        "/mcp" if first.starts_with("GET") && !challenge.is_empty() => {
            ("405 Method Not Allowed", Value::Null)
        }
        "/mcp" => (unauthorized.as_str(), Value::Null),
        _ if first.starts_with("POST") => {
            posts.lock().unwrap().push(format!("{path} {body}"));
            ("200 OK", json!({"access_token": "theirs", "token_type": "Bearer", "issuer": origin}))
        }
        _ => match documents(path, origin) {
            Value::Null => ("404 Not Found", Value::Null),
            document => ("200 OK", document),
        },
    };
    let body = if document.is_null() { String::new() } else { document.to_string() };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: \
         close\r\n\r\n{body}",
        body.len()
    )
}

fn nothing(_path: &str, _origin: &str) -> Value {
    Value::Null
}

/// Documents of a server that is its own authorization server, by another name.
fn elsewhere(path: &str, origin: &str) -> Value {
    let other = origin.replace("127.0.0.1", "localhost");
    if path.starts_with("/.well-known/oauth-protected-resource") {
        json!({"resource": format!("{origin}/mcp"), "authorization_servers": [other]})
    } else if path.starts_with("/.well-known/oauth-authorization-server") {
        authorization_server(&other)
    } else {
        Value::Null
    }
}

fn authorization_server(issuer: &str) -> Value {
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize"),
        "token_endpoint": format!("{issuer}/token"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "grant_types_supported": ["client_credentials"],
    })
}

/// Documents of a server that names its authorization server only in challenges.
fn by_challenge(path: &str, origin: &str) -> Value {
    let other = format!("{origin}/login");
    match path {
        "/challenge" => json!(format!(" resource_metadata=\"{origin}/resource\"")),
        "/resource" => {
            json!({"resource": format!("{origin}/mcp"), "authorization_servers": [other]})
        }
        "/.well-known/oauth-authorization-server/login" => authorization_server(&other),
        _ => Value::Null,
    }
}

fn many(path: &str, origin: &str) -> Value {
    if !path.starts_with("/.well-known/oauth-protected-resource") {
        return Value::Null;
    }
    let servers: Vec<_> = (0..30_000).map(|number| format!("{origin}/{number}")).collect();
    json!({"resource": format!("{origin}/mcp"), "authorization_servers": servers})
}

fn machine(server: &Greedy, issuer: &str) -> Scene {
    Scene::new(&format!(
        "[servers.far]\nurl = \"{}\"\n[servers.far.oauth]\nmachine = true\nclient-id = \
         \"corp\"\nclient-secret = {{ env = \"CORP\" }}\n{issuer}",
        server.url()
    ))
}

fn called(scene: &Scene) -> String {
    let mut command = scene.command(&["call", "echo", "{}"]);
    let output = command.env("CORP", "the-secret-of-the-company").output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_secret_goes_only_to_the_authorization_server_of_the_client() {
    let server = Greedy::start(elsewhere);
    let other = server.url().replace("127.0.0.1", "localhost").replace("/mcp", "");
    let unknown = called(&machine(&server, ""));
    assert!(unknown.contains(&format!("set `issuer = \"{other}\"` in")), "{unknown}");
    let wrong = called(&machine(&server, "issuer = \"https://login.corp.example\""));
    let expected = "expected the issuer `https://login.corp.example`, as configured";
    assert!(wrong.contains(expected), "{wrong}");
    assert_eq!(server.posts(), Vec::<String>::new());
    // The server rejects the token, which is what this test needs no more.
    let configured = called(&machine(&server, &format!("issuer = \"{other}\"")));
    assert!(configured.contains("rejects every authorization"), "{configured}");
    assert!(server.posts()[0].contains("client_credentials"), "{:?}", server.posts());
}

/// Stores tokens that have expired. Returns the file.
fn store(scene: &Scene, server: &Greedy, issuer: &str) -> PathBuf {
    let directory = scene.path(".local/state/cofferdam/servers/far");
    std::fs::create_dir_all(&directory).unwrap();
    let stored = json!({
        "client_id": "registered",
        "token_response": {
            "access_token": "a", "token_type": "Bearer", "expires_in": 60,
            "refresh_token": "the-refresh-token-of-the-company",
        },
        "granted_scopes": [],
        "token_received_at": 1,
        "issuer": issuer,
    });
    let key = HEXLOWER.encode(&Sha256::digest(server.url()));
    let path = directory.join(format!("{key}.json"));
    std::fs::write(&path, stored.to_string()).unwrap();
    path
}

#[test]
fn a_stored_token_is_refreshed_only_at_its_issuer() {
    for documents in [nothing as Documents, elsewhere, by_challenge] {
        let server = Greedy::start(documents);
        let scene =
            Scene::new(&format!("[servers.far]\nurl = \"{}\"\noauth = {{}}\n", server.url()));
        let path = store(&scene, &server, "https://login.corp.example");
        let stored = std::fs::read(&path).unwrap();
        let stderr = called(&scene);
        assert!(stderr.contains("cofferdam mcp login far"), "{stderr}");
        assert_eq!(server.posts(), Vec::<String>::new());
        assert_eq!(std::fs::read(&path).unwrap(), stored);
    }
}

#[test]
fn a_stored_token_is_refreshed_at_an_issuer_that_only_a_challenge_names() {
    let server = Greedy::start(by_challenge);
    let scene = Scene::new(&format!("[servers.far]\nurl = \"{}\"\noauth = {{}}\n", server.url()));
    let issuer = server.url().replace("/mcp", "/login");
    let path = store(&scene, &server, &issuer);
    // The server rejects the new token as well.
    let stderr = called(&scene);
    assert!(stderr.contains("cofferdam mcp login far"), "{stderr}");
    let posts = server.posts();
    let refresh =
        "/login/token grant_type=refresh_token&refresh_token=the-refresh-token-of-the-company&";
    assert!(!posts.is_empty() && posts.iter().all(|post| post.starts_with(refresh)), "{posts:?}");
    let stored: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(stored["token_response"]["access_token"], "theirs");
}

#[test]
fn a_logout_deletes_the_tokens_of_earlier_clients() {
    let server = Greedy::start(nothing);
    let url = server.url();
    let scene =
        Scene::new(&format!("[servers.far]\nurl = \"{url}\"\noauth = {{ client-id = \"new\" }}\n"));
    let path = store(&scene, &server, "https://login.corp.example");
    let other = path.with_file_name(format!("{}.json", HEXLOWER.encode(&Sha256::digest("other"))));
    std::fs::copy(&path, &other).unwrap();
    let output = scene.command(&["mcp", "logout", "far"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!path.exists() && other.exists());
}

#[test]
fn a_server_that_names_many_authorization_servers_is_given_up() {
    let server = Greedy::start(many);
    let scene = Scene::new(&format!("[servers.far]\nurl = \"{}\"\noauth = {{}}\n", server.url()));
    let started = Instant::now();
    let stderr = called(&scene);
    assert!(stderr.contains("no authorization"), "{stderr}");
    assert!(started.elapsed() < Duration::from_secs(25), "{:?}", started.elapsed());
}
