//! Describes the columns of a file.

use cofferdam_sdk::{ToolFailure, tool};
use serde::Serialize;

use crate::names;
use crate::numbers;
use crate::table::{Table, cell};

/// Maximum number of columns that are described.
const COLUMNS_MAX: usize = 200;

/// Maximum number of example values per column.
const EXAMPLES_MAX: usize = 3;

/// Maximum length of an example in characters. The rest of a long cell does not help to understand
/// the column.
const EXAMPLE_LENGTH_MAX: usize = 60;

/// Columns and length of a file.
#[derive(Debug, Serialize)]
pub struct Schema {
    /// Number of rows, without the row of column names.
    rows: u64,
    columns: Vec<Column>,
    /// Number of columns that are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_columns: Option<usize>,
}

/// Description of a column.
#[derive(Debug, Serialize)]
pub struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: Kind,
    /// Number of empty cells.
    empty: u64,
    /// The first distinct values.
    examples: Vec<String>,
}

/// The narrowest type of all cells that are not empty.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// All cells are empty.
    Empty,
    Integer,
    Number,
    Boolean,
    /// `YYYY-MM-DD`
    Date,
    Text,
}

/// Describes a CSV file: its columns with their types, examples and number of empty cells, and how
/// many rows it has. Call this first to learn the names of the columns. Only the first 200 columns
/// are described; `more_columns` is the number of the others.
#[tool(title = "Columns of a CSV file", read_only, idempotent, open_world = false)]
pub fn schema(
    /// The path of the file, for example `/data/sales.csv`.
    file: String,
    /// What separates cells.
    #[tool(default = ',')]
    delimiter: char,
) -> Result<Schema, ToolFailure> {
    let mut table = Table::open(&file, delimiter)?;
    let mut columns: Vec<Column> = table
        .columns()
        .iter()
        .take(COLUMNS_MAX)
        .map(|name| Column {
            name: names::shown(name),
            kind: Kind::Empty,
            empty: 0,
            examples: Vec::new(),
        })
        .collect();
    while let Some(row) = table.next()? {
        for (index, column) in columns.iter_mut().enumerate() {
            column.see(cell(row, index));
        }
    }
    let more_columns = table.columns().len().checked_sub(COLUMNS_MAX).filter(|more| *more > 0);
    Ok(Schema { rows: table.rows(), columns, more_columns })
}

impl Column {
    fn see(&mut self, cell: &str) {
        if cell.trim().is_empty() {
            self.empty += 1;
            return;
        }
        self.kind = self.kind.with(Kind::of(cell.trim()));
        if self.examples.len() < EXAMPLES_MAX {
            let example: String = cell.chars().take(EXAMPLE_LENGTH_MAX).collect();
            if !self.examples.contains(&example) {
                self.examples.push(example);
            }
        }
    }
}

impl Kind {
    fn of(cell: &str) -> Self {
        match cell {
            _ if cell.parse::<i64>().is_ok() => Self::Integer,
            _ if numbers::parse(cell).is_some() => Self::Number,
            _ if cell.eq_ignore_ascii_case("true") || cell.eq_ignore_ascii_case("false") => {
                Self::Boolean
            }
            _ if is_date(cell) => Self::Date,
            _ => Self::Text,
        }
    }

    /// Returns the narrowest type that includes both.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Empty, kind) => kind,
            (kind, other) if kind == other => kind,
            (Self::Integer | Self::Number, Self::Integer | Self::Number) => Self::Number,
            _ => Self::Text,
        }
    }
}

/// Returns whether a cell looks like `2026-01-31`, without checking the calendar.
fn is_date(cell: &str) -> bool {
    let pattern = b"0000-00-00";
    cell.len() == pattern.len()
        && cell.bytes().zip(pattern).all(|(byte, expected)| match expected {
            b'-' => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{json, testing};

    use super::{Kind, schema};
    use crate::table::{SALES, Written};

    #[test]
    fn describes_columns() {
        let value = testing::call::<schema>(json!({"file": SALES})).unwrap();
        assert_eq!(value["rows"], 5);
        let columns: Vec<_> =
            value["columns"].as_array().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            columns,
            [
                r#"{"name":"date","type":"date","empty":0,"examples":["2026-01-03","2026-01-04","2026-01-07"]}"#,
                r#"{"name":"region","type":"text","empty":0,"examples":["north","south","west, far"]}"#,
                r#"{"name":"product","type":"text","empty":0,"examples":["tea","coffee","tea \"gold\""]}"#,
                r#"{"name":"units","type":"integer","empty":1,"examples":["12","3","40"]}"#,
                r#"{"name":"amount","type":"number","empty":0,"examples":["35.50","21","14.25"]}"#,
                r#"{"name":"paid","type":"boolean","empty":0,"examples":["true","false"]}"#,
            ]
        );
    }

    #[test]
    fn many_columns_are_cut() {
        let names: Vec<_> = (0..20_000).map(|number| format!("column {number}")).collect();
        let file = Written::new("columns.csv", &format!("{}\n", names.join(",")));
        let value = testing::call::<schema>(json!({"file": file.path()})).unwrap();
        assert_eq!(value["columns"].as_array().unwrap().len(), 200);
        assert_eq!(value["more_columns"], 19_800);
        let name = "a".repeat(300);
        let file = Written::new("name.csv", &format!("{name}\n"));
        let value = testing::call::<schema>(json!({"file": file.path()})).unwrap();
        assert_eq!(value["columns"][0]["name"], format!("{}…", "a".repeat(200)));
        assert_eq!(value["more_columns"], json!(null));
    }

    #[test]
    fn types_widen() {
        let check = |cells: &[&str], expected| {
            let found = cells.iter().fold(Kind::Empty, |kind, cell| kind.with(Kind::of(cell)));
            assert_eq!(found, expected, "{cells:?}");
        };
        check(&[], Kind::Empty);
        check(&["1", "-2"], Kind::Integer);
        check(&["1", "2.5", "3"], Kind::Number);
        check(&["1", "x", "2"], Kind::Text);
        check(&["true", "FALSE"], Kind::Boolean);
        check(&["true", "1"], Kind::Text);
        check(&["2026-01-31", "2026-13-99"], Kind::Date);
        check(&["2026-01-31", "2026/01/31"], Kind::Text);
    }
}
