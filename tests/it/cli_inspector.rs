//! The binary and the inspector: pages about recorded calls and calls of a server, over HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use crate::cli::ran;
use crate::wire::{self, Pipe};

/// Maximum time of a request.
const PATIENCE: Duration = Duration::from_secs(30);

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
    command.env("HOME", folder.join("home")).current_dir(folder).args(arguments);
    command
}

/// A client of the pages.
struct PageClient {
    address: String,
    key: String,
    cookie: String,
}

impl PageClient {
    /// Parses an address that was printed.
    fn new(printed: &str) -> Self {
        let (_, rest) = printed.trim().split_once("http://").unwrap();
        let (address, key) = rest.split_once("/#k=").unwrap();
        Self { address: address.to_owned(), key: key.to_owned(), cookie: String::new() }
    }

    /// Posts a key, and returns the answer.
    fn post_key(&self, key: &str) -> String {
        self.post("/session", "x-cofferdam: login\r\n", &json!({ "key": key }))
    }

    fn log_in(&mut self) {
        let answer = self.post_key(&self.key);
        let (_, cookie) = answer.split_once("set-cookie: ").unwrap();
        self.cookie = cookie.split(';').next().unwrap().to_owned();
    }

    fn get(&self, path: &str) -> String {
        self.send(&format!("GET {path}"), "", "")
    }

    fn post(&self, path: &str, headers: &str, body: &Value) -> String {
        let headers = format!(
            "{headers}origin: http://{}\r\ncontent-type: application/json\r\n",
            self.address
        );
        self.send(&format!("POST {path}"), &headers, &body.to_string())
    }

    fn send(&self, start: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "{start} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nsec-fetch-site: same-origin\r\n\
             cookie: {}\r\n{headers}content-length: {}\r\n\r\n{body}",
            self.address,
            self.cookie,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

/// A running `cofferdam inspect --web`.
struct Inspecting(Child);

impl Inspecting {
    fn start(command: &mut Command) -> (Self, PageClient) {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Self(process), PageClient::new(&line))
    }
}

impl Drop for Inspecting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the path of the page of the first call of a list.
fn path_of_call(list: &str) -> String {
    let (_, rest) = list.split_once("href=\"/call/").unwrap();
    format!("/call/{}", rest.split('"').next().unwrap())
}

#[test]
fn recorded_calls_are_shown_with_the_command_that_grants_what_was_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::copy(guest("web"), folder.join("web.wasm")).unwrap();
    let config = "[records]\ndirectory = \"log\"\npayloads = \"local\"\n\
                  [plugins.web]\ncomponent = \"web.wasm\"\n";
    std::fs::write(folder.join("cofferdam.toml"), config).unwrap();
    let inspect = ["inspect", "--web", "--config", "cofferdam.toml"];
    let (_inspecting, mut pages) = Inspecting::start(&mut command(folder, &inspect));
    assert!(pages.get("/").contains("To log in, open the address"));
    pages.log_in();
    assert!(pages.get("/").contains("Nothing is recorded yet."));

    let fetch = ["call", "fetch", "url=https://api.example.com/x", "-c", "cofferdam.toml"];
    let called = ran(command(folder, &[&fetch[..], &["--record"]].concat()).output().unwrap());
    assert_eq!(called.code, 1, "{}", called.stderr);
    let list = pages.get("/");
    assert!(list.contains(">fetch<"), "{list}");
    let call = pages.get(&path_of_call(&list));
    assert!(call.contains("&quot;url&quot;: &quot;https://api.example.com/x&quot;"), "{call}");
    assert!(call.contains("At fault: <strong>the grant</strong>"), "{call}");
    let grant = "data-copy=\"cofferdam grant web 'http:GET https://api.example.com/x' --config \
                 cofferdam.toml\"";
    assert!(call.contains(grant), "{call}");
    // The key is used up, and the one of another inspector is not for this one.
    let (_other, other) = Inspecting::start(&mut command(folder, &inspect));
    for key in [&pages.key, &other.key] {
        let answer = pages.post_key(key);
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
}

#[test]
fn a_server_shows_its_calls_and_calls_its_tools() {
    let home = tempfile::tempdir().unwrap();
    let mut serving = wire::command(&["text"], &["--inspector"]);
    let mut pipe = Pipe::of(serving.env("HOME", home.path()));
    let mut pages = PageClient::new(&pipe.has_said("inspector, once and within five minutes: "));
    pages.log_in();
    pipe.call("word_count", json!({"text": "a b"}));
    assert!(pages.get("/tools").contains("href=\"/tool?name=word_count\""));
    let form = pages.get("/tool?name=word_count");
    assert!(form.contains("data-kind=\"text\" data-name=\"text\""), "{form}");
    let (_, token) = form.split_once("data-token=\"").unwrap();
    let token = format!("x-cofferdam: {}\r\n", token.split('"').next().unwrap());
    let trial =
        json!({"tool": "word_count", "arguments": r#"{"text":"a b c"}"#, "is_dry_run": false});
    let answer = pages.post("/try", &token, &trial);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let result: Value = serde_json::from_str(body).unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(result["outcome"], "ok", "{result}");
    assert!(result["text"].as_str().unwrap().contains("\"words\":3"), "{result}");
    // Without the token, nothing is called.
    assert!(pages.post("/try", "", &trial).starts_with("HTTP/1.1 403"));
    // The call is in the log, with the page that the answer names.
    let path = result["page"].as_str().unwrap();
    let found = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        pages.get(path).contains("<h1><bdi>word_count</bdi>")
    });
    assert!(found, "{path} is not in the log");
    let listed = pages.get("/?session=inspector");
    assert_eq!(listed.matches("<tr data-id=").count(), 1, "{listed}");
    let (code, errors, _) = pipe.end();
    assert_eq!(code, Some(0), "{errors:?}");
}

#[test]
fn the_inspector_listens_on_this_machine_only() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| ran(command(folder.path(), arguments).output().unwrap());
    let refused = run(&["inspect", "--web", "0.0.0.0:8080"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains(
            "error: 0.0.0.0:8080 can be reached from other machines; listen on 127.0.0.1 or [::1]"
        ),
        "{}",
        refused.stderr
    );
    assert_eq!(run(&["inspect"]).code, 2);
    assert_eq!(run(&["inspect", "--directory", "log", "web.wasm"]).code, 2);
}
