//! Counts and sums rows by group.

use std::collections::BTreeMap;

use cofferdam_sdk::{ToolFailure, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::numbers;
use crate::room::{self, Room};
use crate::table::{Table, cell};

/// Maximum number of groups. Otherwise a column of unique values would copy the file into memory.
const GROUPS_MAX: usize = 100_000;

/// Maximum bytes of the cells of all groups: less than the memory of a call, so that the call ends
/// with a failure before the host ends it.
const CELL_BYTES_MAX: usize = 24 << 20;

/// Advice about a result that is too long.
const ADVICE: &str = "group by fewer columns, or by columns with shorter cells";

/// What to compute for each group.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct Aggregate {
    /// What to compute. Empty cells are left out of everything.
    function: Function,
    /// The name of the column to compute it for. Only `count` can do without: it then counts rows.
    column: Option<String>,
}

/// A computation.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Function {
    Count,
    Sum,
    Min,
    Max,
    Mean,
}

/// Groups with their aggregates.
#[derive(Debug, Serialize)]
pub struct Groups {
    /// One object per group: the cells that its rows share, then the aggregates, such as
    /// `sum(amount)`.
    groups: Vec<Map<String, Value>>,
    /// Number of groups, including groups over the limit.
    total: usize,
    /// True if groups were dropped because of the limit, or of the length of the result.
    truncated: bool,
    /// What to do about groups that were dropped because of the length of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// Groups the rows of a CSV file by one or more columns and computes counts, sums, minima, maxima
/// and means per group. Groups are sorted by their cells, and as many are returned as fit in 256
/// KiB.
#[tool(title = "Group a CSV file", read_only, idempotent, open_world = false)]
pub fn group_by(
    /// The path of the file, for example `/data/sales.csv`.
    file: String,
    /// The names of the columns whose cells make a group; one group of all rows if there are none.
    by: Vec<String>,
    /// What to compute for each group.
    #[tool(default = rows_only())]
    aggregates: Vec<Aggregate>,
    /// At most this many groups are returned.
    #[tool(default = 100)]
    limit: usize,
    /// What separates cells.
    #[tool(default = ',')]
    delimiter: char,
) -> Result<Groups, ToolFailure> {
    let mut table = Table::open(&file, delimiter)?;
    let keys = by.iter().map(|name| table.column(name)).collect::<Result<Vec<_>, _>>()?;
    let plans = aggregates.iter().map(|it| Plan::of(it, &table)).collect::<Result<Vec<_>, _>>()?;
    let mut groups = BTreeMap::new();
    let mut number = 0;
    let mut bytes = 0;
    while let Some(row) = table.next()? {
        number += 1;
        let key: Vec<String> = keys.iter().map(|column| cell(row, *column).to_owned()).collect();
        let (groups_before, key_bytes) = (groups.len(), key.iter().map(String::len).sum::<usize>());
        let tallies = groups.entry(key).or_insert_with(|| vec![Tally::default(); plans.len()]);
        for (plan, tally) in plans.iter().zip(tallies) {
            plan.add(tally, row, number)?;
        }
        if groups.len() > groups_before {
            bytes += key_bytes;
        }
        if groups.len() > GROUPS_MAX {
            return Err(too_many_groups(&format!("there are more than {GROUPS_MAX} groups")));
        }
        if bytes > CELL_BYTES_MAX {
            let message = format!("the cells of the groups have more than {CELL_BYTES_MAX} bytes");
            return Err(too_many_groups(&message));
        }
    }
    let mut found = Groups {
        total: groups.len(),
        truncated: groups.len() > limit,
        groups: Vec::new(),
        note: None,
    };
    let mut room = Room::new();
    for (key, tallies) in groups.into_iter().take(limit) {
        if !found.add(group(&by, key, &plans, &tallies), &mut room)? {
            break;
        }
    }
    Ok(found)
}

impl Groups {
    /// Adds a group. Returns false after adding a note if it does not fit.
    fn add(&mut self, group: Map<String, Value>, room: &mut Room) -> Result<bool, ToolFailure> {
        if room.take(&group) {
            self.groups.push(group);
            return Ok(true);
        }
        if self.groups.is_empty() {
            return Err(room::too_long("the first group", ADVICE));
        }
        self.truncated = true;
        self.note = Some(room::note("other groups", ADVICE));
        Ok(false)
    }
}

fn rows_only() -> Vec<Aggregate> {
    vec![Aggregate { function: Function::Count, column: None }]
}

fn too_many_groups(message: &str) -> ToolFailure {
    ToolFailure::new(message)
        .suggestion("group by columns with fewer different values, or with shorter ones")
        .permanent()
}

fn group(by: &[String], key: Vec<String>, plans: &[Plan], tallies: &[Tally]) -> Map<String, Value> {
    let cells = by.iter().cloned().zip(key.into_iter().map(Value::from));
    let values = plans
        .iter()
        .zip(tallies)
        .map(|(plan, tally)| (plan.label.clone(), tally.value(plan.function)));
    cells.chain(values).collect()
}

/// Aggregate prepared for a table.
struct Plan {
    label: String,
    function: Function,
    column: Option<(usize, String)>,
}

impl Plan {
    fn of(aggregate: &Aggregate, table: &Table) -> Result<Self, ToolFailure> {
        let function = aggregate.function;
        let name = function.name();
        match &aggregate.column {
            None if function == Function::Count => {
                Ok(Self { label: name.to_owned(), function, column: None })
            }
            None => Err(ToolFailure::new(format!("the aggregate `{name}` has no column"))
                .suggestion("pass the name of a column with numbers as `column`")
                .permanent()),
            Some(column) => Ok(Self {
                label: format!("{name}({column})"),
                function,
                column: Some((table.column(column)?, column.clone())),
            }),
        }
    }

    fn add(
        &self,
        tally: &mut Tally,
        row: &csv::StringRecord,
        number: u64,
    ) -> Result<(), ToolFailure> {
        let Some((column, name)) = &self.column else {
            tally.count += 1;
            return Ok(());
        };
        let cell = cell(row, *column);
        if cell.trim().is_empty() {
            return Ok(());
        }
        if self.function == Function::Count {
            tally.count += 1;
            return Ok(());
        }
        let Some(value) = numbers::parse(cell) else {
            let message = format!("`{cell}` in column `{name}`, row {number}, is not a number");
            let advice = "use `count` for this column, or filter such rows out";
            return Err(ToolFailure::new(message).suggestion(advice).permanent());
        };
        tally.add(value);
        Ok(())
    }
}

impl Function {
    fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Min => "min",
            Self::Max => "max",
            Self::Mean => "mean",
        }
    }
}

/// State of one aggregate of a group.
#[derive(Debug, Clone, Default)]
struct Tally {
    count: u64,
    sum: f64,
    /// Compensation for rounding errors in `sum` (Neumaier), so that ten times 0.1 is 1.
    lost: f64,
    min: Option<f64>,
    max: Option<f64>,
}

impl Tally {
    fn add(&mut self, value: f64) {
        self.count += 1;
        let sum = self.sum + value;
        self.lost += match self.sum.abs() >= value.abs() {
            true => (self.sum - sum) + value,
            false => (value - sum) + self.sum,
        };
        self.sum = sum;
        self.min = Some(self.min.map_or(value, |min| min.min(value)));
        self.max = Some(self.max.map_or(value, |max| max.max(value)));
    }

    /// Returns the value of the aggregate, or null if there was no number.
    fn value(&self, function: Function) -> Value {
        let sum = self.sum + self.lost;
        let number = match function {
            Function::Count => return self.count.into(),
            Function::Sum => Some(sum),
            Function::Min => self.min,
            Function::Max => self.max,
            #[expect(clippy::cast_precision_loss, reason = "no file has 2^53 rows")]
            Function::Mean => (self.count > 0).then(|| sum / self.count as f64),
        };
        number.map_or(Value::Null, numbers::json)
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{json, testing};
    use serde_json::Value;

    use super::{Function, Tally, group_by};
    use crate::table::{SALES, Written};

    #[track_caller]
    fn check(arguments: Value, expected: Value) {
        let mut arguments = arguments;
        arguments["file"] = json!(SALES);
        match testing::call::<group_by>(arguments) {
            Ok(found) => assert_eq!(found["groups"].to_string(), expected.to_string()),
            Err(failure) => assert_eq!(failure.to_string(), expected),
        }
    }

    #[test]
    fn computes() {
        check(
            json!({"by": ["region"], "aggregates": [
                {"function": "count"},
                {"function": "count", "column": "units"},
                {"function": "sum", "column": "amount"},
                {"function": "min", "column": "units"},
                {"function": "max", "column": "units"},
                {"function": "mean", "column": "amount"},
            ]}),
            json!([
                {"region": "north", "count": 2, "count(units)": 1, "sum(amount)": 49.75,
                    "min(units)": 12, "max(units)": 12, "mean(amount)": 24.875},
                {"region": "south", "count": 2, "count(units)": 2, "sum(amount)": 30.75,
                    "min(units)": 1, "max(units)": 3, "mean(amount)": 15.375},
                {"region": "west, far", "count": 1, "count(units)": 1, "sum(amount)": 118.9,
                    "min(units)": 40, "max(units)": 40, "mean(amount)": 118.9},
            ]),
        );
        check(json!({"by": []}), json!([{"count": 5}]));
        check(
            json!({"by": ["product", "region"], "limit": 1}),
            json!([{"product": "coffee", "region": "north", "count": 1}]),
        );
    }

    #[test]
    fn says_what_is_wrong() {
        check(
            json!({"by": ["region"], "aggregates": [{"function": "sum", "column": "product"}]}),
            json!(
                "`tea` in column `product`, row 1, is not a number; use `count` for this column, or filter such \
                 rows out"
            ),
        );
        check(
            json!({"by": ["region"], "aggregates": [{"function": "sum"}]}),
            json!(
                "the aggregate `sum` has no column; pass the name of a column with numbers as \
                `column`"
            ),
        );
    }

    #[test]
    fn long_results_end_early() {
        let wide = "x".repeat(100 << 10);
        let file = Written::new("groups.csv", &format!("a\n1{wide}\n2{wide}\n3{wide}\n"));
        let arguments = json!({"file": file.path(), "by": ["a"]});
        let found = testing::call::<group_by>(arguments).unwrap();
        assert_eq!(found["groups"].as_array().unwrap().len(), 2);
        assert_eq!((&found["total"], &found["truncated"]), (&json!(3), &json!(true)));
        assert_eq!(
            found["note"],
            "the other groups are left out: a result has at most 262144 bytes; group by fewer \
             columns, or by columns with shorter cells"
        );
    }

    #[test]
    fn long_cells_are_refused() {
        let wide = "x".repeat(4_000_000);
        let rows: String = (1..=7).map(|number| format!("{number}{wide}\n")).collect();
        let file = Written::new("cells.csv", &format!("a\n{rows}"));
        let arguments = json!({"file": file.path(), "by": ["a"]});
        assert_eq!(
            testing::call::<group_by>(arguments).unwrap_err().message(),
            "the cells of the groups have more than 25165824 bytes"
        );
    }

    #[test]
    fn sums_do_not_drift() {
        let mut tally = Tally::default();
        assert_eq!(tally.value(Function::Mean), Value::Null);
        (0..10).for_each(|_| tally.add(0.1));
        assert_eq!(tally.value(Function::Sum), json!(1));
    }
}
