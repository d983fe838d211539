//! Line format of messages (`SES-6`, `SES-9`, `SES-10`).

use std::sync::Arc;

use serde::de::IgnoredAny;
use serde_json::Value;

use super::HistoryError;
use crate::Message;

/// Messages of a file, and the offset of a torn last line.
pub(super) struct RecordLines {
    /// Messages in the order of the file.
    pub(super) messages: Vec<Message>,
    /// Offset of the last line, if it has no line feed and is not JSON because a write was cut off.
    pub(super) torn_from: Option<usize>,
}

/// Parses the bytes of a file. A torn last line is left out if `may_be_torn`, and an error
/// otherwise.
pub(super) fn read(
    bytes: &[u8],
    file: &str,
    record_bytes_max: usize,
    may_be_torn: bool,
) -> Result<RecordLines, HistoryError> {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |index| index + 1);
    let (whole, last) = bytes.split_at(end);
    if may_be_torn && is_torn(last) {
        return Ok(RecordLines {
            messages: read_all(whole, file, record_bytes_max)?,
            torn_from: Some(end),
        });
    }
    Ok(RecordLines { messages: read_all(bytes, file, record_bytes_max)?, torn_from: None })
}

/// Returns whether the end of a file is an incomplete record. No proper prefix of an object is
/// valid JSON, so a last line that is JSON but not a message was not cut off but written by another
/// program.
fn is_torn(last: &[u8]) -> bool {
    let is_blank = || str::from_utf8(last).is_ok_and(|text| text.trim().is_empty());
    serde_json::from_slice::<IgnoredAny>(last).is_err() && !is_blank()
}

fn read_all(
    bytes: &[u8],
    file: &str,
    record_bytes_max: usize,
) -> Result<Vec<Message>, HistoryError> {
    let text =
        str::from_utf8(bytes).map_err(|_| HistoryError::NotUtf8 { file: file.to_owned() })?;
    // Only a line feed separates records: a string may contain all other separators unescaped.
    let lines = text.split('\n').enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| read_line(line, index + 1, file, record_bytes_max)).collect()
}

fn read_line(
    text: &str,
    line: usize,
    file: &str,
    bytes_max: usize,
) -> Result<Message, HistoryError> {
    if text.len() > bytes_max {
        return Err(HistoryError::RecordTooLarge { line, file: file.to_owned(), bytes_max });
    }
    let broken = |_| HistoryError::Line { line, file: file.to_owned() };
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(broken);
    }
    serde_json::from_str::<Value>(text).map_err(broken)?;
    Err(HistoryError::NotMapping { line, file: file.to_owned() })
}

/// Serializes messages, each with a line feed. Guarantees that every record can be read back: it is
/// within the limit and parses as a message.
pub(super) fn write(
    messages: &[Arc<Message>],
    file: &str,
    record_bytes_max: usize,
) -> Result<Vec<u8>, HistoryError> {
    let mut bytes = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let unwritable = |_| HistoryError::Unwritable { number: index + 1, file: file.to_owned() };
        let start = bytes.len();
        // `to_writer` does not change non-ASCII characters and escapes line feeds.
        serde_json::to_writer(&mut bytes, message.as_ref()).map_err(unwritable)?;
        let record = bytes.get(start..).unwrap_or_default();
        if record.len() > record_bytes_max {
            let (line, bytes_max) = (index + 1, record_bytes_max);
            return Err(HistoryError::RecordTooLarge { line, file: file.to_owned(), bytes_max });
        }
        serde_json::from_slice::<Message>(record).map_err(unwritable)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}
