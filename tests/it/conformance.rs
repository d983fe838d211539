//! The test vectors of the contract: one JSON object per line, a file per area (see
//! `tests/conformance/README.md`).
//!
//! The vendored rows are run by default, and every row of the areas in [`COMPLETE`] must pass. With
//! `COFFERDAM_VECTORS` set, the directory it names is run instead and the numbers are printed
//! without judging them, so that rows nobody has seen yet can be tried on any build.
//!
//! A row that a runner cannot interpret fails: an operation, a word or a key of `expect` that is
//! not known must not pass by being skipped. A panic fails the row that caused it and no other.

mod agent;
mod agent_approvals;
mod agent_loop;
mod agent_middleware;
mod arguments;
mod choice;
mod files_paths;
mod files_tools;
mod labels;
mod mcp;
mod mcp_served;
mod results;
mod sessions;
mod skills;
mod workflows;

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_json::value::RawValue;

/// Areas without a failing row. An area is added when it is done and never taken away.
const COMPLETE: &[&str] = &[
    "approvals",
    "arguments",
    "choice",
    "files_paths",
    "files_tools",
    "labels",
    "loop",
    "mcp",
    "middleware",
    "results",
    "sessions",
    "skills",
    "workflows",
];

/// Failing rows that are printed per area.
const FAILURES_SHOWN_MAX: usize = 40;

/// Runs one row; the error says what was expected and what came instead.
type Runner = fn(&Row) -> Result<(), String>;

/// The runner of an area, if it has one.
fn runner(area: &str) -> Option<Runner> {
    Some(match area {
        "approvals" => agent_approvals::run,
        "arguments" => arguments::run,
        "choice" => choice::run,
        "files_paths" => files_paths::run,
        "files_tools" => files_tools::run,
        "labels" => labels::run,
        "loop" => agent_loop::run,
        "mcp" => mcp::run,
        "middleware" => agent_middleware::run,
        "results" => results::run,
        "sessions" => sessions::run,
        "skills" => skills::run,
        "workflows" => workflows::run,
        _ => return None,
    })
}

/// One row of an area.
#[derive(Clone)]
pub(crate) struct Row {
    /// The row's name, unique over all areas.
    pub(crate) id: String,
    /// The operation.
    pub(crate) op: String,
    /// What the operation must give.
    pub(crate) expect: Value,
    /// The whole row.
    value: Value,
}

impl Row {
    /// A field; null counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.value.get(name).filter(|value| !value.is_null())
    }

    /// A field that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<&Value, String> {
        self.get(name).ok_or_else(|| format!("the row has no `{name}`"))
    }

    /// A text that must be there.
    pub(crate) fn text(&self, name: &str) -> Result<&str, String> {
        self.required(name)?.as_str().ok_or_else(|| format!("`{name}` is not a text"))
    }

    /// Whether a flag is set.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Bool(true))
    }

    /// The names of all fields.
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

/// Parses JSON that may be nested deeper than the parser takes at once, as rows about nesting are:
/// member by member then.
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

/// Compares JSON values as values: numbers by size, members in any order.
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

/// An error unless the values are the same; `what` names them.
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
    // Straight to the terminal: the harness would keep it to itself when the test passes.
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

/// `<area>: <passed>/<total>`, and what went wrong where there is a runner that could go wrong.
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
