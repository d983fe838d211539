//! Reads lines of standard input if it is not a terminal. `cofferdam_terminal` reads those that are
//! typed.

use std::io::{BufRead as _, Read as _};

use tokio::sync::oneshot;

/// Maximum length of a line in bytes. A longer line counts as the end of the input.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Returns the next line without its line ending, or `None` at the end of the input. A line that
/// arrives after the future was dropped is lost.
pub(crate) async fn next() -> Option<String> {
    let (send, line) = oneshot::channel();
    // A blocking read cannot be interrupted. A separate thread does not keep the process from
    // exiting.
    std::thread::spawn(move || send.send(read_line()));
    line.await.ok().flatten()
}

fn read_line() -> Option<String> {
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin().lock().take(LINE_BYTES_MAX);
    match stdin.read_until(b'\n', &mut bytes) {
        Ok(0) | Err(_) => None,
        Ok(_) if stdin.limit() == 0 => None,
        Ok(_) => Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned()),
    }
}
