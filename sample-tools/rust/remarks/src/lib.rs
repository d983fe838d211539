//! Finds remarks in the files of a store. The host runs the search, so a large store takes no
//! longer than in a program outside the sandbox. The report is written atomically, and only if the
//! call succeeds.

use cofferdam_sdk::files::{self, Query, Store};
use cofferdam_sdk::{ToolFailure, json, tool, toolbox};
use schemars::JsonSchema;
use serde::Serialize;

cofferdam_sdk::plugin!(collect_remarks, report_remarks; manifest = "plugin.toml");

/// Pattern of the words that mark remarks.
const WORDS: &str = r"\b(TODO|FIXME|XXX)\b";

/// A remark and where it stands.
#[derive(Debug, Serialize, JsonSchema)]
struct Remark {
    /// The path of the file.
    file: String,
    /// The line, from 1.
    line: u64,
    /// What it says.
    text: String,
}

/// Lists the remarks (TODO, FIXME, XXX) in the text files of a store.
#[tool(read_only, idempotent)]
fn collect_remarks(
    /// The name of the store.
    store: String,
    /// Only files whose path matches, such as *.rs or src/**.
    glob: Option<String>,
) -> Result<Vec<Remark>, ToolFailure> {
    remarks(&store, glob)
}

/// Writes a report of the remarks in a store to a file of the same store and says how long it is.
#[tool]
fn report_remarks(
    /// The name of the store.
    store: String,
    /// The file to write, such as remarks.md. An existing one is replaced.
    file: String,
) -> Result<String, ToolFailure> {
    let remarks = remarks(&store, None)?;
    let lines: String = remarks
        .iter()
        .map(|remark| format!("- {}:{} {}\n", remark.file, remark.line, remark.text))
        .collect();
    Store::named(&store).replace(&file, &lines)?;
    // A tool of another plugin counts the words.
    let words = match toolbox::call("word_count", &json!({ "text": lines })) {
        Ok(counts) => counts.get("words").map_or_else(|| "some".to_owned(), ToString::to_string),
        Err(toolbox::Error::UnknownTool) => "an unknown number of".to_owned(),
        Err(error) => return Err(error.into()),
    };
    Ok(format!("{} remarks, {words} words, are in {file}", remarks.len()))
}

fn remarks(store: &str, glob: Option<String>) -> Result<Vec<Remark>, ToolFailure> {
    let query = Query::new(WORDS).case_sensitive();
    let query = match glob {
        Some(glob) => query.glob(glob),
        None => query,
    };
    let found = Store::named(store).search("", &query).map_err(|error| explained(store, error))?;
    let remarks = found.matches.into_iter().flat_map(|file| {
        let of_line = move |(line, text): (u64, String)| Remark {
            file: file.path.clone(),
            line,
            text: text.trim().to_owned(),
        };
        file.lines.into_iter().map(of_line)
    });
    Ok(remarks.collect())
}

fn explained(store: &str, error: files::Error) -> ToolFailure {
    if error != files::Error::UnknownStore {
        return error.into();
    }
    let names: Vec<_> = files::granted().into_iter().map(|store| store.name).collect();
    let known = if names.is_empty() {
        "no store was granted".to_owned()
    } else {
        format!("there is {}", names.join(", "))
    };
    ToolFailure::new(format!("there is no store `{store}`")).suggestion(known)
}
