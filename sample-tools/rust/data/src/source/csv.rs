//! CSV files.

use std::io::{BufRead as _, BufReader, Read};

use cofferdam_sdk::ToolFailure;
use csv::{ByteRecord, Reader, ReaderBuilder};
use flate2::read::MultiGzDecoder;

use super::quotes::Quotes;
use super::{Column, Meter, Sink, Source, distinct};
use crate::files;
use crate::value::{Kind, Value, kind_of_cell};

/// Number of rows from which types are inferred.
const SAMPLE_ROWS: usize = 5_000;
/// Number of bytes in which the delimiter is looked for.
const SNIFFED_BYTES: usize = 8 << 10;
/// Maximum bytes of a row. A quote that is not closed makes one row of the rest of a file.
const ROW_BYTES_MAX: u64 = 4 << 20;

/// A CSV file with a row of column names.
pub(crate) struct CsvFile {
    path: String,
    is_compressed: bool,
    delimiter: u8,
    columns: Vec<Column>,
}

/// Opens a file for reading, decompressed.
pub(super) fn reader(path: &str, is_compressed: bool) -> Result<Box<dyn Read>, ToolFailure> {
    let (file, _) = files::open(path)?;
    Ok(if is_compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
}

impl CsvFile {
    pub(crate) fn open(path: &str, is_compressed: bool) -> Result<Self, ToolFailure> {
        let mut start = Vec::new();
        reader(path, is_compressed)?
            .take(SNIFFED_BYTES as u64)
            .read_to_end(&mut start)
            .map_err(|error| unreadable(path, &error))?;
        if is_utf16(&start) {
            return Err(ToolFailure::new(format!(
                "`{path}` looks like UTF-16 text, expected UTF-8"
            ))
            .suggestion("have the file converted, for example by `iconv -f UTF-16 -t UTF-8`")
            .permanent());
        }
        let mut file = Self {
            path: path.to_owned(),
            is_compressed,
            delimiter: delimiter(&start),
            columns: Vec::new(),
        };
        let mut rows = file.rows()?;
        if !rows.next()? {
            return Err(ToolFailure::new(format!(
                "`{path}` is empty: it has no row of column names"
            ))
            .permanent());
        }
        let names =
            distinct(rows.row.iter().map(|it| String::from_utf8_lossy(it).trim().to_owned()));
        let mut kinds = vec![Kind::Empty; names.len()];
        for _ in 0..SAMPLE_ROWS {
            if !rows.next()? {
                break;
            }
            for (kind, cell) in kinds.iter_mut().zip(&rows.row) {
                *kind = kind.with(kind_of_cell(&String::from_utf8_lossy(cell)));
            }
        }
        let columns = names.into_iter().zip(kinds);
        file.columns = columns.map(|(name, kind)| Column { name, kind }).collect();
        Ok(file)
    }

    fn rows(&self) -> Result<CsvRows<'_>, ToolFailure> {
        let limited = Limited {
            inner: reader(&self.path, self.is_compressed)?,
            left: u64::MAX,
            quotes: Quotes::new(self.delimiter),
        };
        let reader = ReaderBuilder::new()
            .delimiter(self.delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(limited);
        Ok(CsvRows { path: &self.path, reader, row: ByteRecord::new() })
    }
}

impl Source for CsvFile {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn scan(&self, wanted: &[bool], sink: &mut Sink<'_>) -> Result<(), ToolFailure> {
        let mut rows = self.rows()?;
        let mut meter = Meter::new(&self.path);
        rows.next()?;
        while rows.next()? {
            meter.count()?;
            if rows.row.len() > self.columns.len() {
                return Err(self.ragged(&rows.row));
            }
            let cells = self.columns.iter().zip(wanted).enumerate();
            let row = cells.map(|(index, (column, is_wanted))| match rows.row.get(index) {
                Some(cell) if *is_wanted => {
                    Value::of_cell(&String::from_utf8_lossy(cell), column.kind)
                }
                _ => Value::Null,
            });
            if sink(row.collect())?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn format(&self) -> &'static str {
        "csv"
    }
}

impl CsvFile {
    fn ragged(&self, row: &ByteRecord) -> ToolFailure {
        let line = row.position().map_or(0, csv::Position::line);
        ToolFailure::new(format!(
            "line {line} of `{}` has {} cells, expected at most {}",
            self.path,
            row.len(),
            self.columns.len()
        ))
        .suggestion("have the file corrected: a cell with a delimiter needs quotes")
        .permanent()
    }
}

/// Rows of a file, the first of which has the names.
struct CsvRows<'f> {
    path: &'f str,
    reader: Reader<Limited>,
    row: ByteRecord,
}

impl CsvRows<'_> {
    fn next(&mut self) -> Result<bool, ToolFailure> {
        let line = self.reader.position().line();
        self.reader.get_mut().left = ROW_BYTES_MAX;
        self.reader.read_byte_record(&mut self.row).map_err(|error| {
            ToolFailure::new(format!("`{}` cannot be read from line {line}: {error}", self.path))
                .permanent()
        })
    }
}

/// A reader that fails after a number of bytes, and at its end if a quote is open.
struct Limited {
    inner: Box<dyn Read>,
    left: u64,
    quotes: Quotes,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if read == 0 && !buffer.is_empty() && self.quotes.is_open() {
            return Err(std::io::Error::other("a quote is not closed"));
        }
        self.quotes.follow(buffer.get(..read).unwrap_or_default());
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            std::io::Error::other(format!(
                "a row has more than {ROW_BYTES_MAX} bytes, perhaps because of a quote that is not \
                 closed"
            ))
        })?;
        Ok(read)
    }
}

pub(super) fn unreadable(path: &str, error: &dyn std::error::Error) -> ToolFailure {
    ToolFailure::new(format!("`{path}` cannot be read: {error}")).permanent()
}

/// Returns whether text begins like UTF-16: with a byte order mark, or with many zeros, which are
/// half of the bytes of Latin letters.
fn is_utf16(start: &[u8]) -> bool {
    let zeros = start.iter().filter(|byte| **byte == 0).count();
    start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") || zeros * 4 > start.len()
}

/// Returns the most frequent delimiter of the first line.
fn delimiter(start: &[u8]) -> u8 {
    let mut line = Vec::new();
    // Reading from memory does not fail.
    let _ = BufReader::new(start).read_until(b'\n', &mut line);
    let mut is_quoted = false;
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0), (b'|', 0)];
    for byte in line {
        is_quoted ^= byte == b'"';
        for (delimiter, count) in &mut counts {
            *count += usize::from(byte == *delimiter && !is_quoted);
        }
    }
    // Of equal counts, `max_by_key` returns the last one.
    counts.iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(delimiter, _)| *delimiter)
}

#[cfg(test)]
mod tests {
    use super::{CsvFile, delimiter, is_utf16};
    use crate::files::fixture;
    use crate::source::Source as _;
    use crate::source::tests::texts;
    use crate::value::Kind;

    #[test]
    fn types_come_from_the_first_rows() {
        let file = CsvFile::open(&fixture("sales.csv"), false).unwrap();
        let columns: Vec<_> =
            file.columns().iter().map(|column| (column.name.as_str(), column.kind)).collect();
        assert_eq!(
            columns,
            [
                ("date", Kind::Text),
                ("region", Kind::Text),
                ("product", Kind::Text),
                ("units", Kind::Integer),
                ("amount", Kind::Number),
                ("paid", Kind::Boolean),
            ]
        );
        let rows = texts(&file).unwrap();
        assert_eq!(rows[0], "2026-01-03|north|tea|12|35.5|true");
        assert_eq!(rows.len(), 6);
    }

    #[test]
    fn a_row_with_too_many_cells_is_refused() {
        let file = CsvFile::open(&fixture("ragged.csv"), false).unwrap();
        let failure = texts(&file).unwrap_err();
        assert!(failure.contains("line 3 of"), "{failure}");
        assert!(failure.contains("has 3 cells, expected at most 2"), "{failure}");
    }

    #[test]
    fn utf16_is_refused() {
        let latin = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let marked = "\u{feff}a,größe\n1,2\n";
        assert!(is_utf16(&latin(marked)));
        assert!(is_utf16(&latin("a,b\n1,2\n")));
        assert!(is_utf16(&marked.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>()));
        assert!(!is_utf16(marked.as_bytes()));
        assert!(!is_utf16(b"a,b\0c,d\n"));
        assert!(!is_utf16(b""));
        let path = std::env::temp_dir().join(format!("{}-utf16.csv", std::process::id()));
        std::fs::write(&path, latin(marked)).unwrap();
        let failure = CsvFile::open(path.to_str().unwrap(), false).err().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            failure.to_string(),
            format!(
                "`{}` looks like UTF-16 text, expected UTF-8; have the file converted, for example \
                 by `iconv -f UTF-16 -t UTF-8`",
                path.display()
            )
        );
    }

    #[test]
    fn the_delimiter_is_found() {
        for (line, expected) in [
            ("a,b,c\n1;2;3;4;5", b','),
            ("a;b;c", b';'),
            ("a\tb", b'\t'),
            ("\"a,b,c\"|d", b'|'),
            ("a", b','),
            ("", b','),
        ] {
            assert_eq!(delimiter(line.as_bytes()), expected, "{line}");
        }
    }
}
