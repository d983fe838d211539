//! No tests: an MCP server, and raw bytes to and from it, without an MCP SDK.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use cofferdam_tests::{binary, guest, shared_cache};
pub(crate) use rustix::process::Signal;
use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};

/// Maximum time for an answer on a busy machine. A longer wait means a hang.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(60);

/// The revision without a handshake.
pub(crate) const MODERN: &str = "2026-07-28";
/// The last revision with a handshake.
pub(crate) const LEGACY: &str = "2025-11-25";

/// Returns `cofferdam serve` with plugins and the arguments `more`.
pub(crate) fn command(plugins: &[&str], more: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).arg("serve").args(more);
    for plugin in plugins {
        command.arg("--plugin").arg(guest(plugin));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Reads the lines of a stream in a thread of their own.
fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

/// Returns the `_meta` of a modern request.
pub(crate) fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "wire", "version": "1" },
    })
}

/// Returns a modern request.
pub(crate) fn request(id: &str, method: &str, mut params: Value) -> Value {
    params["_meta"] = meta();
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Returns a modern call of a tool.
pub(crate) fn call(id: &str, tool: &str, arguments: &Value) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
}

/// Sends a signal to a process.
pub(crate) fn send_signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Returns the current resident memory of a process in bytes, not its peak.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024
}

/// Server on standard input and output.
pub(crate) struct Pipe {
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
    errors: Receiver<String>,
    requests: u32,
}

impl Pipe {
    pub(crate) fn start(plugins: &[&str], more: &[&str]) -> Self {
        Self::of(&mut command(plugins, more))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let (output, errors) =
            (lines(child.stdout.take().unwrap()), lines(child.stderr.take().unwrap()));
        Self { child, input, output, errors, requests: 0 }
    }

    /// Starts a server with a configuration and additional environment variables.
    pub(crate) fn of_config(config: &Path, env: &[(&str, &str)]) -> Self {
        let mut command = command(&[], &["--config", config.to_str().unwrap()]);
        Self::of(command.envs(env.iter().copied()))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends bytes and a line feed. Errors are ignored: the wait for the answer finds a server that
    /// has ended.
    pub(crate) fn send(&mut self, frame: &[u8]) {
        let input = self.input.as_mut().unwrap();
        let _ended = input
            .write_all(frame)
            .and_then(|()| input.write_all(b"\n"))
            .and_then(|()| input.flush());
    }

    /// Returns the next line, which has to be JSON.
    pub(crate) fn next(&mut self) -> Value {
        let line = match self.output.recv_timeout(ANSWER_MAX) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => panic!("no answer for {ANSWER_MAX:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().unwrap();
                let said: Vec<_> = self.errors.iter().collect();
                panic!("the server has ended with {status}: {}", said.join("\n"));
            }
        };
        serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("not JSON on standard output: {line}"))
    }

    /// Returns all messages before the answer to `id`, and that answer.
    pub(crate) fn until(&mut self, id: &Value) -> (Vec<Value>, Value) {
        let mut before = Vec::new();
        loop {
            let message = self.next();
            let is_answer = message.get("method").is_none() && message.get("id") == Some(id);
            if is_answer {
                return (before, message);
            }
            before.push(message);
        }
    }

    /// Sends a request and returns its answer.
    pub(crate) fn ask(&mut self, frame: &Value) -> Value {
        self.send(frame.to_string().as_bytes());
        self.until(&frame["id"]).1
    }

    /// Sends a modern request with a new id and returns its answer.
    pub(crate) fn modern(&mut self, method: &str, params: Value) -> Value {
        self.requests += 1;
        let id = format!("ask-{}", self.requests);
        self.ask(&request(&id, method, params))
    }

    /// Calls a tool like [`modern`](Self::modern).
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.modern("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Waits until standard error contains `part`.
    pub(crate) fn has_said(&self, part: &str) -> String {
        let mut before = Vec::new();
        loop {
            let Ok(line) = self.errors.recv_timeout(ANSWER_MAX) else {
                panic!("not `{part}` but {before:?}")
            };
            if line.contains(part) {
                return line;
            }
            before.push(line);
        }
    }

    /// Ends the input and returns the lines of standard error.
    pub(crate) fn errors_at_end(mut self) -> Vec<String> {
        drop(self.input.take());
        self.errors.iter().collect()
    }

    /// Ends the input. Returns the exit code, the rest of standard output, and the time until the
    /// end.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<String>, Duration) {
        let started = Instant::now();
        drop(self.input.take());
        // Standard output ends with the process.
        let rest: Vec<_> = self.output.iter().collect();
        (self.child.wait().unwrap().code(), rest, started.elapsed())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Server on HTTP.
pub(crate) struct Http {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    _folder: tempfile::TempDir,
}

/// Answer to an HTTP request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }
}

impl Http {
    /// Starts a server without a limit on calls per caller.
    pub(crate) fn start(plugins: &[&str]) -> Self {
        let rate = "[serve]\nrate = { per-second = 1e6, burst = 1e6 }\n";
        Self::of_config(plugins, rate, &[])
    }

    /// Starts a server with a configuration and the arguments `more`.
    pub(crate) fn of_config(plugins: &[&str], text: &str, more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("cofferdam.toml"), text).unwrap();
        Self::within(folder, plugins, more)
    }

    /// Starts a server in a folder that has a `cofferdam.toml`, with the arguments `more`.
    pub(crate) fn within(folder: tempfile::TempDir, plugins: &[&str], more: &[&str]) -> Self {
        let token = folder.path().join("token");
        let own = ["--http", "127.0.0.1:0", "--token-file", "token", "--config", "cofferdam.toml"];
        let mut command = command(plugins, &[&own, more].concat());
        let mut child = command.current_dir(folder.path()).spawn().unwrap();
        let errors = lines(child.stderr.take().unwrap());
        let mut said = Vec::new();
        let address = loop {
            let Ok(line) = errors.recv_timeout(ANSWER_MAX) else {
                panic!("it does not listen: {said:?}")
            };
            if let Some(url) = line.strip_prefix("listening on http://") {
                break url.strip_suffix("/mcp").unwrap().parse().unwrap();
            }
            said.push(line);
        };
        std::thread::spawn(move || errors.iter().for_each(drop));
        let text = std::fs::read_to_string(&token).unwrap();
        Self { child, address, token: text.trim().to_owned(), _folder: folder }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the path of the file with the token.
    pub(crate) fn token_file(&self) -> std::path::PathBuf {
        self._folder.path().join("token")
    }

    /// Sends a request byte for byte on a new connection and reads the answer to its end.
    pub(crate) fn send(&self, head: &str, body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        // A server may refuse after the header and close.
        let _refused = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        let mut bytes = Vec::new();
        if let Err(error) = stream.read_to_end(&mut bytes) {
            assert!(
                !bytes.is_empty(),
                "no answer to {head:?} {:?}: {error}",
                String::from_utf8_lossy(body)
            );
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.unwrap_or_else(|| panic!("not HTTP: {text:?}"));
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { joined(body) } else { body.to_owned() };
        Answer { status, head: head.to_owned(), body }
    }

    /// Posts a body with the token and the other headers of a client; `more` are further header
    /// lines.
    pub(crate) fn post(&self, more: &str, body: &[u8]) -> Answer {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nAccept: \
             application/json, text/event-stream\r\nConnection: close\r\nContent-Length: \
             {}\r\n{more}\r\n",
            self.address,
            self.token,
            body.len(),
        );
        self.send(&head, body)
    }

    /// Posts a modern request with its required headers.
    pub(crate) fn ask(&self, frame: &Value) -> Answer {
        self.post(&head_of(frame), frame.to_string().as_bytes())
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Returns the headers that a modern request requires.
pub(crate) fn head_of(frame: &Value) -> String {
    let mut head = format!("MCP-Protocol-Version: {MODERN}\r\n");
    if let Some(method) = frame["method"].as_str() {
        head.push_str(&format!("Mcp-Method: {method}\r\n"));
    }
    let parameters = &frame["params"];
    if let Some(name) = parameters["name"].as_str().or(parameters["taskId"].as_str()) {
        head.push_str(&format!("Mcp-Name: {name}\r\n"));
    }
    head
}

/// Joins a chunked body.
fn joined(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let Some(chunk) = rest.get(..size).filter(|_| size > 0) else { break };
        whole.push_str(chunk);
        body = rest.get(size + 2..).unwrap_or_default();
    }
    whole
}
