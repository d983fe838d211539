//! Calls against scripts, against a server in this test program, and against HTTP servers that
//! misbehave.

mod answers;
mod hostile;
mod http;
mod listing;
mod rounds;
mod rows;
mod served;
mod stdio;
mod unsteady;

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;

use serde_json::Value;

/// Reads an HTTP request with a message; null if its body is not JSON. Returns `None` if the client
/// is gone.
fn read_request(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line).ok()? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).unwrap_or_default())
}
