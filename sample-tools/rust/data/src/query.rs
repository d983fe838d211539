//! Queries files with SQL.

use std::collections::BTreeMap;

use cofferdam_sdk::{ToolFailure, tool};
use serde::Serialize;
use serde_json::Value as Json;
use sqlparser::ast::Statement;
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

use crate::binder::unsupported;
use crate::select;

/// Maximum bytes of a statement.
const SQL_BYTES_MAX: usize = 16 << 10;
/// Maximum number of rows, whatever the call asks for.
const ROWS_MAX: usize = 1_000;
/// Maximum bytes of the names of columns and all rows of a result as JSON.
const RESULT_BYTES_MAX: usize = 256 << 10;

/// Result of a query.
#[derive(Debug, Serialize)]
pub struct QueryResult {
    columns: Vec<String>,
    rows: Vec<Vec<Json>>,
    /// True if there are more rows than `rows_max`, or than fit in a result.
    truncated: bool,
    /// Number of texts that were cut, which end with `…`.
    #[serde(skip_serializing_if = "is_zero")]
    cut_texts: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Queries CSV, TSV, JSON, JSON Lines and Parquet files with one SQL SELECT statement. Name a file
/// in single quotes: `SELECT region, sum(amount) FROM 'sales.csv' GROUP BY region`. Supported:
/// joins, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, DISTINCT, UNION, WITH, CASE, subqueries that do
/// not refer to the outer query, `json -> 'key'`, and common functions. Not supported: window
/// functions. Aggregates: count, sum, avg, min, max, median, stddev, string_agg. Dates are text such
/// as '2026-01-31'; date_trunc('month', d), date_diff('day', a, b), date_add(d, days), year(d) work
/// on them. Call `describe` first to learn the columns.
#[tool(title = "Query data files", read_only, idempotent, open_world = false)]
pub fn query(
    /// The statement.
    sql: String,
    /// Paths of files by short names to use in the statement: `{"sales": "/data/2026/sales.csv"}`.
    #[tool(default)]
    tables: BTreeMap<String, String>,
    /// At most this many rows are returned, up to 1000.
    #[tool(default = 100)]
    rows_max: usize,
) -> Result<QueryResult, ToolFailure> {
    let statement = parse(&sql)?;
    let rows_max = rows_max.clamp(1, ROWS_MAX);
    let result = match &statement {
        Statement::Query(query) => select::run(query, &tables, rows_max + 1),
        _ => Err(unsupported("anything but `SELECT`").suggestion("the files can only be read")),
    };
    // Dropping a deep tree could exhaust the stack, and the instance ends with the call.
    std::mem::forget(statement);
    let result = result?;
    let mut shown = QueryResult {
        columns: result.columns.into_iter().map(|column| column.name).collect(),
        rows: Vec::new(),
        truncated: result.rows.len() > rows_max,
        cut_texts: 0,
    };
    let names = shown.columns.iter().map(|name| json_bytes(&Json::from(name.as_str())));
    let mut bytes: usize = names.sum();
    if bytes > RESULT_BYTES_MAX {
        return Err(too_wide("the names of the columns need"));
    }
    for row in result.rows.into_iter().take(rows_max) {
        let row: Vec<Json> = row
            .iter()
            .map(|value| {
                let (json, is_cut) = value.shown();
                shown.cut_texts += usize::from(is_cut);
                bytes += json_bytes(&json);
                json
            })
            .collect();
        if bytes > RESULT_BYTES_MAX {
            if shown.rows.is_empty() {
                return Err(too_wide("the names of the columns and the first row need"));
            }
            shown.truncated = true;
            break;
        }
        shown.rows.push(row);
    }
    Ok(shown)
}

/// Returns the bytes of a value in a result, with the comma that follows.
fn json_bytes(value: &Json) -> usize {
    value.to_string().len() + 1
}

fn too_wide(parts: &str) -> ToolFailure {
    ToolFailure::new(format!("{parts} more than {RESULT_BYTES_MAX} bytes"))
        .suggestion("select fewer columns")
        .permanent()
}

fn parse(sql: &str) -> Result<Statement, ToolFailure> {
    if sql.len() > SQL_BYTES_MAX {
        return Err(ToolFailure::new(format!(
            "the statement has {} bytes, expected at most {SQL_BYTES_MAX}",
            sql.len()
        ))
        .permanent());
    }
    let mut statements = Parser::parse_sql(&GenericDialect {}, sql).map_err(|error| {
        ToolFailure::new(format!("the SQL cannot be parsed: {error}"))
            .suggestion("write one `SELECT` statement; files are in single quotes, as is text")
            .permanent()
    })?;
    match statements.len() {
        1 => Ok(statements.remove(0)),
        count => Err(ToolFailure::new(format!("`sql` has {count} statements, expected one"))
            .suggestion("pass one, such as `SELECT count(*) FROM 'sales.csv'`")
            .permanent()),
    }
}

#[cfg(test)]
mod tests;
