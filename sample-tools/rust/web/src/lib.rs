//! Gets resources over HTTP and returns them in a form for models.

mod address;
mod charset;
mod content;
mod html;
mod json_text;
mod markup;
mod request;

pub mod convert;
pub mod fetch;

#[cfg(test)]
mod tests;

cofferdam_sdk::plugin!(fetch::fetch, convert::html_to_markdown; manifest = "plugin.toml");
