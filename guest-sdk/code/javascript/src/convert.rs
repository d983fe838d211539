//! Converts values of a program to JSON, and results of tools to values.
//!
//! Looks at the internal fields of objects and at own properties, never at functions that a program
//! can replace, except for its own `toJSON` methods and getters.

use std::cell::RefCell;
use std::rc::Rc;

use cofferdam_sdk::{Blob, Content, Link, Resource, ResourceBody};
use rquickjs::function::This;
use rquickjs::object::{Filter, Property};
use rquickjs::{Array, Atom, Ctx, Function, IntoAtom, IntoJs as _, Object, Value};

use crate::engine::Intrinsics;
use crate::raw::{self, Class, class_of};

/// Maximum nesting of a result. The host allows 128 levels, and a result is inside an object.
const DEPTH_MAX: usize = 120;
/// Largest integer up to which doubles are exact.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// Why a value has no JSON.
#[derive(Debug)]
pub(crate) enum Unwritable {
    /// The value at this path contains itself.
    Circular(String),
    /// The value at this path is a promise.
    Promise(String),
    /// The value at this path is nested too deeply.
    Deep(String),
    /// The JSON is longer than allowed.
    Long,
    /// Memory is exhausted, or code of the program threw an error.
    Thrown(rquickjs::Error),
}

impl From<rquickjs::Error> for Unwritable {
    fn from(error: rquickjs::Error) -> Self {
        Self::Thrown(error)
    }
}

type Written = Result<(), Unwritable>;

/// What to do with values that have no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Fail.
    Exact,
    /// Write a note instead of them.
    Shown,
}

/// Returns the JSON of a value.
///
/// # Errors
/// [`Unwritable`].
pub(crate) fn json<'js>(
    value: &Value<'js>,
    intrinsics: &Intrinsics<'js>,
    bytes_max: usize,
    mode: Mode,
) -> Result<String, Unwritable> {
    let mut writer = Writer {
        text: Vec::new(),
        bytes_max,
        mode,
        intrinsics,
        open: Vec::new(),
        path: Vec::new(),
    };
    writer.value(value)?;
    Ok(String::from_utf8(writer.text).unwrap_or_default())
}

/// Step from a value to a part of it.
enum Step {
    Key(String),
    Index(usize),
}

struct Writer<'w, 'js> {
    text: Vec<u8>,
    bytes_max: usize,
    mode: Mode,
    intrinsics: &'w Intrinsics<'js>,
    /// Objects around the current value.
    open: Vec<Value<'js>>,
    path: Vec<Step>,
}

impl<'js> Writer<'_, 'js> {
    fn value(&mut self, value: &Value<'js>) -> Written {
        if self.text.len() > self.bytes_max {
            return Err(Unwritable::Long);
        }
        if let Some(number) = value.as_int() {
            self.push(&number.to_string());
        } else if let Some(text) = value.as_string() {
            self.string(text)?;
        } else if let Some(number) = value.as_float() {
            self.number(number);
        } else if let Some(is_true) = value.as_bool() {
            self.push(if is_true { "true" } else { "false" });
        } else if value.is_big_int() {
            self.big_int(value)?;
        } else if value.is_function() {
            self.push(if self.mode == Mode::Shown { "\"[function]\"" } else { "null" });
        } else if let Some(object) = value.as_object() {
            self.nested(value, object)?;
        } else {
            self.push("null");
        }
        Ok(())
    }

    fn push(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    fn string(&mut self, text: &rquickjs::String<'js>) -> Written {
        let room = self.bytes_max.saturating_sub(self.text.len());
        let output = &mut self.text;
        let written = raw::with_text(text, |text| text.len() <= room && quote(output, text));
        match written {
            None => Err(Unwritable::Thrown(rquickjs::Error::Exception)),
            Some(false) => Err(Unwritable::Long),
            Some(true) => Ok(()),
        }
    }

    fn number(&mut self, number: f64) {
        if !number.is_finite() {
            self.push("null");
        } else if number.fract() == 0.0 && number.abs() <= EXACT_MAX {
            #[allow(clippy::cast_possible_truncation, reason = "an exact integer")]
            let integer = number as i64;
            self.push(&integer.to_string());
        } else {
            match serde_json::Number::from_f64(number) {
                Some(number) => self.push(&number.to_string()),
                None => self.push("null"),
            }
        }
    }

    /// Writes a number if doubles hold it exactly, else a string.
    fn big_int(&mut self, value: &Value<'js>) -> Written {
        let text = raw::to_string(value.ctx(), value)?;
        let Some(digits) = raw::with_text(&text, str::to_owned) else {
            return Err(Unwritable::Thrown(rquickjs::Error::Exception));
        };
        match digits.parse::<i64>() {
            #[allow(clippy::cast_precision_loss, reason = "compared with the limit")]
            Ok(number) if (number as f64).abs() < EXACT_MAX => self.push(&digits),
            _ => self.push(&format!("\"{digits}\"")),
        }
        Ok(())
    }

    fn nested(&mut self, value: &Value<'js>, object: &Object<'js>) -> Written {
        if self.open.contains(value) {
            return self.refuse("[circular]", Unwritable::Circular);
        }
        if value.is_promise() {
            return self.refuse("[promise]", Unwritable::Promise);
        }
        if self.open.len() >= DEPTH_MAX {
            return self.refuse("[…]", Unwritable::Deep);
        }
        self.open.push(value.clone());
        let written = self.object(value, object);
        self.open.pop();
        written
    }

    fn refuse(&mut self, note: &str, reason: fn(String) -> Unwritable) -> Written {
        match self.mode {
            Mode::Exact => Err(reason(self.path())),
            Mode::Shown => {
                self.push(&format!("\"{note}\""));
                Ok(())
            }
        }
    }

    fn object(&mut self, value: &Value<'js>, object: &Object<'js>) -> Written {
        if value.is_array() {
            return self.array(object);
        }
        match class_of(value) {
            Class::Date => return self.date(value),
            Class::Map => return self.map(value),
            Class::Set => return self.set(value),
            Class::Bytes => return self.bytes(value),
            Class::RegExp => {
                let text = raw::to_string(value.ctx(), value)?;
                return self.string(&text);
            }
            Class::Other => {}
        }
        if let Some(method) = object.get::<_, Value<'js>>("toJSON")?.as_function() {
            let value: Value<'js> = method.call((This(value.clone()),))?;
            return self.value(&value);
        }
        self.properties(value, object)
    }

    fn array(&mut self, array: &Object<'js>) -> Written {
        self.push("[");
        // Up to 2^32 - 1 in an array with gaps; a proxy can return anything.
        let length: Option<f64> = array.get("length")?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let length = length.unwrap_or_default() as u32;
        for index in 0..length {
            if index > 0 {
                self.push(",");
            }
            self.path.push(Step::Index(index as usize));
            let value: Value<'js> = array.get(index)?;
            self.value(&value)?;
            self.path.pop();
        }
        self.push("]");
        Ok(())
    }

    fn properties(&mut self, value: &Value<'js>, object: &Object<'js>) -> Written {
        self.push("{");
        let mut is_first = true;
        if value.is_error() {
            // Both are usually inherited or hidden.
            for name in ["name", "message"] {
                let value: Value<'js> = object.get(name)?;
                self.entry(name, &value, &mut is_first)?;
            }
        }
        for key in object.own_keys::<Atom<'js>>(Filter::new().string().enum_only()) {
            let key = key?;
            let value: Value<'js> = object.get(key.clone())?;
            if value.is_function() && self.mode == Mode::Exact {
                continue;
            }
            let Some(name) = raw::with_text(&key.to_js_string()?, str::to_owned) else {
                return Err(Unwritable::Thrown(rquickjs::Error::Exception));
            };
            self.entry(&name, &value, &mut is_first)?;
        }
        self.push("}");
        Ok(())
    }

    fn entry(&mut self, name: &str, value: &Value<'js>, is_first: &mut bool) -> Written {
        if !std::mem::take(is_first) {
            self.push(",");
        }
        quote(&mut self.text, name);
        self.push(":");
        self.path.push(Step::Key(name.to_owned()));
        self.value(value)?;
        self.path.pop();
        Ok(())
    }

    /// Writes the time as text. A date without a time becomes null.
    fn date(&mut self, value: &Value<'js>) -> Written {
        match self.intrinsics.date_text.call::<_, Value<'js>>((This(value.clone()),)) {
            Ok(text) => self.value(&text),
            Err(_) => {
                let _ = value.ctx().catch();
                self.push("null");
                Ok(())
            }
        }
    }

    /// Writes an object if all keys are strings, else an array of pairs.
    fn map(&mut self, value: &Value<'js>) -> Written {
        let entries = self.intrinsics.entries(&self.intrinsics.map_for_each, value)?;
        if entries.iter().all(|(_, key)| key.is_string()) {
            self.push("{");
            let mut is_first = true;
            for (value, key) in &entries {
                let name = key.as_string().and_then(|key| raw::with_text(key, str::to_owned));
                self.entry(&name.unwrap_or_default(), value, &mut is_first)?;
            }
            self.push("}");
            return Ok(());
        }
        self.push("[");
        for (index, (value, key)) in entries.iter().enumerate() {
            self.push(if index > 0 { ",[" } else { "[" });
            self.path.push(Step::Index(index));
            self.value(key)?;
            self.push(",");
            self.value(value)?;
            self.path.pop();
            self.push("]");
        }
        self.push("]");
        Ok(())
    }

    fn set(&mut self, value: &Value<'js>) -> Written {
        let entries = self.intrinsics.entries(&self.intrinsics.set_for_each, value)?;
        self.push("[");
        for (index, (value, _)) in entries.iter().enumerate() {
            if index > 0 {
                self.push(",");
            }
            self.path.push(Step::Index(index));
            self.value(value)?;
            self.path.pop();
        }
        self.push("]");
        Ok(())
    }

    fn bytes(&mut self, value: &Value<'js>) -> Written {
        let room = self.bytes_max.saturating_sub(self.text.len());
        let text =
            raw::with_bytes(value, |bytes| (bytes.len() / 3 * 4 <= room).then(|| base64(bytes)));
        match text {
            Some(Some(text)) => {
                self.push("{\"media_type\":\"application/octet-stream\",\"data\":\"");
                self.push(&text);
                self.push("\"}");
                Ok(())
            }
            Some(None) => Err(Unwritable::Long),
            None => {
                self.push("null");
                Ok(())
            }
        }
    }

    /// Returns the path to the current value, such as `result.items[3]`.
    fn path(&self) -> String {
        let mut text = "result".to_owned();
        for step in &self.path {
            match step {
                Step::Key(name) => {
                    text.push('.');
                    text.push_str(name);
                }
                Step::Index(index) => text.push_str(&format!("[{index}]")),
            }
            if text.len() > 200 {
                text.push('…');
                break;
            }
        }
        text
    }
}

/// Appends a JSON string. Always returns true.
fn quote(output: &mut Vec<u8>, text: &str) -> bool {
    serde_json::to_writer(output, text).is_ok()
}

/// Returns the base64 of bytes.
pub(crate) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |bits: u32| DIGITS.get((bits & 63) as usize).map_or('=', |&digit| digit as char);
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        text.push(digit(bits >> 18));
        text.push(digit(bits >> 12));
        text.push(if chunk.len() > 1 { digit(bits >> 6) } else { '=' });
        text.push(if chunk.len() > 2 { digit(bits) } else { '=' });
    }
    text
}

/// Returns the value of a tool's result: null, the item, or an array of the items.
pub(crate) fn value_of<'js>(
    ctx: &Ctx<'js>,
    mut items: Vec<Content>,
) -> rquickjs::Result<Value<'js>> {
    match items.len() {
        0 => Ok(Value::new_null(ctx.clone())),
        1 => item(ctx, items.swap_remove(0)),
        _ => {
            let array = Array::new(ctx.clone())?;
            for (index, content) in (0_u32..).zip(items) {
                define(array.as_object(), index, item(ctx, content)?)?;
            }
            Ok(array.into_value())
        }
    }
}

fn item<'js>(ctx: &Ctx<'js>, content: Content) -> rquickjs::Result<Value<'js>> {
    match content {
        Content::Text(text) => text.into_js(ctx),
        Content::Json(json) => ctx.json_parse(exact(json)),
        Content::Blob(Blob { media_type, data, .. }) => {
            object(ctx, [("media_type", Some(media_type)), ("data", Some(base64(&data)))])
        }
        Content::Resource(Resource { uri, media_type, body, .. }) => {
            let body = match body {
                ResourceBody::Text(text) => ("text", Some(text)),
                ResourceBody::Blob(data) => ("data", Some(base64(&data))),
            };
            object(ctx, [("uri", Some(uri)), ("media_type", media_type), body])
        }
        Content::Link(Link { uri, name, media_type, .. }) => {
            object(ctx, [("uri", Some(uri)), ("name", Some(name)), ("media_type", media_type)])
        }
        _ => Ok(Value::new_null(ctx.clone())),
    }
}

fn object<'js, const N: usize>(
    ctx: &Ctx<'js>,
    members: [(&str, Option<String>); N],
) -> rquickjs::Result<Value<'js>> {
    let object = Object::new(ctx.clone())?;
    for (name, value) in members {
        define(&object, name, value.into_js(ctx)?)?;
    }
    Ok(object.into_value())
}

/// Defines a property. Unlike an assignment, it never runs a setter that a program has put into a
/// prototype.
pub(crate) fn define<'js>(
    object: &Object<'js>,
    key: impl IntoAtom<'js>,
    value: Value<'js>,
) -> rquickjs::Result<()> {
    object.prop(key, Property::from(value).writable().enumerable().configurable())
}

/// Puts quotes around integers that doubles cannot hold, so that their digits are not lost.
fn exact(json: String) -> String {
    const DIGITS_EXACT: usize = 15;
    let bytes = json.as_bytes();
    let mut output: Option<String> = None;
    let (mut at, mut copied) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let start = at;
                let is_number = |byte: &u8| {
                    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
                };
                while bytes.get(at).is_some_and(is_number) {
                    at += 1;
                }
                let number = json.get(start..at).unwrap_or_default();
                if number.len() > DIGITS_EXACT && !is_exact(number) {
                    let output = output.get_or_insert_default();
                    output.push_str(json.get(copied..start).unwrap_or_default());
                    output.push('"');
                    output.push_str(number);
                    output.push('"');
                    copied = at;
                }
            }
            _ => at += 1,
        }
    }
    match output {
        None => json,
        Some(mut output) => {
            output.push_str(json.get(copied..).unwrap_or_default());
            output
        }
    }
}

/// Returns whether a number is no integer, or one that a double holds.
fn is_exact(number: &str) -> bool {
    if number.contains(['.', 'e', 'E']) {
        return true;
    }
    #[allow(clippy::cast_precision_loss, reason = "compared with the limit")]
    number.parse::<i64>().is_ok_and(|number| (number as f64).abs() < EXACT_MAX)
}

/// Returns the offset after the string that starts at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    at += 1;
    while let Some(&byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    at
}

/// Returns what `forEach` of a map or a set passes to its function: values with keys.
pub(crate) fn entries<'js>(
    ctx: &Ctx<'js>,
    for_each: &Function<'js>,
    collection: &Value<'js>,
) -> rquickjs::Result<Vec<(Value<'js>, Value<'js>)>> {
    let list = Rc::new(RefCell::new(Vec::new()));
    let target = Rc::clone(&list);
    let collect = Function::new(ctx.clone(), move |value: Value<'js>, key: Value<'js>| {
        target.borrow_mut().push((value, key));
    })?;
    for_each.call::<_, ()>((This(collection.clone()), collect))?;
    Ok(list.take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_padding() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
    }

    #[test]
    fn only_inexact_integers_become_strings() {
        let exact = |json: &str| exact(json.to_owned());
        assert_eq!(
            exact(r#"{"id":1234567890123456789,"n":12}"#),
            r#"{"id":"1234567890123456789","n":12}"#
        );
        assert_eq!(
            exact(r#"["1234567890123456789",9007199254740991]"#),
            r#"["1234567890123456789",9007199254740991]"#
        );
        assert_eq!(exact("0.1234567890123456789"), "0.1234567890123456789");
        assert_eq!(
            exact(r#"["a\"1234567890123456789",-9007199254740993]"#),
            r#"["a\"1234567890123456789","-9007199254740993"]"#
        );
    }
}
