//! JSON reader that accepts exactly RFC 8259.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::{Json, JsonObject, JsonShape};

/// Objects with more members look for repeated keys with a hash set.
const MEMBERS_COMPARED_MAX: usize = 16;

/// Error: the input is not one JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvalidDocument {
    /// Offset of the byte at which reading stopped.
    pub(crate) offset: usize,
}

/// Returns the deepest nesting of `text`, counted only by its brackets, so that the input may be
/// invalid. A value that is neither array nor object has no levels.
pub(crate) fn levels(text: &[u8]) -> usize {
    let (mut open, mut deepest) = (0_usize, 0);
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => rest = after_string(rest),
            b'[' | b'{' => {
                open += 1;
                deepest = deepest.max(open);
            }
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Returns the rest of `text`, which begins after an opening quote, from the end of that string on.
/// Skips strings quickly, because they make up most of a long input.
fn after_string(mut text: &[u8]) -> &[u8] {
    while let Some(at) = memchr::memchr2(b'"', b'\\', text) {
        let is_end = text.get(at) == Some(&b'"');
        // Skips the character that a backslash escapes.
        text = text.get(if is_end { at + 1 } else { at + 2 }..).unwrap_or_default();
        if is_end {
            return text;
        }
    }
    &[]
}

/// Returns whether a byte is below 0x20. Compares eight bytes at a time, which is as fast as vector
/// instructions and does not need a build that uses them.
fn has_control_character(text: &[u8]) -> bool {
    const ONES: u64 = u64::MAX / 0xFF;
    let (words, rest) = text.as_chunks();
    // A byte below 0x20 has no high bit, and gets one by the subtraction.
    let differences = words.iter().fold(0, |differences, word| {
        let word = u64::from_ne_bytes(*word);
        differences | (word.wrapping_sub(0x20 * ONES) & !word)
    });
    differences & (0x80 * ONES) != 0 || rest.iter().any(|&byte| byte < 0x20)
}

/// Returns the deepest nesting of a value that was built in memory, without recursion.
pub(crate) fn value_levels(value: &Value) -> usize {
    let mut deepest = 0;
    let mut pending = vec![(value, 1)];
    while let Some((value, level)) = pending.pop() {
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(members) => {
                pending.extend(members.values().map(|member| (member, level + 1)))
            }
            _ => continue,
        }
        deepest = deepest.max(level);
    }
    deepest
}

/// Reads one JSON value. The caller has checked that [`levels`] is at most `levels_max`. Nesting
/// beyond that is malformed anyway, so the stack is bounded in any case.
pub(crate) fn read(text: &[u8], levels_max: usize) -> Result<Json<'_>, InvalidDocument> {
    let text = std::str::from_utf8(text)
        .map_err(|error| InvalidDocument { offset: error.valid_up_to() })?;
    let mut reader = JsonReader { text, at: 0, levels_left: levels_max };
    reader.skip_white_space();
    let value = reader.value()?;
    reader.skip_white_space();
    if reader.at == text.len() { Ok(value) } else { Err(reader.malformed()) }
}

struct JsonReader<'t> {
    text: &'t str,
    at: usize,
    levels_left: usize,
}

impl<'t> JsonReader<'t> {
    fn value(&mut self) -> Result<Json<'t>, InvalidDocument> {
        let start = self.at;
        let shape = match self.peek() {
            Some(b'"') => JsonShape::String(self.string()?),
            Some(b'[') => self.nested(Self::array)?,
            Some(b'{') => self.nested(Self::object)?,
            Some(b't') => self.word("true", JsonShape::Bool(true))?,
            Some(b'f') => self.word("false", JsonShape::Bool(false))?,
            Some(b'n') => self.word("null", JsonShape::Null)?,
            _ => self.number()?,
        };
        Ok(Json { raw: self.since(start)?, shape })
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<JsonShape<'t>, InvalidDocument>,
    ) -> Result<JsonShape<'t>, InvalidDocument> {
        self.levels_left = self.levels_left.checked_sub(1).ok_or(self.malformed())?;
        self.at += 1;
        let shape = read(self)?;
        self.levels_left += 1;
        Ok(shape)
    }

    fn array(&mut self) -> Result<JsonShape<'t>, InvalidDocument> {
        let mut items = Vec::new();
        self.skip_white_space();
        if self.take(b']') {
            return Ok(JsonShape::Array(items));
        }
        loop {
            self.skip_white_space();
            items.push(self.value()?);
            if self.ends_with(b']')? {
                return Ok(JsonShape::Array(items));
            }
        }
    }

    fn object(&mut self) -> Result<JsonShape<'t>, InvalidDocument> {
        let mut members = Vec::new();
        self.skip_white_space();
        if self.take(b'}') {
            return Ok(JsonShape::Object(JsonObject::default()));
        }
        loop {
            self.skip_white_space();
            members.push(self.member()?);
            if self.ends_with(b'}')? {
                return Ok(JsonShape::Object(last_members(members)));
            }
        }
    }

    fn member(&mut self) -> Result<(Cow<'t, str>, Json<'t>), InvalidDocument> {
        if self.peek() != Some(b'"') {
            return Err(self.malformed());
        }
        let name = self.string()?;
        self.skip_white_space();
        if !self.take(b':') {
            return Err(self.malformed());
        }
        self.skip_white_space();
        Ok((name, self.value()?))
    }

    /// Returns true if `close` follows an element, or false if a comma follows.
    fn ends_with(&mut self, close: u8) -> Result<bool, InvalidDocument> {
        self.skip_white_space();
        if self.take(close) {
            return Ok(true);
        }
        if self.take(b',') { Ok(false) } else { Err(self.malformed()) }
    }

    fn word(&mut self, word: &str, shape: JsonShape<'t>) -> Result<JsonShape<'t>, InvalidDocument> {
        if !self.rest().starts_with(word.as_bytes()) {
            return Err(self.malformed());
        }
        self.at += word.len();
        Ok(shape)
    }

    fn number(&mut self) -> Result<JsonShape<'t>, InvalidDocument> {
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(JsonShape::Number)
    }

    fn digits(&mut self) -> Result<(), InvalidDocument> {
        let digits = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        if digits == 0 { Err(self.malformed()) } else { Ok(()) }
    }

    /// Reads a string from its opening to its closing quote. Borrows it if it has no escapes.
    fn string(&mut self) -> Result<Cow<'t, str>, InvalidDocument> {
        self.at += 1;
        let plain = self.plain_characters()?;
        if self.take(b'"') {
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = plain.to_owned();
        loop {
            if self.take(b'"') {
                return Ok(Cow::Owned(text));
            }
            if self.take(b'\\') {
                text.push(self.escape()?);
            }
            text.push_str(self.plain_characters()?);
        }
    }

    /// Returns everything up to a quote or a backslash, one of which must follow.
    fn plain_characters(&mut self) -> Result<&'t str, InvalidDocument> {
        let (start, rest) = (self.at, self.rest());
        let end = memchr::memchr2(b'"', b'\\', rest);
        let plain = end.and_then(|end| rest.get(..end)).unwrap_or(rest);
        if has_control_character(plain) {
            self.at += plain.iter().position(|&byte| byte < 0x20).unwrap_or_default();
            return Err(self.malformed());
        }
        self.at += end.ok_or(InvalidDocument { offset: self.text.len() })?;
        self.since(start)
    }

    fn escape(&mut self) -> Result<char, InvalidDocument> {
        let escaped = self.peek();
        self.at += 1;
        Ok(match escaped {
            Some(plain @ (b'"' | b'\\' | b'/')) => char::from(plain),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.malformed()),
        })
    }

    /// Reads `\uXXXX`, or two of them for a character outside the basic plane. A single surrogate
    /// is malformed (`ARG-28`).
    fn unicode_escape(&mut self) -> Result<char, InvalidDocument> {
        let unit = self.hex_unit()?;
        if let Some(character) = char::from_u32(unit) {
            return Ok(character);
        }
        if !(self.take(b'\\') && self.take(b'u')) {
            return Err(self.malformed());
        }
        char::decode_utf16([narrow(unit), narrow(self.hex_unit()?)])
            .next()
            .and_then(Result::ok)
            .ok_or(self.malformed())
    }

    fn hex_unit(&mut self) -> Result<u32, InvalidDocument> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            unit = unit * 16 + digit.ok_or(self.malformed())?;
            self.at += 1;
        }
        Ok(unit)
    }

    fn skip_white_space(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn since(&self, start: usize) -> Result<&'t str, InvalidDocument> {
        self.text.get(start..self.at).ok_or(self.malformed())
    }

    fn malformed(&self) -> InvalidDocument {
        InvalidDocument { offset: self.at }
    }
}

/// Narrows a unit of four hexadecimal digits, which always fits into 16 bits.
fn narrow(unit: u32) -> u16 {
    u16::try_from(unit).unwrap_or(u16::MAX)
}

/// Keeps the last member of each name (`ARG-29`) and records a repeated name (`ARG-38`).
fn last_members<'t>(mut members: Vec<(Cow<'t, str>, Json<'t>)>) -> JsonObject<'t> {
    let Some(latest) = repetitions(&members) else { return JsonObject { members, repeated: None } };
    let repeated = members
        .iter()
        .zip(&latest)
        .find(|(_, is_latest)| !**is_latest)
        .map(|((name, _), _)| name.clone());
    let mut latest = latest.into_iter();
    members.retain(|_| latest.next().unwrap_or(true));
    JsonObject { members, repeated }
}

/// Returns for each member whether it is the last of its name, or `None` if no name is repeated.
fn repetitions(members: &[(Cow<'_, str>, Json<'_>)]) -> Option<Vec<bool>> {
    if members.len() <= MEMBERS_COMPARED_MAX {
        let repeated = |index: usize, name: &Cow<'_, str>| {
            members.iter().skip(index + 1).any(|(later, _)| later == name)
        };
        let latest: Vec<bool> =
            members.iter().enumerate().map(|(i, (name, _))| !repeated(i, name)).collect();
        return latest.contains(&false).then_some(latest);
    }
    let mut seen = HashSet::with_capacity(members.len());
    let mut latest: Vec<bool> =
        members.iter().rev().map(|(name, _)| seen.insert(name.as_ref())).collect();
    latest.reverse();
    latest.contains(&false).then_some(latest)
}
