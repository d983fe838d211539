//! Reads a CSV file as rows under column names.

use std::fs::File;
use std::io::{self, Read};

use cofferdam_sdk::{ToolFailure, call};
use csv::{Reader, ReaderBuilder, StringRecord};

use crate::quotes::Quotes;
use crate::{names, paths};

/// Number of rows between progress reports: small enough to be noticed, large enough to be cheap.
const ROWS_PER_REPORT: u64 = 10_000;

/// Maximum bytes of a row. A quote that is not closed makes one row of the rest of a file.
const ROW_BYTES_MAX: u64 = 4 << 20;

/// Open file whose first row contains the names of the columns.
pub(crate) struct Table {
    columns: Vec<String>,
    reader: Reader<Limited>,
    row: StringRecord,
    rows: u64,
    size: u64,
}

impl Table {
    pub(crate) fn open(path: &str, delimiter: char) -> Result<Self, ToolFailure> {
        let delimiter = u8::try_from(delimiter).map_err(|_| {
            ToolFailure::new(format!("the delimiter `{delimiter}` is not an ASCII character"))
                .suggestion("pass `,`, `;`, `|` or a tab")
                .permanent()
        })?;
        let (file, size) = paths::open(path)?;
        let limited = Limited { file, left: ROW_BYTES_MAX, quotes: Quotes::new(delimiter) };
        let mut reader = ReaderBuilder::new().delimiter(delimiter).from_reader(limited);
        let columns: Vec<String> = reader
            .headers()
            .map_err(|error| unreadable(&error, 1))?
            .iter()
            .map(str::to_owned)
            .collect();
        if columns.is_empty() {
            return Err(ToolFailure::new(format!(
                "`{path}` is empty: it has no row of column names"
            ))
            .permanent());
        }
        Ok(Self { columns, reader, row: StringRecord::new(), rows: 0, size })
    }

    pub(crate) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns the index of a column. A long name may be cut as it is shown.
    pub(crate) fn column(&self, name: &str) -> Result<usize, ToolFailure> {
        let position = |is: &dyn Fn(&str) -> bool| self.columns.iter().position(|it| is(it));
        let found = position(&|it| it == name).or_else(|| position(&|it| names::shown(it) == name));
        found.ok_or_else(|| {
            ToolFailure::new(format!("there is no column `{name}`"))
                .suggestion(names::suggestion(name, &self.columns))
                .permanent()
        })
    }

    /// Returns the next row, or `None` after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<&StringRecord>, ToolFailure> {
        let line = self.reader.position().line();
        self.reader.get_mut().left = ROW_BYTES_MAX;
        let is_row = self.reader.read_record(&mut self.row);
        if !is_row.map_err(|error| unreadable(&error, line))? {
            return Ok(None);
        }
        self.rows += 1;
        if self.rows.is_multiple_of(ROWS_PER_REPORT) {
            self.report();
        }
        Ok(Some(&self.row))
    }

    /// Returns the number of rows that [`Self::next`] has returned, which is the number of the last
    /// row, from 1.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    #[expect(clippy::cast_precision_loss, reason = "progress does not count single bytes")]
    fn report(&self) {
        let read = self.reader.position().byte();
        call::progress(read as f64, Some(self.size as f64), Some(&format!("{} rows", self.rows)));
    }
}

/// Returns a failure that names the line for the model: that of an error in the file is part of its
/// message, and otherwise the row begins in `line`.
fn unreadable(error: &csv::Error, line: u64) -> ToolFailure {
    let message = match error.kind() {
        csv::ErrorKind::Io(_) => format!("the row from line {line} cannot be read: {error}"),
        _ => error.to_string(),
    };
    ToolFailure::new(message).permanent()
}

/// A file that fails after a number of bytes, and at its end if a quote is open.
struct Limited {
    file: File,
    left: u64,
    quotes: Quotes,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        if read == 0 && !buffer.is_empty() && self.quotes.is_open() {
            return Err(io::Error::other("a quote is not closed"));
        }
        self.quotes.follow(buffer.get(..read).unwrap_or_default());
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::other(format!(
                "a row has more than {ROW_BYTES_MAX} bytes, perhaps because of a quote that is not \
                 closed"
            ))
        })?;
        Ok(read)
    }
}

/// Returns a cell, or an empty string if the row is shorter.
pub(crate) fn cell(row: &StringRecord, column: usize) -> &str {
    row.get(column).unwrap_or_default()
}

/// Path of the sample file.
#[cfg(test)]
pub(crate) const SALES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/sales.csv");

/// File that a test writes.
#[cfg(test)]
pub(crate) struct Written(std::path::PathBuf);

#[cfg(test)]
impl Written {
    pub(crate) fn new(name: &str, content: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

#[cfg(test)]
impl Drop for Written {
    fn drop(&mut self) {
        // A file that stays harms no other test.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{SALES, Table, Written};

    fn message<T>(result: Result<T, cofferdam_sdk::ToolFailure>) -> String {
        result.err().map(|failure| failure.to_string()).unwrap_or_default()
    }

    #[test]
    fn reads_rows() {
        let mut table = Table::open(SALES, ',').unwrap();
        assert_eq!(table.columns(), ["date", "region", "product", "units", "amount", "paid"]);
        assert_eq!(table.column("amount"), Ok(4));
        let mut products = Vec::new();
        while let Some(row) = table.next().unwrap() {
            products.push(super::cell(row, 2).to_owned());
        }
        assert_eq!(products, ["tea", "coffee", "coffee", "tea", "tea \"gold\""]);
        assert_eq!(table.rows(), 5);
    }

    #[test]
    fn long_rows_are_refused() {
        let long = "x".repeat(5 << 20);
        let expected = |line| {
            format!(
                "the row from line {line} cannot be read: a row has more than 4194304 bytes, \
                 perhaps because of a quote that is not closed"
            )
        };
        let file = Written::new("quote.csv", &format!("a\n1\n\"{}", "2\n".repeat(3 << 20)));
        let mut table = Table::open(file.path(), ',').unwrap();
        assert!(table.next().unwrap().is_some());
        assert_eq!(message(table.next().map(drop)), expected(3));
        let file = Written::new("cell.csv", &format!("a\n{long}\n"));
        let mut table = Table::open(file.path(), ',').unwrap();
        assert_eq!(message(table.next().map(drop)), expected(2));
        let file = Written::new("header.csv", &long);
        assert_eq!(message(Table::open(file.path(), ',')), expected(1));
    }

    #[test]
    fn open_quotes_are_refused() {
        let file = Written::new("open.csv", "a,b\n1,2\n\"x,1\n2,3\n");
        let mut table = Table::open(file.path(), ',').unwrap();
        assert!(table.next().unwrap().is_some());
        assert_eq!(
            message(table.next().map(drop)),
            "the row from line 3 cannot be read: a quote is not closed"
        );
        let file = Written::new("open-header.csv", "\"a,b\n");
        assert_eq!(
            message(Table::open(file.path(), ',')),
            "the row from line 1 cannot be read: a quote is not closed"
        );
    }

    #[test]
    fn says_what_is_wrong() {
        let table = Table::open(SALES, ',').unwrap();
        assert_eq!(
            message(table.column("Amnt")),
            "there is no column `Amnt`; did you mean `amount`? The columns are `date`, `region`, `product`, \
             `units`, `amount`, `paid`"
        );
        assert_eq!(
            message(Table::open(SALES, '→')),
            "the delimiter `→` is not an ASCII character; pass `,`, `;`, `|` or a tab"
        );
        let mut table =
            Table::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ragged.csv"), ',')
                .unwrap();
        assert_eq!(
            message(table.next().map(drop)),
            "CSV error: record 1 (line: 2, byte: 4): found record with 3 fields, but the previous \
             record has 2 fields"
        );
        let empty = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/empty.csv");
        assert_eq!(
            message(Table::open(empty, ',')),
            format!("`{empty}` is empty: it has no row of column names")
        );
    }
}
