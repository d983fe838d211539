//! Reads lines of standard input if it is not a terminal. `cofferdam_terminal` reads those that are
//! typed.

use std::io::{self, BufRead as _};

use tokio::sync::oneshot;

use crate::exit::UsageError;

/// Maximum length of a line in bytes, without its end.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

/// Returns the next line without its line ending, or `None` at the end of the input. A line that
/// arrives after the future was dropped is lost.
///
/// # Errors
/// If the line is too long or not UTF-8, or if the input cannot be read.
pub(crate) async fn next() -> Result<Option<String>, UsageError> {
    let (send, line) = oneshot::channel();
    // A blocking read cannot be interrupted. A separate thread does not keep the process from
    // exiting.
    std::thread::spawn(move || send.send(read_line(io::stdin().lock())));
    line.await.unwrap_or(Ok(None))
}

fn read_line(input: impl io::BufRead) -> Result<Option<String>, UsageError> {
    let unreadable = |error: &str| UsageError(format!("standard input cannot be read: {error}"));
    let mut bytes = Vec::new();
    // The longest line and its end.
    let mut input = input.take(LINE_BYTES_MAX + 2);
    let read =
        input.read_until(b'\n', &mut bytes).map_err(|error| unreadable(&error.to_string()))?;
    if read == 0 {
        return Ok(None);
    }
    let line = String::from_utf8(bytes).map_err(|_| unreadable("a line is not UTF-8"))?;
    let line = line.trim_end_matches(['\n', '\r']);
    if u64::try_from(line.len()).is_ok_and(|length| length <= LINE_BYTES_MAX) {
        return Ok(Some(line.to_owned()));
    }
    Err(UsageError(format!(
        "a line of standard input has more than {LINE_BYTES_MAX} bytes; pass a longer prompt as \
         one, with `chat -`, or a file with --attach"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_be_read_is_no_end() {
        let longest = "x".repeat(1024 * 1024);
        for end in ["", "\n", "\r\n"] {
            let input = format!("{longest}{end}");
            assert_eq!(read_line(input.as_bytes()).unwrap().as_deref(), Some(longest.as_str()));
        }
        let message = |input: &[u8]| read_line(input).unwrap_err().to_string();
        assert!(message(format!("{longest}x\n").as_bytes()).contains("more than 1048576 bytes"));
        assert!(message(b"a\xff\n").contains("not UTF-8"));
        assert_eq!(read_line(&b"\na"[..]).unwrap().as_deref(), Some(""));
        assert_eq!(read_line(&b""[..]).unwrap(), None);
    }
}
