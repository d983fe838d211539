//! Tables that a query reads.

mod csv;
mod json;
mod parquet;
mod quotes;
mod rows;

use std::collections::HashSet;
use std::ops::ControlFlow;

use cofferdam_sdk::{ToolFailure, call};

pub(crate) use self::rows::Rows;
use crate::value::{Kind, Value};

/// Number of rows between checks of the time and progress reports.
const ROWS_PER_CHECK: u64 = 10_000;
/// Time that is reserved for the result, in milliseconds.
const TIME_LEFT_MS_MIN: u128 = 300;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Type of the rows that were read first.
    pub(crate) kind: Kind,
}

/// A row: one value for each column. Columns that were not asked for are null.
pub(crate) type Row = Vec<Value>;

/// Receives rows until it breaks.
pub(crate) type Sink<'s> = dyn FnMut(Row) -> Result<ControlFlow<()>, ToolFailure> + 's;

/// A table whose rows are read one after another, as often as needed.
pub(crate) trait Source {
    fn columns(&self) -> &[Column];

    /// Passes all rows to `sink`. `wanted` has one entry for each column.
    fn scan(&self, wanted: &[bool], sink: &mut Sink<'_>) -> Result<(), ToolFailure>;

    /// Returns the format of a file.
    fn format(&self) -> &'static str;
}

/// Format of a file.
enum Format {
    Csv,
    Json,
    Parquet,
}

/// Returns the format that the ending of a name tells, and whether the file is compressed.
fn format(path: &str) -> Option<(Format, bool)> {
    let name = path.to_ascii_lowercase();
    let (name, is_compressed) = match name.strip_suffix(".gz") {
        Some(name) => (name, true),
        None => (name.as_str(), false),
    };
    match name.rsplit_once('.')?.1 {
        "csv" | "tsv" | "txt" => Some((Format::Csv, is_compressed)),
        "json" | "jsonl" | "ndjson" => Some((Format::Json, is_compressed)),
        "parquet" if !is_compressed => Some((Format::Parquet, false)),
        _ => None,
    }
}

/// Returns whether the name of a file has a known ending.
pub(crate) fn is_known(path: &str) -> bool {
    format(path).is_some()
}

/// Opens a file by the ending of its name.
pub(crate) fn open(path: &str) -> Result<Box<dyn Source>, ToolFailure> {
    match format(path) {
        Some((Format::Csv, is_compressed)) => {
            Ok(Box::new(csv::CsvFile::open(path, is_compressed)?))
        }
        Some((Format::Json, is_compressed)) => {
            Ok(Box::new(json::JsonFile::open(path, is_compressed)?))
        }
        Some((Format::Parquet, _)) => Ok(Box::new(parquet::ParquetFile::open(path)?)),
        None => {
            // A missing file is the more helpful failure.
            crate::files::open(path)?;
            Err(ToolFailure::new(format!("`{path}` has no known format"))
                .suggestion(
                    "pass a file that ends with `.csv`, `.tsv`, `.json`, `.jsonl`, `.ndjson` or \
                     `.parquet`; the text formats also with `.gz`",
                )
                .permanent())
        }
    }
}

/// Counts the rows of a scan and stops it before the host does.
pub(crate) struct Meter {
    rows: u64,
    message: String,
}

impl Meter {
    pub(crate) fn new(path: &str) -> Self {
        Self { rows: 0, message: format!("reading {path}") }
    }

    #[expect(clippy::cast_precision_loss, reason = "progress does not count single rows")]
    pub(crate) fn count(&mut self) -> Result<(), ToolFailure> {
        self.rows += 1;
        if !self.rows.is_multiple_of(ROWS_PER_CHECK) {
            return Ok(());
        }
        call::progress(self.rows as f64, None, Some(&self.message));
        if call::cancelled() || call::time_left().as_millis() < TIME_LEFT_MS_MIN {
            return Err(ToolFailure::new(format!("the time is over after {} rows", self.rows))
                .suggestion("read fewer files at once, use `LIMIT`, or ask for a longer timeout"));
        }
        Ok(())
    }
}

/// Returns distinct column names: a second `name` becomes `name_2`, and an empty one `column_3`.
fn distinct(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    names
        .into_iter()
        .enumerate()
        .map(|(index, name)| {
            let base = if name.is_empty() { format!("column_{}", index + 1) } else { name };
            let mut name = base.clone();
            let mut count = 1;
            while !seen.insert(name.clone()) {
                count += 1;
                name = format!("{base}_{count}");
            }
            name
        })
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::ops::ControlFlow;

    use super::{Source, distinct, open};
    use crate::files::fixture;
    use crate::value::Value;

    /// Returns the rows of a table as text, with `|` between values.
    pub(crate) fn texts(source: &dyn Source) -> Result<Vec<String>, String> {
        let wanted = vec![true; source.columns().len()];
        let mut rows = Vec::new();
        let read = source.scan(&wanted, &mut |row| {
            rows.push(row.iter().map(Value::to_text).collect::<Vec<_>>().join("|"));
            Ok(ControlFlow::Continue(()))
        });
        read.map(|()| rows).map_err(|failure| failure.to_string())
    }

    /// Number of changed copies of a file.
    const ROUNDS: usize = 400;

    /// Reads changed copies of a file and returns how many of them panic instead of ending with rows
    /// or a failure.
    fn mutate(name: &str) -> usize {
        let bytes = std::fs::read(fixture(name)).unwrap();
        let path = std::env::temp_dir().join(format!("{}-{name}", std::process::id()));
        let text = path.to_str().unwrap();
        let mut state = 7_u64;
        let mut panics = 0;
        for round in 0..ROUNDS {
            let mut changed = bytes.clone();
            for _ in 0..=round % 4 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = usize::try_from(state >> 33).unwrap() % changed.len();
                match round % 3 {
                    0 => changed[at] = (state >> 25) as u8,
                    1 => changed.truncate(at.max(1)),
                    _ => changed.insert(at, (state >> 25) as u8),
                }
            }
            std::fs::write(&path, changed).unwrap();
            let read = std::panic::catch_unwind(|| open(text).map(|it| texts(it.as_ref())));
            panics += usize::from(read.is_err());
        }
        std::fs::remove_file(path).unwrap();
        panics
    }

    #[test]
    fn no_text_panics() {
        for name in ["sales.csv", "orders.jsonl", "regions.json"] {
            assert_eq!(mutate(name), 0, "{name}");
        }
    }

    /// The `parquet` crate asserts some properties of a file instead of checking them.
    #[test]
    fn few_bytes_of_parquet_panic() {
        let panics = mutate("events.parquet");
        println!("{panics} of {ROUNDS}");
        assert!(panics < ROUNDS / 20, "{panics} of {ROUNDS}");
    }

    #[test]
    fn unknown_formats_are_refused() {
        let failure = open(&fixture("notes.md")).err().unwrap();
        assert!(failure.message().starts_with("there is no file"), "{failure}");
        let failure = open(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).err().unwrap();
        assert!(failure.message().ends_with("has no known format"), "{failure}");
    }

    #[test]
    fn names_are_made_distinct() {
        let names = ["a", "", "a", "a_2"].map(str::to_owned);
        assert_eq!(distinct(names), ["a", "column_2", "a_2", "a_2_2"]);
    }
}
