//! Values of cells and expressions.

use std::cmp::Ordering;
use std::rc::Rc;

use serde::Serialize;
use serde_json::Value as Json;

/// Maximum number of characters of a text that a result shows.
const SHOWN_MAX: usize = 2_000;

/// Value of a cell or an expression.
///
/// Values are ordered: null, booleans, numbers, text. Dates and times are text in ISO 8601, whose
/// order is that of time.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    Number(f64),
    Text(Rc<str>),
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// Every value is null.
    Empty,
    Boolean,
    Integer,
    Number,
    Text,
}

impl Kind {
    /// Returns the narrowest type that includes both.
    pub(crate) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Empty, kind) | (kind, Self::Empty) => kind,
            (kind, other) if kind == other => kind,
            (Self::Integer | Self::Number, Self::Integer | Self::Number) => Self::Number,
            _ => Self::Text,
        }
    }

    pub(crate) fn is_numeric(self) -> bool {
        matches!(self, Self::Integer | Self::Number)
    }
}

impl Value {
    pub(crate) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(text.into())
    }

    /// Returns the value of a cell in a column of the type `kind`. An empty cell is null, and one
    /// of another type stays text.
    pub(crate) fn of_cell(cell: &str, kind: Kind) -> Self {
        let parsed = match kind {
            _ if cell.is_empty() => Some(Self::Null),
            Kind::Boolean => parse_boolean(cell).map(Self::Boolean),
            Kind::Integer | Kind::Number => parse_number(cell),
            Kind::Empty | Kind::Text => None,
        };
        parsed.unwrap_or_else(|| Self::text(cell))
    }

    /// Returns the value of a JSON value. Arrays and objects become their JSON text.
    pub(crate) fn of_json(json: Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(boolean) => Self::Boolean(boolean),
            Json::String(text) => Self::text(text),
            Json::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Self::Integer(integer),
                (None, Some(number)) => Self::Number(number),
                (None, None) => Self::Null,
            },
            nested @ (Json::Array(_) | Json::Object(_)) => Self::text(nested.to_string()),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Empty,
            Self::Boolean(_) => Kind::Boolean,
            Self::Integer(_) => Kind::Integer,
            Self::Number(_) => Kind::Number,
            Self::Text(_) => Kind::Text,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    #[expect(clippy::cast_precision_loss, reason = "a number has 53 bits")]
    pub(crate) fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(integer) => Some(*integer as f64),
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the text of a value. That of null is empty.
    pub(crate) fn to_text(&self) -> Rc<str> {
        match self {
            Self::Null => "".into(),
            Self::Boolean(boolean) => boolean.to_string().into(),
            Self::Integer(integer) => integer.to_string().into(),
            Self::Number(number) => number.to_string().into(),
            Self::Text(text) => Rc::clone(text),
        }
    }

    /// Returns the value as JSON, and whether it was cut. A number that is not finite is null.
    pub(crate) fn shown(&self) -> (Json, bool) {
        let json = match self {
            Self::Null => Json::Null,
            Self::Boolean(boolean) => Json::from(*boolean),
            Self::Integer(integer) => Json::from(*integer),
            Self::Number(number) => Json::from(*number),
            Self::Text(text) => {
                let end = text.char_indices().nth(SHOWN_MAX).map(|(end, _)| end);
                let shown = end.and_then(|end| text.get(..end)).map(|start| format!("{start}…"));
                let is_cut = shown.is_some();
                return (Json::from(shown.unwrap_or_else(|| text.to_string())), is_cut);
            }
        };
        (json, false)
    }

    /// Returns the approximate number of bytes in memory.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + if let Self::Text(text) = self { text.len() + 16 } else { 0 }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Boolean(_) => 1,
            Self::Integer(_) | Self::Number(_) => 2,
            Self::Text(_) => 3,
        }
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Boolean(left), Self::Boolean(right)) => left.cmp(right),
            (Self::Integer(left), Self::Integer(right)) => left.cmp(right),
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            _ => match (self.as_number(), other.as_number()) {
                // Zeros of both signs are equal.
                (Some(left), Some(right)) => (left + 0.0).total_cmp(&(right + 0.0)),
                _ => self.rank().cmp(&other.rank()),
            },
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

/// Returns the type of a cell of a text file.
pub(crate) fn kind_of_cell(cell: &str) -> Kind {
    match parse_number(cell) {
        _ if cell.is_empty() => Kind::Empty,
        Some(number) => number.kind(),
        None if parse_boolean(cell).is_some() => Kind::Boolean,
        None => Kind::Text,
    }
}

fn parse_boolean(cell: &str) -> Option<bool> {
    match cell {
        _ if cell.eq_ignore_ascii_case("true") => Some(true),
        _ if cell.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

/// Parses a number. `007`, `inf` and `NaN` are text.
pub(crate) fn parse_number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text).as_bytes();
    let is_code = matches!(digits, [b'0', b'0'..=b'9', ..]);
    let is_plain = digits
        .iter()
        .all(|it| it.is_ascii_digit() || matches!(it, b'+' | b'-' | b'.' | b'e' | b'E'));
    if is_code || !is_plain {
        return None;
    }
    let integer = text.parse().ok().map(Value::Integer);
    integer.or_else(|| text.parse().ok().filter(|it: &f64| it.is_finite()).map(Value::Number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_values_of_their_column() {
        for (cell, kind, expected) in [
            ("12", Kind::Integer, Value::Integer(12)),
            ("-1.5", Kind::Number, Value::Number(-1.5)),
            ("", Kind::Text, Value::Null),
            ("12", Kind::Text, Value::text("12")),
            ("n/a", Kind::Number, Value::text("n/a")),
            ("TRUE", Kind::Boolean, Value::Boolean(true)),
            ("9223372036854775808", Kind::Integer, Value::Number(9_223_372_036_854_775_808.0)),
        ] {
            assert_eq!(Value::of_cell(cell, kind), expected, "{cell}");
        }
        for (cell, expected) in [
            ("7", Kind::Integer),
            ("0.5", Kind::Number),
            ("007", Kind::Text),
            ("1,5", Kind::Text),
            ("NaN", Kind::Text),
            ("False", Kind::Boolean),
            ("2026-01-03", Kind::Text),
            ("", Kind::Empty),
        ] {
            assert_eq!(kind_of_cell(cell), expected, "{cell}");
        }
    }

    #[test]
    fn values_are_in_order() {
        let ordered = [
            Value::Null,
            Value::Boolean(false),
            Value::Number(-1.5),
            Value::Integer(0),
            Value::Number(0.5),
            Value::text("a"),
            Value::text("b"),
        ];
        assert!(ordered.is_sorted_by(|left, right| left < right));
        assert_eq!(Value::Integer(1), Value::Number(1.0));
        assert_eq!(Value::Number(0.0), Value::Number(-0.0));
    }

    #[test]
    fn long_text_is_cut() {
        let (shown, is_cut) = Value::text("ä".repeat(SHOWN_MAX + 1)).shown();
        assert_eq!(shown.as_str().map(|it| it.chars().count()), Some(SHOWN_MAX + 1));
        assert!(is_cut);
        assert_eq!(Value::text("ä").shown(), (Json::from("ä"), false));
    }
}
