//! Reads PDF files in a mounted directory: text by page, metadata, outline.

mod document;
mod font;
mod layout;
pub mod outline;
mod page;
mod paths;
mod ranges;

pub mod info;
pub mod search;
pub mod text;

#[cfg(test)]
mod tests;

cofferdam_sdk::plugin!(
    info::pdf_info,
    text::pdf_text,
    search::pdf_search;
    manifest = "plugin.toml"
);
