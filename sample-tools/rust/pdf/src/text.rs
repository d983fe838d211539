//! Reads the text of pages.

use cofferdam_sdk::{ToolFailure, tool};
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::Pdf;
use crate::{page, ranges};

/// Maximum number of bytes of text that a call returns, whatever it asks for.
const TEXT_BYTES_MAX: usize = 512 << 10;

/// Text of pages.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Text {
    /// Number of pages of the file.
    page_count: usize,
    pages: Vec<Page>,
    /// True if the text of the last returned page was cut, or pages after it were dropped, because
    /// of `max_bytes`.
    truncated: bool,
}

/// Text of a page.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Page {
    /// Number of the page, from 1.
    page: usize,
    text: String,
    /// Reason for which text may be missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// Reads the text of the pages of a PDF file, line by line. Text in images is not recognized.
#[tool(title = "PDF text", read_only, idempotent, open_world = false, output_schema)]
pub fn pdf_text(
    /// Path of the file, for example `/data/report.pdf`.
    file: String,
    /// Numbers and ranges of pages, for example `1-3,7` or `10-`; all if absent.
    pages: Option<String>,
    /// Maximum number of bytes of text to return, up to 524288.
    #[tool(default = 65_536)]
    max_bytes: usize,
) -> Result<Text, ToolFailure> {
    let pdf = Pdf::open(&file)?;
    let mut left = max_bytes.min(TEXT_BYTES_MAX);
    let mut result = Text { page_count: pdf.pages.len(), pages: Vec::new(), truncated: false };
    for number in ranges::parse(pages.as_deref(), pdf.pages.len())? {
        let Some(id) = pdf.page(number) else { break };
        if left == 0 {
            result.truncated = true;
            break;
        }
        let read = page::read(&pdf, id);
        let mut text = read.text;
        let note = if read.is_partial {
            Some("parts of the page could not be read")
        } else if text.is_empty() && read.images > 0 {
            Some("no text, but images: the page may be scanned")
        } else if text.contains('\u{fffd}') {
            Some("the file does not say which characters some of its codes (�) are")
        } else {
            None
        };
        if text.len() > left {
            text.truncate(text.floor_char_boundary(left));
            result.truncated = true;
        }
        left -= text.len();
        result.pages.push(Page { page: number, text, note });
        if result.truncated {
            break;
        }
    }
    Ok(result)
}
