//! Tools for Markdown, passed as text or as a file in a mounted directory.

pub mod links;
pub mod outline;
mod source;
pub mod to_html;

cofferdam_sdk::plugin!(outline::outline, links::links, to_html::to_html; manifest = "plugin.toml");
