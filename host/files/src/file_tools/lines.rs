//! Reads some lines of a file (`FILE-39`), which may be too large to be read at once.

use std::fmt::Write as _;

use serde::Serialize;

use super::operations::OperationRefusal;
use super::requests::LineNumber;
use crate::{FileError, FileStore, StorePath};

/// Files up to this size are read in one step, so that one version is read.
const WHOLE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Chunk size for reading larger files.
const CHUNK_BYTES: u64 = 1024 * 1024;
/// Maximum number of attempts to read a larger file that changes in the meantime.
const TRIES_MAX: usize = 4;

/// Range of line numbers, counted from 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineRange {
    start: u64,
    end: u64,
}

impl LineRange {
    /// Checks the line numbers. The order of the checks decides which reason is reported.
    pub(super) fn new(
        start_line: &LineNumber,
        end_line: Option<&LineNumber>,
    ) -> Result<Self, OperationRefusal> {
        let positive = |name: &str, line: &LineNumber| {
            line.positive().ok_or_else(|| {
                OperationRefusal::Reason(format!("{name} must be a positive integer, got {line}."))
            })
        };
        let start = positive("start_line", start_line)?;
        let Some(end_line) = end_line else { return Ok(Self { start, end: u64::MAX }) };
        let end = positive("end_line", end_line)?;
        if end < start {
            let reason =
                format!("end_line ({end_line}) must not be less than start_line ({start_line}).");
            return Err(OperationRefusal::Reason(reason));
        }
        Ok(Self { start, end })
    }

    fn holds(self, number: u64) -> bool {
        (self.start..=self.end).contains(&number)
    }
}

/// Reads the lines of `range`, each preceded by its number and a tab.
pub(super) async fn read(
    store: &dyn FileStore,
    path: &StorePath,
    range: LineRange,
    bytes_max: u64,
) -> Result<String, OperationRefusal> {
    match store.read(path, WHOLE_BYTES_MAX).await {
        Ok(content) => {
            let mut lines = LineScanner::new(range, bytes_max);
            lines.push(&content, path)?;
            lines.finish(path)
        }
        Err(FileError::TooLarge { .. }) => read_in_chunks(store, path, range, bytes_max).await,
        Err(error) => Err(error.into()),
    }
}

/// Part of a file.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Part {
    text: String,
    /// Offset of `text` in bytes: that of the first whole character at or after the requested
    /// offset.
    offset: u64,
    /// Offset of the next part; `None` at the end of the file.
    next_offset: Option<u64>,
    /// Length of the whole file in bytes.
    file_bytes: u64,
}

/// Reads whole characters of a file from `offset` on, `bytes_max` bytes at most.
pub(super) async fn read_part(
    store: &dyn FileStore,
    path: &StorePath,
    offset: u64,
    bytes_max: u64,
) -> Result<Part, OperationRefusal> {
    let length = |bytes: &[u8]| u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mut bytes = store.read_range(path, offset, bytes_max).await?;
    let file_bytes = store.stat(path).await?.bytes;
    // Number of continuation bytes of a character that begins before the offset.
    let inside = if offset == 0 {
        0
    } else {
        bytes.iter().take(3).take_while(|b| (0x80..0xc0).contains(*b)).count()
    };
    bytes.drain(..inside);
    let offset = offset.saturating_add(u64::try_from(inside).unwrap_or(u64::MAX));
    let is_last = offset.saturating_add(length(&bytes)) >= file_bytes;
    if let Err(error) = std::str::from_utf8(&bytes) {
        if is_last || error.error_len().is_some() {
            return Err(not_text(path));
        }
        bytes.truncate(error.valid_up_to());
    }
    let end = offset.saturating_add(length(&bytes));
    let next_offset = (!is_last && !bytes.is_empty()).then_some(end);
    let text = String::from_utf8(bytes).map_err(|_| not_text(path))?;
    Ok(Part { text, offset, next_offset, file_bytes })
}

async fn read_in_chunks(
    store: &dyn FileStore,
    path: &StorePath,
    range: LineRange,
    bytes_max: u64,
) -> Result<String, OperationRefusal> {
    for _ in 0..TRIES_MAX {
        let version = store.stat(path).await?.version;
        let mut lines = LineScanner::new(range, bytes_max);
        let mut offset = 0;
        loop {
            let chunk = store.read_range(path, offset, CHUNK_BYTES).await?;
            if chunk.is_empty() {
                break;
            }
            offset = offset.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
            lines.push(&chunk, path)?;
        }
        if store.stat(path).await?.version == version {
            return lines.finish(path);
        }
    }
    Err(OperationRefusal::reason(FileError::Conflict { path: path.clone() }))
}

/// Reads content in pieces and collects the requested lines.
struct LineScanner {
    range: LineRange,
    bytes_max: u64,
    /// Number of the current line.
    number: u64,
    is_at_start: bool,
    /// Offset of that line in bytes.
    line_offset: u64,
    /// Number of bytes read so far.
    offset: u64,
    /// Start of a character that the next piece completes.
    split: Vec<u8>,
    lines: String,
}

impl LineScanner {
    fn new(range: LineRange, bytes_max: u64) -> Self {
        Self {
            range,
            bytes_max,
            number: 1,
            is_at_start: true,
            line_offset: 0,
            offset: 0,
            split: Vec::new(),
            lines: String::new(),
        }
    }

    fn push(&mut self, piece: &[u8], path: &StorePath) -> Result<(), OperationRefusal> {
        let joined;
        let piece = if self.split.is_empty() {
            piece
        } else {
            joined = [std::mem::take(&mut self.split).as_slice(), piece].concat();
            &joined
        };
        let text = match std::str::from_utf8(piece) {
            Ok(text) => text,
            // The piece may end inside a character; any other error means that the file is not
            // text.
            Err(error) if error.error_len().is_none() => {
                let (whole, split) = piece.split_at(error.valid_up_to());
                self.split = split.to_vec();
                std::str::from_utf8(whole).map_err(|_| not_text(path))?
            }
            Err(_) => return Err(not_text(path)),
        };
        text.split_inclusive('\n').try_for_each(|part| self.keep(part))
    }

    fn keep(&mut self, part: &str) -> Result<(), OperationRefusal> {
        if self.range.holds(self.number) {
            self.begin();
            self.lines.push_str(part);
            if u64::try_from(self.lines.len()).unwrap_or(u64::MAX) > self.bytes_max {
                let max = self.bytes_max;
                return Err(OperationRefusal::Reason(if self.range.start == self.number {
                    format!(
                        "line {} is longer than {max} bytes; read it in parts with \
                         file_access_read_file and offset={}.",
                        self.number, self.line_offset
                    )
                } else {
                    format!(
                        "these lines are longer than {max} bytes together; ask for fewer lines."
                    )
                }));
            }
        }
        self.offset = self.offset.saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
        self.is_at_start = part.ends_with('\n');
        if self.is_at_start {
            self.line_offset = self.offset;
            self.number = self.number.saturating_add(1);
        }
        Ok(())
    }

    fn begin(&mut self) {
        if self.is_at_start {
            // Writing to a string cannot fail.
            let _ = write!(self.lines, "{}\t", self.number);
        }
    }

    fn finish(mut self, path: &StorePath) -> Result<String, OperationRefusal> {
        if !self.split.is_empty() {
            return Err(not_text(path));
        }
        if self.range.start > self.number {
            let (start, count) = (self.range.start, self.number);
            return Err(OperationRefusal::Reason(format!(
                "start_line {start} is out of range (file has {count} lines)."
            )));
        }
        // A file that ends in a line feed has one more, empty line (`FILE-30`).
        if self.range.holds(self.number) {
            self.begin();
        }
        Ok(self.lines)
    }
}

fn not_text(path: &StorePath) -> OperationRefusal {
    OperationRefusal::reason(FileError::not_text(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> StorePath {
        StorePath::file("d/a").unwrap()
    }

    fn in_pieces(text: &[u8], pieces: usize, start: u64, end: u64) -> Result<String, String> {
        let mut lines = LineScanner::new(LineRange { start, end }, 1000);
        let message = |refusal| match refusal {
            OperationRefusal::NotFound => "not found".to_owned(),
            OperationRefusal::Reason(reason) => reason,
        };
        for piece in text.chunks(pieces) {
            lines.push(piece, &path()).map_err(message)?;
        }
        lines.finish(&path()).map_err(message)
    }

    #[test]
    fn pieces_of_any_size_give_the_same_lines() {
        let text = "eins\r\nzwölf €\n𝄞\n\nlast".as_bytes();
        for pieces in 1..=text.len() {
            assert_eq!(
                in_pieces(text, pieces, 1, u64::MAX).unwrap(),
                "1\teins\r\n2\tzwölf €\n3\t𝄞\n4\t\n5\tlast"
            );
            assert_eq!(in_pieces(text, pieces, 2, 3).unwrap(), "2\tzwölf €\n3\t𝄞\n");
            assert_eq!(in_pieces(b"a\n", pieces, 2, 9).unwrap(), "2\t");
            assert!(in_pieces(b"a\n\xe2\x82", pieces, 1, 1).unwrap_err().contains("not UTF-8"));
            assert!(in_pieces(b"\xff\nb", pieces, 2, 2).unwrap_err().contains("not UTF-8"));
        }
    }

    #[test]
    fn an_answer_is_bounded() {
        assert!(
            in_pieces(&[b'x'; 2000], 100, 1, 1).unwrap_err().contains("longer than 1000 bytes")
        );
        assert!(in_pieces(&[b'\n'; 5000], 100, 4990, 5010).is_ok());
    }
}
