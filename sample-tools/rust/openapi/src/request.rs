//! Builds requests from arguments.

use std::fmt;

use cofferdam_sdk::{Arguments, ToolFailure};
use serde_json::{Map, Value as Json};

use crate::operation::{Encoding, Location, Method, Operation, Parameter, Style};

/// A request to the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// Scheme, host and port of the server.
    pub(crate) origin: String,
    /// Path and query, beginning with `/`.
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

impl fmt::Display for Request {
    /// Writes the method and the address without the query, which may be long.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.split('?').next().unwrap_or_default();
        write!(formatter, "{} {}{path}", self.method.name(), self.origin)
    }
}

impl Request {
    /// Returns the address with the query.
    pub(crate) fn url(&self) -> String {
        format!("{}{}", self.origin, self.path)
    }

    /// Builds the request of an operation.
    pub(crate) fn build(
        server: &str,
        operation: &Operation,
        arguments: &mut Arguments,
    ) -> Result<Self, ToolFailure> {
        let host = server.find("://").map_or(0, |at| at + 3);
        let end =
            server.get(host..).and_then(|rest| rest.find('/')).map_or(server.len(), |at| host + at);
        let (origin, base) = server.split_at(end);
        let mut path = operation.path.to_owned();
        let mut query = Vec::new();
        let mut headers =
            vec![("accept".to_owned(), "application/json, text/*;q=0.9, */*;q=0.5".to_owned())];
        for parameter in operation.parameters {
            let value: Json = arguments.take(parameter.argument)?;
            if value.is_null() {
                match parameter.is_required {
                    true => return Err(missing(parameter.argument)),
                    false => continue,
                }
            }
            match parameter.location {
                Location::Path => {
                    let value = path_segment(parameter, &value)?;
                    path = path.replace(&format!("{{{}}}", parameter.name), &value);
                }
                Location::Query => query.extend(pairs(parameter.name, &value, parameter.style)),
                Location::Header => {
                    headers.push((parameter.name.to_lowercase(), header(parameter, &value)?));
                }
            }
        }
        let body = match &operation.body {
            None => None,
            Some(body) => {
                let value = body_value(body.members, arguments)?;
                let bytes = value.map(|value| encode(&value, body.encoding));
                if bytes.is_some() {
                    headers.push(("content-type".to_owned(), body.media_type.to_owned()));
                }
                bytes
            }
        };
        let mut path = format!("{base}{path}");
        if !query.is_empty() {
            path = path + "?" + &form(&query);
        }
        if !path.starts_with('/') {
            path.insert(0, '/');
        }
        Ok(Self { method: operation.method, origin: origin.to_owned(), path, headers, body })
    }
}

fn missing(argument: &str) -> ToolFailure {
    ToolFailure::new(format!("the argument `{argument}` is missing")).permanent()
}

/// Returns the value of a path parameter. An empty one, `.` and `..` would change the path, and
/// separators and escapes do in some servers: the host refuses such a path unless the whole server
/// is granted.
fn path_segment(parameter: &Parameter, value: &Json) -> Result<String, ToolFailure> {
    let text = match parameter.style {
        Style::Json => value.to_string(),
        _ => items(value).join(","),
    };
    if matches!(text.as_str(), "" | "." | "..") {
        return Err(ToolFailure::new(format!(
            "the argument `{}` is `{text}`, which is not a part of a path",
            parameter.argument
        ))
        .suggestion("pass an identifier, such as one of a list")
        .permanent());
    }
    let name = text.split(';').next().unwrap_or_default();
    if text.contains(['/', '\\', '%', '\0']) || matches!(name, "." | "..") {
        return Err(ToolFailure::new(format!(
            "the argument `{}` is `{text}`, which a server can read as another path",
            parameter.argument
        ))
        .suggestion("pass an identifier without `/`, `\\` and `%`, such as one of a list")
        .permanent());
    }
    Ok(encoded(&text))
}

fn header(parameter: &Parameter, value: &Json) -> Result<String, ToolFailure> {
    let text = match parameter.style {
        Style::Json => value.to_string(),
        _ => items(value).join(","),
    };
    match text.chars().all(|it| it == ' ' || it.is_ascii_graphic()) {
        true => Ok(text),
        false => Err(ToolFailure::new(format!(
            "the argument `{}` is sent as a header and has other characters than those of ASCII",
            parameter.argument
        ))
        .permanent()),
    }
}

/// Returns the pairs of a query parameter.
fn pairs(name: &str, value: &Json, style: Style) -> Vec<(String, String)> {
    let one = |text: String| vec![(name.to_owned(), text)];
    match (style, value) {
        (Style::Json, _) => one(value.to_string()),
        (Style::Repeated, Json::Array(_)) => {
            items(value).into_iter().map(|item| (name.to_owned(), item)).collect()
        }
        (Style::Repeated, Json::Object(members)) => {
            members.iter().map(|(key, member)| (key.clone(), text(member))).collect()
        }
        (Style::Deep, Json::Object(members)) => {
            let members = members.iter();
            members.map(|(key, member)| (format!("{name}[{key}]"), text(member))).collect()
        }
        (Style::Spaces, _) => one(items(value).join(" ")),
        (Style::Pipes, _) => one(items(value).join("|")),
        (Style::Commas | Style::Repeated | Style::Deep, _) => one(items(value).join(",")),
    }
}

/// Returns the texts of an array's items, of an object's keys and members, or of a single value.
fn items(value: &Json) -> Vec<String> {
    match value {
        Json::Array(items) => items.iter().map(text).collect(),
        Json::Object(members) => {
            members.iter().flat_map(|(key, member)| [key.clone(), text(member)]).collect()
        }
        single => vec![text(single)],
    }
}

fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the value of the body, or `None` if no argument of it is given.
fn body_value(
    members: &[(&str, &str)],
    arguments: &mut Arguments,
) -> Result<Option<Json>, ToolFailure> {
    if members.is_empty() {
        let body: Json = arguments.take("body")?;
        return Ok(Some(body).filter(|body| !body.is_null()));
    }
    let mut object = Map::new();
    for (argument, name) in members {
        let value: Json = arguments.take(argument)?;
        if !value.is_null() {
            object.insert((*name).to_owned(), value);
        }
    }
    Ok(Some(Json::Object(object)))
}

fn encode(value: &Json, encoding: Encoding) -> Vec<u8> {
    match (encoding, value) {
        (Encoding::Json, _) => value.to_string(),
        (Encoding::Form, Json::Object(members)) => {
            let pairs = members.iter().flat_map(|(key, value)| pairs(key, value, Style::Repeated));
            form(&pairs.collect::<Vec<_>>())
        }
        (Encoding::Form | Encoding::Text, _) => text(value),
    }
    .into_bytes()
}

fn form(pairs: &[(String, String)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Percent-encodes everything but unreserved characters.
fn encoded(text: &str) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or('0');
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]),
        }
    }
    encoded
}

#[cfg(test)]
mod tests;
