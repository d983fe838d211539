//! Describes files.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use cofferdam_sdk::{ToolFailure, tool};
use serde::Serialize;
use serde_json::Value as Json;

use crate::source;
use crate::value::{Kind, Value};
use crate::{files, names};

/// Maximum number of files in a call.
const FILES_MAX: usize = 20;
/// Maximum number of columns of a file that are described.
const COLUMNS_MAX: usize = 200;
/// Maximum number of examples of a column.
const EXAMPLES_MAX: usize = 3;
/// Maximum characters of an example.
const EXAMPLE_LENGTH_MAX: usize = 60;

/// Description of files.
#[derive(Debug, Serialize)]
pub struct Description {
    files: Vec<File>,
    /// True if a directory has more files than are described.
    truncated: bool,
}

/// Description of a file: its columns, or why it cannot be read.
#[derive(Debug, Serialize)]
struct File {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    columns: Vec<Described>,
    /// Number of columns that are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_columns: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Description of a column.
#[derive(Debug, Serialize)]
struct Described {
    name: String,
    #[serde(rename = "type")]
    kind: Kind,
    nulls: u64,
    #[serde(skip_serializing_if = "Json::is_null")]
    min: Json,
    #[serde(skip_serializing_if = "Json::is_null")]
    max: Json,
    /// The first distinct values.
    examples: Vec<Json>,
}

/// Describes CSV, TSV, JSON, JSON Lines and Parquet files: columns with type, number of nulls,
/// least and greatest value and examples, and the number of rows. Call it before `query`.
#[tool(title = "Describe data files", read_only, idempotent, open_world = false)]
pub fn describe(
    /// Paths of files, or of directories for all data files in them; at most 20 files.
    files: Vec<String>,
) -> Result<Description, ToolFailure> {
    let mut paths = Vec::new();
    for file in &files {
        let path = files::absolute(file);
        match files::list(&path) {
            Some(list) => paths.extend(list.into_iter().filter(|path| source::is_known(path))),
            None => paths.push(path),
        }
    }
    if paths.is_empty() {
        return Err(ToolFailure::new("there are no data files to describe")
            .suggestion("pass paths of files that end with `.csv`, `.json`, `.jsonl` or `.parquet`")
            .permanent());
    }
    let truncated = paths.len() > FILES_MAX;
    paths.truncate(FILES_MAX);
    match paths.as_slice() {
        [path] => Ok(Description { files: vec![describe_file(path)?], truncated }),
        paths => {
            let files = paths.iter().map(|path| {
                describe_file(path).unwrap_or_else(|failure| File {
                    file: path.clone(),
                    format: None,
                    rows: None,
                    columns: Vec::new(),
                    more_columns: None,
                    problem: Some(failure.to_string()),
                })
            });
            Ok(Description { files: files.collect(), truncated })
        }
    }
}

/// What was seen of a column.
struct Seen {
    kind: Kind,
    nulls: u64,
    min: Value,
    max: Value,
    examples: BTreeSet<Value>,
}

fn describe_file(path: &str) -> Result<File, ToolFailure> {
    let source = source::open(path)?;
    let columns = source.columns();
    let mut seen: Vec<Seen> = columns.iter().take(COLUMNS_MAX).map(|_| Seen::new()).collect();
    let wanted: Vec<bool> = (0..columns.len()).map(|index| index < COLUMNS_MAX).collect();
    let mut rows = 0;
    source.scan(&wanted, &mut |row| {
        rows += 1;
        for (column, value) in seen.iter_mut().zip(row) {
            column.add(value);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    let described = columns.iter().zip(seen).map(|(column, seen)| Described {
        name: names::shorten(&column.name),
        kind: column.kind.with(seen.kind),
        nulls: seen.nulls,
        min: example(&seen.min),
        max: example(&seen.max),
        examples: seen.examples.iter().map(example).collect(),
    });
    Ok(File {
        file: path.to_owned(),
        format: Some(source.format()),
        rows: Some(rows),
        columns: described.collect(),
        more_columns: columns.len().checked_sub(COLUMNS_MAX).filter(|more| *more > 0),
        problem: None,
    })
}

impl Seen {
    fn new() -> Self {
        Self {
            kind: Kind::Empty,
            nulls: 0,
            min: Value::Null,
            max: Value::Null,
            examples: BTreeSet::new(),
        }
    }

    fn add(&mut self, value: Value) {
        if value.is_null() {
            self.nulls += 1;
            return;
        }
        self.kind = self.kind.with(value.kind());
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.insert(value.clone());
        }
        if self.min.is_null() || value < self.min {
            self.min = value.clone();
        }
        if value > self.max {
            self.max = value;
        }
    }
}

fn example(value: &Value) -> Json {
    match value {
        Value::Text(text) => Json::from(names::cut(text, EXAMPLE_LENGTH_MAX)),
        other => other.shown().0,
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{json, testing};

    use super::describe;
    use crate::files::fixture;

    #[test]
    fn files_are_described() {
        let file = fixture("sales.csv");
        let value = testing::call::<describe>(json!({"files": [file]})).unwrap();
        let sales = &value["files"][0];
        assert_eq!((&sales["rows"], &sales["format"]), (&json!(6), &json!("csv")));
        assert_eq!(
            sales["columns"][3],
            json!({"name": "units", "type": "integer", "nulls": 1, "min": 1, "max": 40, "examples": [3, 12, 40]})
        );
        assert_eq!(value["truncated"], false);
    }

    #[test]
    fn a_directory_is_described_in_spite_of_broken_files() {
        let value = testing::call::<describe>(json!({"files": [fixture("")]})).unwrap();
        let files = value["files"].as_array().unwrap();
        let of = |name: &str| {
            files.iter().find(|it| it["file"].as_str().unwrap().ends_with(name)).unwrap()
        };
        assert_eq!(of("events.parquet")["rows"], 6);
        assert_eq!(of("regions.json")["columns"][3]["name"], "address");
        let problem = of("empty.csv")["problem"].as_str().unwrap();
        assert!(problem.ends_with("is empty: it has no row of column names"), "{problem}");
        assert!(of("zstd.parquet")["problem"].as_str().unwrap().contains("ZSTD"));
        assert!(testing::call::<describe>(json!({"files": []})).is_err());
        assert!(testing::call::<describe>(json!({"files": [fixture("nosuch.csv")]})).is_err());
    }
}
