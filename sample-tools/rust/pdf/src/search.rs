//! Searches the text of pages.

use cofferdam_sdk::{ToolFailure, tool};
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::Pdf;
use crate::{page, ranges};

/// Maximum number of lines that a call returns, whatever it asks for.
const MATCHES_MAX: usize = 500;

/// Maximum length of a line in a result, in characters.
const LINE_CHARACTERS_MAX: usize = 300;

/// Lines that contain a text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Matches {
    matches: Vec<Match>,
    /// Number of pages that were searched.
    pages: usize,
    /// True if there are more matches: raise `count`, or select pages.
    truncated: bool,
}

/// Line that contains a text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Match {
    /// Number of the page, from 1.
    page: usize,
    /// Text of the line, cut to 300 characters.
    line: String,
}

/// Finds the lines of a PDF file that contain a text, with their pages. Case and repeated spaces
/// do not matter. A phrase that continues on the next line is not found.
#[tool(title = "Search a PDF", read_only, idempotent, open_world = false, output_schema)]
pub fn pdf_search(
    /// Path of the file, for example `/data/report.pdf`.
    file: String,
    /// Text to find.
    text: String,
    /// Numbers and ranges of pages, for example `1-3,7` or `10-`; all if absent.
    pages: Option<String>,
    /// Maximum number of lines to return, up to 500.
    #[tool(default = 50)]
    count: usize,
) -> Result<Matches, ToolFailure> {
    let wanted = fold(&text);
    if wanted.is_empty() {
        return Err(ToolFailure::new("there is no text to find")
            .suggestion("pass a word or phrase as `text`")
            .permanent());
    }
    let pdf = Pdf::open(&file)?;
    let mut found = Matches { matches: Vec::new(), pages: 0, truncated: false };
    for number in ranges::parse(pages.as_deref(), pdf.pages.len())? {
        let Some(id) = pdf.page(number) else { break };
        found.pages += 1;
        for line in page::read(&pdf, id).text.lines().filter(|line| fold(line).contains(&wanted)) {
            if found.matches.len() >= count.min(MATCHES_MAX) {
                found.truncated = true;
                return Ok(found);
            }
            let line = line.chars().take(LINE_CHARACTERS_MAX).collect();
            found.matches.push(Match { page: number, line });
        }
    }
    Ok(found)
}

fn fold(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}
