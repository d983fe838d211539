//! Converts HTML that a call passes.

use cofferdam_sdk::{ToolFailure, tool};
use schemars::JsonSchema;
use serde::Serialize;

use crate::address::Address;
use crate::fetch::{BODY_BYTES_MAX, TEXT_BYTES_MAX};
use crate::{content, html};

/// Converted page.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Markdown {
    /// Title of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    text: String,
    /// True if there is more text than `max_bytes`.
    truncated: bool,
}

/// Converts HTML to Markdown. Nothing is fetched.
#[tool(title = "HTML to Markdown", read_only, idempotent, open_world = false, output_schema)]
pub fn html_to_markdown(
    /// The HTML, a whole page or a part of one.
    html: String,
    /// Address of the page, to make relative links absolute.
    base_url: Option<String>,
    /// Return only the main content of a page: no menus, headers, footers and sidebars.
    #[tool(default = false)]
    main_only: bool,
    /// Maximum number of bytes of text to return, up to 524288.
    #[tool(default = 65_536)]
    max_bytes: usize,
) -> Result<Markdown, ToolFailure> {
    if html.len() > BODY_BYTES_MAX {
        return Err(ToolFailure::new(format!(
            "the HTML has {} bytes, more than the maximum of {BODY_BYTES_MAX}",
            html.len()
        ))
        .suggestion("pass a part of the page")
        .permanent());
    }
    let base_url = base_url.unwrap_or_default();
    if !base_url.is_empty() {
        Address::parse(&base_url)?;
    }
    let page = html::convert(&html, base_url.trim(), main_only)?;
    let (text, next_start) = content::part(page.text, 0, max_bytes.min(TEXT_BYTES_MAX));
    Ok(Markdown { title: page.title, text, truncated: next_start.is_some() })
}
