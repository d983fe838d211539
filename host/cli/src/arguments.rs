//! Arguments of a call, as typed on the command line.

use std::path::Path;

use cofferdam_files::{read_named_text_ambient, read_text_at_most};
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::exit::UsageError;

/// Maximum size of arguments from a file or standard input, in bytes. The limit of the decoder is
/// lower.
const ARGUMENTS_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// One argument: `KEY=TEXT` or `KEY:=JSON`.
struct TypedArgument<'a> {
    key: &'a str,
    value: &'a str,
    is_json: bool,
}

/// Returns the arguments of a call as a JSON document: the object that was typed, the contents of
/// standard input (`-`) or of a file (`@FILE`), or an object of arguments `KEY=TEXT` and
/// `KEY:=JSON`. Returns `None` if nothing was typed.
///
/// # Errors
/// [`UsageError`] if a file cannot be read, or an argument is not of either form, is given twice or
/// is not valid JSON. A single document is not parsed: that is up to the decoder.
pub(crate) fn read(typed: &[String]) -> anyhow::Result<Option<Vec<u8>>> {
    match typed {
        [] => Ok(None),
        [document] if TypedArgument::parse(document).is_none() => read_document(document).map(Some),
        arguments => Ok(Some(object(arguments)?.into_bytes())),
    }
}

/// Returns the reason why `document` is not JSON, with the position, or `None` if it is.
pub(crate) fn json_error(document: &[u8]) -> Option<String> {
    serde_json::from_slice::<IgnoredAny>(document).err().map(|error| error.to_string())
}

fn read_document(typed: &str) -> anyhow::Result<Vec<u8>> {
    let (read, from) = match typed.strip_prefix('@') {
        Some(path) => (read_named_text_ambient(Path::new(path), ARGUMENTS_BYTES_MAX), path),
        None if typed == "-" => {
            (read_text_at_most(std::io::stdin(), ARGUMENTS_BYTES_MAX), "standard input")
        }
        None => return Ok(typed.as_bytes().to_vec()),
    };
    let text = read.map_err(|error| {
        UsageError(format!("the arguments from {from} cannot be read: {error}"))
    })?;
    Ok(text.into_bytes())
}

/// Returns a JSON object of the arguments. Numbers keep the digits that were typed.
fn object(typed: &[String]) -> Result<String, UsageError> {
    let mut members: Vec<(&str, Box<RawValue>)> = Vec::new();
    for one in typed {
        let argument = TypedArgument::parse(one).ok_or_else(|| {
            UsageError(format!(
                "`{one}` is not an argument; write KEY=TEXT, KEY:=JSON or one JSON object"
            ))
        })?;
        if members.iter().any(|(key, _)| *key == argument.key) {
            let key = argument.key;
            return Err(UsageError(format!(
                "`{key}` is given twice; write {key}:='[\"…\",\"…\"]' for a list"
            )));
        }
        members.push((argument.key, argument.json()?));
    }
    let members: Vec<_> =
        members.iter().map(|(key, value)| format!("{}:{value}", Value::from(*key))).collect();
    Ok(format!("{{{}}}", members.join(",")))
}

impl<'a> TypedArgument<'a> {
    /// Parses `KEY=TEXT` or `KEY:=JSON`. Returns `None` for anything else, such as a JSON object.
    fn parse(typed: &'a str) -> Option<Self> {
        let (key, value) = typed.split_once('=')?;
        let (key, is_json) = match key.strip_suffix(':') {
            Some(key) => (key, true),
            None => (key, false),
        };
        let is_key = !key.is_empty()
            && !key.starts_with(['{', '[', '"', '@'])
            && !key.contains(char::is_whitespace);
        is_key.then_some(Self { key, value, is_json })
    }

    /// Returns the value as JSON. `@FILE` stands for the contents of a file.
    fn json(&self) -> Result<Box<RawValue>, UsageError> {
        let text = match self.value.strip_prefix('@') {
            Some(path) => {
                read_named_text_ambient(Path::new(path), ARGUMENTS_BYTES_MAX).map_err(|error| {
                    let key = self.key;
                    UsageError(format!("the file {path} for `{key}` cannot be read: {error}"))
                })?
            }
            None => self.value.to_owned(),
        };
        let json = if self.is_json { text } else { Value::from(text).to_string() };
        RawValue::from_string(json).map_err(|error| {
            let (key, value) = (self.key, self.value);
            UsageError(format!(
                "`{key}:={value}` is not valid JSON: {error}; write {key}=TEXT for a string"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(typed: &[&str]) -> Result<Option<String>, String> {
        let typed: Vec<_> = typed.iter().map(ToString::to_string).collect();
        let read = read(&typed).map_err(|error| error.to_string())?;
        Ok(read.map(|bytes| String::from_utf8(bytes).unwrap()))
    }

    #[test]
    fn arguments_become_an_object() {
        assert_eq!(read_all(&[]).unwrap(), None);
        for document in [r#"{"a":"b=c"}"#, "{\n\"a\"=1}", "[1]", "word", "\"a=b\""] {
            assert_eq!(read_all(&[document]).unwrap().unwrap(), document);
        }
        let typed = ["text=a b=\"c\"", "n:=1.50", "list:=[1, 2]", "empty=", "x.y:=null"];
        let object = r#"{"text":"a b=\"c\"","n":1.50,"list":[1, 2],"empty":"","x.y":null}"#;
        assert_eq!(read_all(&typed).unwrap().unwrap(), object);
    }

    #[test]
    fn files_are_read_as_strings_or_json() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x").display().to_string();
        std::fs::write(&path, "\u{feff}[\"é\"]\n").unwrap();
        let typed = [format!("a=@{path}"), format!("b:=@{path}")];
        let typed: Vec<_> = typed.iter().map(String::as_str).collect();
        assert_eq!(read_all(&typed).unwrap().unwrap(), "{\"a\":\"[\\\"é\\\"]\\n\",\"b\":[\"é\"]}");
        assert_eq!(read_all(&[&format!("@{path}")]).unwrap().unwrap(), "[\"é\"]\n");
        assert!(read_all(&["a=@/nosuch"]).unwrap_err().contains("/nosuch for `a` cannot be read"));
    }

    #[test]
    fn invalid_arguments_are_explained() {
        let error = read_all(&["a=1", "b"]).unwrap_err();
        assert!(error.starts_with("`b` is not an argument; write KEY=TEXT"), "{error}");
        assert!(read_all(&["a=1", "a=2"]).unwrap_err().contains("`a` is given twice"));
        let error = read_all(&["a:=x"]).unwrap_err();
        assert!(error.contains("line 1 column 1; write a=TEXT for a string"), "{error}");
        assert!(json_error(b"{\"a\":}").unwrap().contains("line 1 column 6"));
        assert_eq!(json_error(b"{}"), None);
    }
}
