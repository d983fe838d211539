//! A server on HTTP, and open connections to it.
//!
//! The client is as small as HTTP/1.1 allows, so that mainly the server is measured.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::Called;
use super::request::{REVISION, call, is_answer};

/// Maximum length of an answer, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Maximum time for an answer: a server that hangs is an error.
const PATIENCE: Duration = Duration::from_secs(20);

/// Server process, which is killed on drop.
pub(crate) struct Server {
    child: Child,
    /// Stays open: a server that cannot write to it may end.
    _said: BufReader<ChildStderr>,
    connections: Vec<Connection>,
}

impl Server {
    /// Starts a server that prints `listening on http://ADDRESS/mcp`, and connects to it, with a
    /// token if there is one.
    pub(crate) fn start(
        mut command: Command,
        token: &str,
        connections: usize,
    ) -> anyhow::Result<Self> {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut said = BufReader::new(child.stderr.take().context("a pipe")?);
        let mut line = String::new();
        let address = loop {
            line.clear();
            ensure!(said.read_line(&mut line)? > 0, "the server has ended");
            if let Some((_, url)) = line.split_once("listening on http://") {
                break url.trim().trim_end_matches("/mcp").to_owned();
            }
        };
        let connections = (0..connections)
            .map(|_| Connection::open(&address, token))
            .collect::<Result<_, _>>()?;
        Ok(Self { child, _said: said, connections })
    }
}

impl Called for Server {
    /// Makes calls, one at a time on each of the first `at_once` connections.
    fn calls(&mut self, calls: usize, at_once: usize) -> anyhow::Result<Duration> {
        let connections = self.connections.get_mut(..at_once).context("too few connections")?;
        let requests: Vec<_> = (0..calls.max(at_once)).map(|id| call(id).to_string()).collect();
        let started = Instant::now();
        for batch in requests.chunks(at_once) {
            for (connection, request) in connections.iter_mut().zip(batch) {
                connection.send(request)?;
            }
            for (connection, _) in connections.iter_mut().zip(batch) {
                let answer = connection.receive()?;
                ensure!(is_answer(&answer), "not an echo: {answer}");
            }
        }
        Ok(started.elapsed() / u32::try_from(requests.len())?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

struct Connection {
    head: String,
    stream: BufReader<TcpStream>,
}

impl Connection {
    fn open(address: &str, token: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        // A server without a token rejects an empty one.
        let authorization = match token {
            "" => String::new(),
            token => format!("authorization: Bearer {token}\r\n"),
        };
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\n{authorization}\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: {REVISION}\r\nmcp-method: tools/call\r\nmcp-name: echo\r\n"
        );
        Ok(Self { head, stream: BufReader::new(stream) })
    }

    fn send(&mut self, body: &str) -> anyhow::Result<()> {
        let request = format!("{}content-length: {}\r\n\r\n{body}", self.head, body.len());
        Ok(self.stream.get_mut().write_all(request.as_bytes())?)
    }

    fn receive(&mut self) -> anyhow::Result<String> {
        let status = self.line()?;
        let (mut length, mut is_chunked) = (0, false);
        loop {
            let line = self.line()?.to_ascii_lowercase();
            match line.split_once(':') {
                Some(("content-length", value)) => length = value.trim().parse()?,
                Some(("transfer-encoding", value)) => is_chunked = value.trim() == "chunked",
                Some(_) => {}
                None => break,
            }
        }
        let body = if is_chunked { self.chunks()? } else { self.bytes(length)? };
        let body = String::from_utf8(body)?;
        ensure!(status.starts_with("HTTP/1.1 200"), "the server answered {status} {body}");
        Ok(body)
    }

    fn chunks(&mut self) -> anyhow::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let length = usize::from_str_radix(&self.line()?, 16)?;
            body.extend(self.bytes(length)?);
            self.line()?;
            if length == 0 {
                return Ok(body);
            }
            ensure!(body.len() <= ANSWER_BYTES_MAX, "the answer is too long");
        }
    }

    fn bytes(&mut self, length: usize) -> anyhow::Result<Vec<u8>> {
        ensure!(length <= ANSWER_BYTES_MAX, "the answer is too long");
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a header line, without its end.
    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.stream.read_line(&mut line)? > 0, "the server has closed the connection");
        Ok(line.trim_end().to_owned())
    }
}
