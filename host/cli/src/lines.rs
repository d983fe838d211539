//! Lines of standard input where it is no terminal. `cofferdam_terminal` reads those that are typed
//! at one.

use std::io::{BufRead as _, Read as _};

use tokio::sync::oneshot;

/// Longest line in bytes. A longer one is taken for the end of the input.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// The next line without its end; `None` when there are no more. A line that comes after the future
/// was dropped is lost.
pub(crate) async fn next() -> Option<String> {
    let (send, line) = oneshot::channel();
    // Nothing can interrupt reading a line. A thread of its own does not keep the process from
    // ending.
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
