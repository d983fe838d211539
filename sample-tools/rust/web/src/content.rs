//! Converts bodies by their media types.

use cofferdam_sdk::ToolFailure;

use crate::charset::{self, Body};
use crate::request::Reply;
use crate::{html, json_text};

/// Form in which a body is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// HTML as Markdown.
    Markdown,
    /// JSON with indentation.
    Json,
    /// Text as it is.
    Text,
    /// The beginning of the body decides between Markdown and text.
    Unknown,
    /// Not at all.
    Nothing,
}

/// Converted body.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
}

/// Returns the form for a reply, or a failure if its type is not text.
pub(crate) fn form(url: &str, reply: &Reply, raw: bool) -> Result<Form, ToolFailure> {
    if let Some(encoding) = reply.encoding.as_deref().filter(|it| *it != "identity") {
        return Err(ToolFailure::new(format!("the server compressed {url} with {encoding}"))
            .suggestion("fetch another address: this tool did not ask for compression")
            .permanent());
    }
    match form_of_type(reply.media_type.as_deref()) {
        Some(_) if raw => Ok(Form::Text),
        Some(form) => Ok(form),
        // An error is worth knowing without its picture.
        None if !(200..300).contains(&reply.status) => Ok(Form::Nothing),
        None => {
            let media_type = reply.media_type.as_deref().unwrap_or_default();
            let length = match reply.length {
                Some(length) => format!(" of {length} bytes"),
                None => String::new(),
            };
            Err(ToolFailure::new(format!("{url} is {media_type}{length}, not text"))
                .suggestion("fetch a page, JSON or another text")
                .permanent())
        }
    }
}

/// Returns the form of a media type, or none if it is not text.
fn form_of_type(media_type: Option<&str>) -> Option<Form> {
    let essence = media_type.unwrap_or_default().split(';').next().unwrap_or_default();
    match essence.trim().to_ascii_lowercase().as_str() {
        "" => Some(Form::Unknown),
        "text/html" | "application/xhtml+xml" => Some(Form::Markdown),
        "application/json" | "text/json" => Some(Form::Json),
        "application/xml"
        | "application/javascript"
        | "application/x-javascript"
        | "application/ecmascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/sql"
        | "application/graphql"
        | "application/x-sh"
        | "application/x-ndjson"
        | "application/jsonl" => Some(Form::Text),
        other if other.starts_with("text/") || other.ends_with("+xml") => Some(Form::Text),
        other if other.ends_with("+json") => Some(Form::Json),
        _ => None,
    }
}

/// Converts a body.
pub(crate) fn convert(
    url: &str,
    form: Form,
    body: Body<'_>,
    main_only: bool,
) -> Result<Content, ToolFailure> {
    let form = match form {
        Form::Unknown if looks_like_html(body.bytes) => Form::Markdown,
        Form::Unknown if body.bytes.contains(&0) => {
            return Err(ToolFailure::new(format!("{url} is not text"))
                .suggestion("fetch a page, JSON or another text")
                .permanent());
        }
        form => form,
    };
    let text = charset::decode(body, form == Form::Markdown);
    match form {
        Form::Markdown => html::convert(&text, url, main_only),
        Form::Json => Ok(Content { title: None, text: json_text::indent(&text).unwrap_or(text) }),
        Form::Nothing => Ok(Content { title: None, text: String::new() }),
        Form::Text | Form::Unknown => Ok(Content { title: None, text }),
    }
}

fn looks_like_html(body: &[u8]) -> bool {
    let start: Vec<u8> = body
        .iter()
        .skip_while(|byte| byte.is_ascii_whitespace() || [0xef, 0xbb, 0xbf].contains(*byte))
        .take(14)
        .map(u8::to_ascii_lowercase)
        .collect();
    start.starts_with(b"<!doctype html") || start.starts_with(b"<html")
}

/// Returns a part of a text, and the position after it if there is more. The part has at least one
/// character, so that calls that continue from there come to the end.
pub(crate) fn part(text: String, start: usize, bytes_max: usize) -> (String, Option<usize>) {
    let start = text.ceil_char_boundary(start.min(text.len()));
    let end = text.floor_char_boundary(start.saturating_add(bytes_max));
    let end = end.max(text.ceil_char_boundary(start.saturating_add(1).min(text.len())));
    let part = text.get(start..end).unwrap_or_default().to_owned();
    (part, Some(end).filter(|end| *end < text.len()))
}
