//! Rows of `files_paths.jsonl`: paths (`FILE-1` to `FILE-9`) and globs (`FILE-24` to `FILE-27`).

use cofferdam_files::{Glob, StorePath};
use serde_json::{Value, json};

use super::{Row, expect_same};

/// Runs one row.
///
/// # Errors
/// The difference, or the part that cannot be interpreted.
pub(crate) fn run(row: &Row) -> Result<(), String> {
    let found = match row.op.as_str() {
        "normalise" => normalise(row)?,
        "glob" => glob(row)?,
        other => return Err(format!("unknown operation `{other}`")),
    };
    expect_same("result", &row.expect, &found)
}

fn normalise(row: &Row) -> Result<Value, String> {
    let path = row.text("path")?;
    let is_directory =
        row.required("directory")?.as_bool().ok_or("`directory` is not a boolean")?;
    let path = if is_directory { StorePath::directory(path) } else { StorePath::file(path) };
    Ok(match path {
        Ok(path) => json!({"ok": path.as_str()}),
        Err(error) => json!({"error": error.to_string()}),
    })
}

fn glob(row: &Row) -> Result<Value, String> {
    let pattern = row.get("pattern").map(|_| row.text("pattern")).transpose()?;
    Ok(match Glob::new(pattern) {
        Ok(glob) => json!(glob.matches(row.text("name")?)),
        Err(error) => json!({"error": error.to_string()}),
    })
}
