//! The binary and the inspector: pages about recorded calls, over HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cofferdam_tests::{binary, guest, shared_cache};

use crate::cli::ran;

/// Maximum time of a request.
const PATIENCE: Duration = Duration::from_secs(30);

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
    command.env("HOME", folder.join("home")).current_dir(folder).args(arguments);
    command
}

/// A running `cofferdam inspect --web`.
struct Inspecting {
    process: Child,
    address: String,
    key: String,
    cookie: String,
}

impl Inspecting {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://").unwrap();
        let (address, key) = rest.split_once("/#k=").unwrap();
        let (address, key) = (address.to_owned(), key.to_owned());
        Self { process, address, key, cookie: String::new() }
    }

    fn log_in(&mut self) {
        let body = format!("{{\"key\":\"{}\"}}", self.key);
        let headers = format!(
            "origin: http://{}\r\ncontent-type: application/json\r\nx-cofferdam: login\r\n",
            self.address
        );
        let answer = self.send("POST /session", &headers, &body);
        let (_, cookie) = answer.split_once("set-cookie: ").unwrap();
        self.cookie = cookie.split(';').next().unwrap().to_owned();
    }

    fn get(&self, path: &str) -> String {
        let headers = format!("cookie: {}\r\nsec-fetch-site: same-origin\r\n", self.cookie);
        self.send(&format!("GET {path}"), &headers, "")
    }

    fn send(&self, start: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "{start} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{headers}content-length: {}\r\n\
             \r\n{body}",
            self.address,
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Inspecting {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
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
    let mut inspecting = Inspecting::start(&mut command(folder, &inspect));
    assert!(inspecting.get("/").contains("To log in, open the address"));
    inspecting.log_in();
    assert!(inspecting.get("/").contains("Nothing is recorded yet."));

    let fetch =
        ["call", "fetch", "url=https://api.example.com/x", "-c", "cofferdam.toml", "--record"];
    let called = ran(command(folder, &fetch).output().unwrap());
    assert_eq!(called.code, 1, "{}", called.stderr);
    let list = inspecting.get("/");
    assert!(list.contains(">fetch<"), "{list}");
    let (_, rest) = list.split_once("href=\"/call/").unwrap();
    let call = inspecting.get(&format!("/call/{}", rest.split('"').next().unwrap()));
    assert!(call.contains("https://api.example.com/x"), "{call}");
    let grant = "data-copy=\"cofferdam grant web 'http:GET https://api.example.com/x' --config \
                 cofferdam.toml\"";
    assert!(call.contains(grant), "{call}");
    // The key that was printed is used up.
    let again = Inspecting::start(&mut command(folder, &inspect));
    let body = format!("{{\"key\":\"{}\"}}", inspecting.key);
    let headers = "content-type: application/json\r\nx-cofferdam: login\r\n";
    let answer = again.send(
        "POST /session",
        &format!("origin: http://{}\r\n{headers}", again.address),
        &body,
    );
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
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
