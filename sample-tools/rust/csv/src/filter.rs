//! Filters rows by conditions.

use std::cmp::Ordering;

use cofferdam_sdk::{ToolFailure, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::numbers;
use crate::room::{self, Room};
use crate::table::{Table, cell};

/// Advice about a result that is too long.
const ADVICE: &str = "pass the names of fewer columns as `columns`";

/// A condition on one column.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Condition {
    /// The name of the column.
    column: String,
    /// How to compare the cell with the value.
    operator: Operator,
    /// The value to compare with. Two numbers are compared as numbers, everything else as text.
    value: String,
}

/// A comparison.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Operator {
    Equals,
    NotEquals,
    Less,
    AtMost,
    Greater,
    AtLeast,
    /// The cell contains the value; case counts.
    Contains,
}

/// Rows that meet the conditions.
#[derive(Debug, Serialize)]
pub struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    /// Number of rows that meet the conditions, including rows over the limit.
    total: u64,
    /// True if rows were dropped because of the limit, or of the length of the result.
    truncated: bool,
    /// What to do about rows that were dropped because of the length of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Returns the rows of a CSV file that meet all conditions, in the order of the file, as many as
/// fit in 256 KiB.
#[tool(title = "Filter a CSV file", read_only, idempotent, open_world = false)]
pub fn filter(
    /// The path of the file, for example `/data/sales.csv`.
    file: String,
    /// What a row has to meet; every row does if there are none.
    #[tool(default)]
    conditions: Vec<Condition>,
    /// The names of the columns to return; all if absent.
    columns: Option<Vec<String>>,
    /// At most this many rows are returned; all are counted.
    #[tool(default = 100)]
    limit: usize,
    /// What separates cells.
    #[tool(default = ',')]
    delimiter: char,
) -> Result<Rows, ToolFailure> {
    let mut table = Table::open(&file, delimiter)?;
    let tests = conditions.iter().map(|it| Test::of(it, &table)).collect::<Result<Vec<_>, _>>()?;
    let names = columns.unwrap_or_else(|| table.columns().to_vec());
    let shown = names.iter().map(|name| table.column(name)).collect::<Result<Vec<_>, _>>()?;
    let mut room = Room::new();
    if !room.take(&names) {
        return Err(room::too_long("the row of column names", ADVICE));
    }
    let mut found =
        Rows { columns: names, rows: Vec::new(), total: 0, truncated: false, note: None };
    while let Some(row) = table.next()? {
        if !tests.iter().all(|test| test.accepts(cell(row, test.column))) {
            continue;
        }
        found.total += 1;
        found.truncated |= found.rows.len() >= limit;
        if !found.truncated {
            let cells: Vec<_> = shown.iter().map(|column| cell(row, *column)).collect();
            found.add(&cells, &mut room)?;
        }
    }
    Ok(found)
}

impl Rows {
    /// Adds a row, or a note if it does not fit.
    fn add(&mut self, cells: &[&str], room: &mut Room) -> Result<(), ToolFailure> {
        if room.take(&cells) {
            self.rows.push(cells.iter().map(|cell| (*cell).to_owned()).collect());
            return Ok(());
        }
        if self.rows.is_empty() {
            return Err(room::too_long("the first row", ADVICE));
        }
        self.truncated = true;
        self.note = Some(room::note("other rows", ADVICE));
        Ok(())
    }
}

/// Condition prepared for a table: its column is resolved and its number is parsed.
struct Test<'a> {
    column: usize,
    operator: Operator,
    value: &'a str,
    number: Option<f64>,
}

impl<'a> Test<'a> {
    fn of(condition: &'a Condition, table: &Table) -> Result<Self, ToolFailure> {
        Ok(Self {
            column: table.column(&condition.column)?,
            operator: condition.operator,
            value: &condition.value,
            number: numbers::parse(&condition.value),
        })
    }

    fn accepts(&self, cell: &str) -> bool {
        let order = self.order(cell);
        match self.operator {
            Operator::Equals => order == Ordering::Equal,
            Operator::NotEquals => order != Ordering::Equal,
            Operator::Less => order == Ordering::Less,
            Operator::AtMost => order != Ordering::Greater,
            Operator::Greater => order == Ordering::Greater,
            Operator::AtLeast => order != Ordering::Less,
            Operator::Contains => cell.contains(self.value),
        }
    }

    fn order(&self, cell: &str) -> Ordering {
        let numbers = numbers::parse(cell).zip(self.number);
        let numeric = numbers.and_then(|(cell, value)| cell.partial_cmp(&value));
        numeric.unwrap_or_else(|| cell.cmp(self.value))
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{json, testing};

    use super::filter;
    use crate::table::{SALES, Written};

    #[track_caller]
    fn check(column: &str, operator: &str, value: &str, expected: &[&str]) {
        let arguments = json!({
            "file": SALES,
            "conditions": [{"column": column, "operator": operator, "value": value}],
            "columns": ["amount"],
        });
        let found = testing::call::<filter>(arguments).unwrap();
        let rows: Vec<_> =
            found["rows"].as_array().unwrap().iter().map(|row| row[0].clone()).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn compares() {
        check("region", "equals", "south", &["21", "9.75"]);
        check("region", "not_equals", "south", &["35.50", "14.25", "118.9"]);
        check("amount", "less", "21", &["14.25", "9.75"]);
        check("amount", "at_most", "21.0", &["21", "14.25", "9.75"]);
        check("amount", "greater", "100", &["118.9"]);
        check("amount", "at_least", "1e2", &["118.9"]);
        check("date", "at_least", "2026-01-07", &["118.9", "9.75"]);
        check("product", "contains", "tea", &["35.50", "118.9", "9.75"]);
        check("units", "equals", "", &["14.25"]);
    }

    #[test]
    fn joins_conditions_and_counts_what_it_leaves_out() {
        let conditions = json!([
            {"column": "product", "operator": "contains", "value": "tea"},
            {"column": "paid", "operator": "equals", "value": "true"},
        ]);
        let found =
            testing::call::<filter>(json!({"file": SALES, "conditions": conditions, "limit": 1}))
                .unwrap();
        assert_eq!(found["columns"].as_array().unwrap().len(), 6);
        assert_eq!(found["rows"], json!([["2026-01-03", "north", "tea", "12", "35.50", "true"]]));
        assert_eq!((&found["total"], &found["truncated"]), (&json!(2), &json!(true)));
        assert_eq!(testing::call::<filter>(json!({"file": SALES})).unwrap()["total"], 5);
    }

    #[test]
    fn long_results_end_early() {
        let wide = "x".repeat(100 << 10);
        let file = Written::new("wide.csv", &format!("a,b\n1,{wide}\n2,{wide}\n3,{wide}\n"));
        let found = testing::call::<filter>(json!({"file": file.path()})).unwrap();
        assert_eq!(found["rows"].as_array().unwrap().len(), 2);
        assert_eq!((&found["total"], &found["truncated"]), (&json!(3), &json!(true)));
        assert_eq!(
            found["note"],
            "the other rows are left out: a result has at most 262144 bytes; pass the names of \
             fewer columns as `columns`"
        );
        let found = testing::call::<filter>(json!({"file": file.path(), "columns": ["a"]}));
        assert_eq!(found.unwrap()["rows"], json!([["1"], ["2"], ["3"]]));
    }

    #[test]
    fn a_row_that_does_not_fit_is_refused() {
        let file = Written::new("row.csv", &format!("a\n{}\n", "x".repeat(300 << 10)));
        let failure = testing::call::<filter>(json!({"file": file.path()})).unwrap_err();
        assert_eq!(
            failure.to_string(),
            "the first row of the result is too long, expected a result of at most 262144 bytes; \
             pass the names of fewer columns as `columns`"
        );
        let names = vec!["long name of a column"; 20_000].join(",");
        let file = Written::new("names.csv", &format!("{names}\n"));
        let failure = testing::call::<filter>(json!({"file": file.path()})).unwrap_err();
        assert!(failure.message().starts_with("the row of column names of the result"));
    }

    #[test]
    fn knows_its_columns() {
        let failure =
            testing::call::<filter>(json!({"file": SALES, "columns": ["unit"]})).unwrap_err();
        assert_eq!(failure.message(), "there is no column `unit`");
        assert!(failure.suggested().unwrap().starts_with("did you mean `units`?"));
    }
}
