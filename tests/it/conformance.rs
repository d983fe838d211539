//! Runs the conformance rows: one JSON object per line, one file per area (see
//! `tests/conformance/README.md`).
//!
//! By default the vendored rows are run, and every row of the areas in [`COMPLETE`] must pass. If
//! `COFFERDAM_VECTORS` names a directory, its rows are run instead, and the numbers are printed
//! without a verdict, so that new rows can be tried on any build.
//!
//! A row that a runner cannot interpret fails: an unknown operation, word or key of `expect` must
//! not pass by being skipped. A panic fails only the row that caused it.

mod agent;
mod agent_approvals;
mod agent_loop;
mod agent_middleware;
mod answers;
mod arguments;
mod choice;
mod compaction;
mod files_paths;
mod files_tools;
mod labels;
mod mcp;
mod mcp_served;
mod results;
mod rules;
mod sessions;
mod skills;
mod workflows;

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_json::value::RawValue;

/// Areas without a failing row. An area is added when it is complete and never removed.
const COMPLETE: &[&str] = &[
    "answers",
    "approvals",
    "arguments",
    "choice",
    "compaction",
    "files_paths",
    "files_tools",
    "labels",
    "loop",
    "mcp",
    "middleware",
    "results",
    "rules",
    "sessions",
    "skills",
    "workflows",
];

/// Maximum number of failing rows that are printed per area.
const FAILURES_SHOWN_MAX: usize = 40;

/// Runs one row. The error holds the expected and the actual result.
type Runner = fn(&Row) -> Result<(), String>;

/// Returns the runner of an area, if it has one.
fn runner(area: &str) -> Option<Runner> {
    Some(match area {
        "answers" => answers::run,
        "approvals" => agent_approvals::run,
        "arguments" => arguments::run,
        "choice" => choice::run,
        "compaction" => compaction::run,
        "files_paths" => files_paths::run,
        "files_tools" => files_tools::run,
        "labels" => labels::run,
        "loop" => agent_loop::run,
        "mcp" => mcp::run,
        "middleware" => agent_middleware::run,
        "results" => results::run,
        "rules" => rules::run,
        "sessions" => sessions::run,
        "skills" => skills::run,
        "workflows" => workflows::run,
        _ => return None,
    })
}

/// One row of an area.
#[derive(Clone)]
pub(crate) struct Row {
    /// Name of the row, unique across all areas.
    pub(crate) id: String,
    /// Operation to run.
    pub(crate) op: String,
    /// Expected result.
    pub(crate) expect: Value,
    /// The complete row.
    value: Value,
}

impl Row {
    /// Returns a field; null counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    /// Returns a required field.
    pub(crate) fn required(&self, name: &str) -> Result<&Value, String> {
        self.get(name).ok_or_else(|| format!("the row has no `{name}`"))
    }

    /// Returns a required string.
    pub(crate) fn text(&self, name: &str) -> Result<&str, String> {
        self.required(name)?.as_str().ok_or_else(|| format!("`{name}` is not a text"))
    }

    /// Returns whether a flag is set.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Bool(true))
    }

    /// Returns the names of all fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.value.as_object().into_iter().flat_map(|members| members.keys()).map(String::as_str)
    }

    fn parse(line: &str) -> Result<Self, String> {
        let value = deep_value(line).map_err(|error| error.to_string())?;
        let text =
            |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, op) = (text("id"), text("op"));
        let expect = value.get("expect").cloned().filter(|_| !id.is_empty());
        Ok(Self { id, op, expect: expect.ok_or("a row needs `id` and `expect`")?, value })
    }
}

/// Parses JSON that may be nested deeper than the parser allows, as rows about nesting are: in that
/// case member by member.
fn deep_value(text: &str) -> Result<Value, serde_json::Error> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) else {
        return Err(error);
    };
    members.into_iter().map(|(name, value)| Ok((name, deep_value(value.get())?))).collect()
}

/// Compares JSON values: numbers by value, members in any order.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || (left.is_f64() || right.is_f64()) && left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}

/// Returns an error unless the values are equal; `what` names them.
pub(crate) fn expect_same(what: &str, expected: &Value, got: &Value) -> Result<(), String> {
    if same(expected, got) {
        Ok(())
    } else {
        Err(format!("{what}: expected {expected}, got {got}"))
    }
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failures: Vec<(String, String)>,
}

impl Tally {
    fn total(&self) -> usize {
        self.passed + self.failures.len()
    }
}

#[test]
fn rows() {
    let elsewhere = std::env::var_os("COFFERDAM_VECTORS").map(PathBuf::from);
    let vendored = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance");
    let areas = run_all(elsewhere.as_deref().unwrap_or(&vendored)).unwrap();
    let report: String = areas.iter().map(|(area, tally)| described(area, tally)).collect();
    // Write directly to the terminal: the test harness hides the output of tests that pass.
    std::io::stdout().write_all(report.as_bytes()).unwrap();
    if elsewhere.is_some() {
        return;
    }
    for area in COMPLETE {
        let failures = areas.get(*area).map(|tally| tally.failures.len());
        assert_eq!(
            failures,
            Some(0),
            "rows of `{area}` that fail; none means that there are no rows"
        );
    }
}

/// Returns `<area>: <passed>/<total>`, followed by the failures if the area has a runner.
fn described(area: &str, tally: &Tally) -> String {
    let mut lines = format!("{area}: {}/{}\n", tally.passed, tally.total());
    if runner(area).is_none() {
        return lines;
    }
    let failures = &tally.failures;
    for (id, reason) in failures.iter().take(FAILURES_SHOWN_MAX) {
        lines.push_str(&format!("  {id}: {reason}\n"));
    }
    if let Some(more) = failures.len().checked_sub(FAILURES_SHOWN_MAX).filter(|more| *more > 0) {
        lines.push_str(&format!("  and {more} more\n"));
    }
    lines
}

/// Runs every area of a directory.
fn run_all(directory: &Path) -> std::io::Result<BTreeMap<String, Tally>> {
    let mut areas = BTreeMap::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let area = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let tally = run_area(runner(&area), &std::fs::read_to_string(&path)?);
            areas.insert(area, tally);
        }
    }
    Ok(areas)
}

fn run_area(runner: Option<Runner>, text: &str) -> Tally {
    let mut tally = Tally::default();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let row = Row::parse(line);
        if let Err(reason) = run_row(runner, &row) {
            let id = row.map_or(format!("line {}", number + 1), |row| row.id);
            tally.failures.push((id, reason));
        } else {
            tally.passed += 1;
        }
    }
    tally
}

fn run_row(runner: Option<Runner>, row: &Result<Row, String>) -> Result<(), String> {
    let row = row.as_ref().map_err(Clone::clone)?;
    let runner = runner.ok_or_else(|| "the area has no runner".to_owned())?;
    catch_unwind(AssertUnwindSafe(|| runner(row))).unwrap_or_else(|_| Err("panicked".to_owned()))
}
