//! Describes a file.

use cofferdam_sdk::{ToolFailure, tool};
use lopdf::Object;
use schemars::JsonSchema;
use serde::Serialize;

use crate::document::Pdf;
use crate::outline::{self, Entry};

/// Properties of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Info {
    /// Number of pages.
    pages: usize,
    /// Version of the format.
    version: String,
    /// Width and height of the first page in points, 72 of which are an inch.
    #[serde(skip_serializing_if = "Option::is_none")]
    page_size: Option<[f32; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keywords: Option<String>,
    /// Program that made the original document.
    #[serde(skip_serializing_if = "Option::is_none")]
    creator: Option<String>,
    /// Program that made the PDF file.
    #[serde(skip_serializing_if = "Option::is_none")]
    producer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
    /// Table of contents with page numbers, if the file has one.
    outline: Vec<Entry>,
    /// True if entries of the outline were dropped.
    outline_truncated: bool,
    /// True if the file is encrypted, but opens without a password.
    encrypted: bool,
    /// True if the table of objects was damaged and had to be rebuilt.
    repaired: bool,
}

/// Describes a PDF file: number of pages, title, author, dates, and the table of contents.
#[tool(title = "PDF info", read_only, idempotent, open_world = false, output_schema)]
pub fn pdf_info(
    /// Path of the file, for example `/data/report.pdf`.
    file: String,
) -> Result<Info, ToolFailure> {
    let pdf = Pdf::open(&file)?;
    let properties = pdf.dictionary(&pdf.document.trailer, b"Info");
    let text = |key: &[u8]| pdf.text(properties?, key);
    let (outline, outline_truncated) = outline::read(&pdf);
    Ok(Info {
        pages: pdf.pages.len(),
        version: pdf.document.version.clone(),
        page_size: page_size(&pdf),
        title: text(b"Title"),
        author: text(b"Author"),
        subject: text(b"Subject"),
        keywords: text(b"Keywords"),
        creator: text(b"Creator"),
        producer: text(b"Producer"),
        created: text(b"CreationDate").map(date),
        modified: text(b"ModDate").map(date),
        outline,
        outline_truncated,
        encrypted: pdf.document.was_encrypted(),
        repaired: pdf.document.xref_recovery.is_some(),
    })
}

/// Returns the size of the first page. It may be a property of a node above the page.
fn page_size(pdf: &Pdf) -> Option<[f32; 2]> {
    const LEVELS_MAX: usize = 32;
    let mut node = pdf.document.get_dictionary(pdf.page(1)?).ok()?;
    for _ in 0..LEVELS_MAX {
        if let Some(Object::Array(corners)) = pdf.get(node, b"MediaBox") {
            let corners: Vec<_> = corners
                .iter()
                .filter_map(|it| pdf.object(it)?.as_float().ok())
                .filter(|it| it.is_finite())
                .collect();
            return match corners.as_slice() {
                [x1, y1, x2, y2] => Some([(x2 - x1).abs(), (y2 - y1).abs()]),
                _ => None,
            };
        }
        node = pdf.dictionary(node, b"Parent")?;
    }
    None
}

/// Converts `D:20260102030405+01'00'` to `2026-01-02T03:04:05+01:00`. Other texts stay as they are.
fn date(text: String) -> String {
    try_date(&text).unwrap_or(text)
}

fn try_date(text: &str) -> Option<String> {
    let rest = text.strip_prefix("D:").unwrap_or(text);
    let digits = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, offset) = rest.split_at(digits);
    let part = |range: std::ops::Range<usize>| digits.get(range);
    let mut result = part(0..4)?.to_owned();
    for (range, separator) in [(4..6, '-'), (6..8, '-'), (8..10, 'T'), (10..12, ':'), (12..14, ':')]
    {
        let Some(value) = part(range) else { break };
        result.push(separator);
        result.push_str(value);
    }
    if digits.len() >= 14 {
        let sign = offset.chars().next();
        let offset: String = offset.chars().filter(char::is_ascii_digit).take(4).collect();
        match (sign, offset.get(0..2)) {
            (Some('Z'), _) => result.push('Z'),
            (Some(sign @ ('+' | '-')), Some(hours)) => {
                let minutes = offset.get(2..4).unwrap_or("00");
                result.push_str(&format!("{sign}{hours}:{minutes}"));
            }
            _ => {}
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_in_the_usual_form() {
        for (text, expected) in [
            ("D:20260102030405+01'30'", "2026-01-02T03:04:05+01:30"),
            ("D:20260102030405Z00'00'", "2026-01-02T03:04:05Z"),
            ("D:20260102030405", "2026-01-02T03:04:05"),
            ("D:2026", "2026"),
            ("202601", "2026-01"),
            ("yesterday", "yesterday"),
        ] {
            assert_eq!(date(text.to_owned()), expected);
        }
    }
}
