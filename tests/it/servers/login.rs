//! OAuth at a remote server: a login, stored tokens, and use without a terminal.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;

use super::Scene;
use crate::wire::Http;

const TOKEN: &str = "a-token-of-the-authorization-server";

/// Proxy before a server that requires tokens and is also the authorization server.
struct Door {
    address: SocketAddr,
}

impl Door {
    fn before(remote: &Http) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (inside, own) = (remote.address, remote.token.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let own = own.clone();
                std::thread::spawn(move || answer(stream, address, inside, &own));
            }
        });
        Self { address }
    }
}

/// Handles one request.
fn answer(mut stream: TcpStream, address: SocketAddr, inside: SocketAddr, own: &str) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        head.push(line.trim().to_owned());
    }
    let value = |name: &str| {
        let line =
            head.iter().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let length = value("content-length").and_then(|length| length.parse().ok()).unwrap_or(0_u64);
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body).ok()?;
    let target = head.first()?.split(' ').nth(1)?.to_owned();
    let origin = format!("http://{address}");
    if target == "/mcp" {
        if value("authorization").is_none_or(|sent| sent != format!("Bearer {TOKEN}")) {
            let wants = format!(
                "Bearer resource_metadata=\"{origin}/.well-known/oauth-protected-resource\""
            );
            let refusal = format!(
                "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: {wants}\r\nContent-Length: \
                 0\r\nConnection: close\r\n\r\n"
            );
            return stream.write_all(refusal.as_bytes()).ok();
        }
        // The server behind requires its own token.
        let is_forwarded = |line: &&String| {
            let line = line.to_ascii_lowercase();
            !["authorization:", "host:", "connection:"].iter().any(|name| line.starts_with(name))
        };
        let lines: Vec<_> =
            head.iter().filter(is_forwarded).map(|line| format!("{line}\r\n")).collect();
        let head = format!(
            "{}Host: {inside}\r\nAuthorization: Bearer {own}\r\nConnection: close\r\n\r\n",
            lines.concat()
        );
        let mut behind = TcpStream::connect(inside).ok()?;
        behind.write_all(head.as_bytes()).ok()?;
        behind.write_all(&body).ok()?;
        return std::io::copy(&mut behind, &mut stream).ok().map(drop);
    }
    let json = if target.starts_with("/.well-known/oauth-protected-resource") {
        json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]})
    } else if target.starts_with("/.well-known/oauth-authorization-server") {
        json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        })
    } else if target == "/register" {
        let asked: serde_json::Value = serde_json::from_slice(&body).ok()?;
        json!({"client_id": "registered", "redirect_uris": asked["redirect_uris"]})
    } else if target == "/token" && String::from_utf8_lossy(&body).contains("code=the-code") {
        json!({"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600})
    } else {
        let nothing = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(nothing.as_bytes()).ok();
    };
    let (status, body) =
        (if target == "/register" { "201 Created" } else { "200 OK" }, json.to_string());
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: \
         close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}

/// Returns a value of an address's query, with these escapes decoded.
fn query(address: &str, name: &str) -> String {
    let (_, query) = address.split_once('?').unwrap();
    let value = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}="))).unwrap();
    value.replace("%3A", ":").replace("%2F", "/")
}

#[test]
fn a_person_logs_in_once_and_can_log_out() {
    let remote = Http::start(&["served"]);
    let door = Door::before(&remote);
    let scene = Scene::new(&format!(
        "[servers.far]\nurl = \"http://{}/mcp\"\noauth = {{}}\n",
        door.address
    ));
    let call = ["call", "echo", r#"{"message":"hi"}"#];
    let without = scene.run(&call);
    assert_eq!(without.code, 4, "{}", without.stderr);
    let how = format!("cofferdam mcp login far --config {}", scene.config().display());
    assert!(without.stderr.contains(&how), "{}", without.stderr);

    let mut login = scene.command(&["mcp", "login", "far"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(login.stderr.take().unwrap()).lines().map_while(Result::ok);
    let address =
        said.find_map(|line| Some(line.trim().to_owned()).filter(|line| line.starts_with("http")));
    let address = address.expect("an address to go to");
    assert!(address.starts_with(&format!("http://{}/authorize?", door.address)), "{address}");
    let back = query(&address, "redirect_uri");
    let back = back.strip_prefix("http://").unwrap();
    let (host, path) = back.split_once('/').unwrap();
    let mut browser = TcpStream::connect(host).unwrap();
    let state = query(&address, "state");
    write!(browser, "GET /{path}?code=the-code&state={state} HTTP/1.1\r\nHost: {host}\r\n\r\n")
        .unwrap();
    let rest: Vec<_> = said.collect();
    assert!(login.wait().unwrap().success(), "{rest:?}");
    assert!(rest.join("\n").contains("takes the login; it offers 4 tools"), "{rest:?}");

    let called = scene.run(&call);
    assert_eq!(called.code, 0, "{}", called.stderr);
    let tokens = std::fs::read_dir(scene.path(".local/state/cofferdam/servers/far")).unwrap();
    let tokens: Vec<_> = tokens
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().extension().is_some_and(|kind| kind == "json"))
        .collect();
    assert_eq!(tokens.len(), 1);
    assert_eq!(tokens[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);

    assert_eq!(scene.run(&["mcp", "logout", "far"]).code, 0);
    assert!(scene.run(&call).stderr.contains(&how));
}

#[test]
fn only_a_server_with_oauth_can_be_logged_in_to() {
    let scene = Scene::new("[servers.a]\nurl = \"https://a.example/mcp\"\n");
    for (server, message) in
        [("a", "there is no [servers.a.oauth]"), ("b", "servers of this file: `a`")]
    {
        let refused = scene.run(&["mcp", "login", server]);
        assert_eq!(refused.code, 2);
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
    }
    let scene = Scene::new("[servers.a]\nurl = \"http://127.0.0.1:1/mcp\"\n");
    assert!(scene.run(&["list"]).stderr.contains("the server `a` cannot be reached"));
}
