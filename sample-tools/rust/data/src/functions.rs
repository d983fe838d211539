//! Functions of single values.

use cofferdam_sdk::ToolFailure;
use serde_json::Value as Json;

use crate::dates::{Date, Moment};
use crate::expression::not_a_number;
use crate::names::shorten;
use crate::value::Value;

/// Maximum bytes of a text that a function makes.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// A function, with its name in SQL, the number of its arguments, and their names.
macro_rules! functions {
    ($($function:ident = $($name:literal)|+, $minimum:literal ..= $maximum:literal, $names:literal;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Function {
            $($function,)+
        }

        impl Function {
            /// Names of all functions.
            pub(crate) const NAMES: &'static [&'static str] = &[$($($name,)+)+];

            /// Returns the function of a name in lower case.
            pub(crate) fn find(name: &str) -> Option<Self> {
                match name {
                    $($($name)|+ => Some(Self::$function),)+
                    _ => None,
                }
            }

            /// Returns the minimum and the maximum number of arguments.
            pub(crate) fn arity(self) -> (usize, usize) {
                match self {
                    $(Self::$function => ($minimum, $maximum),)+
                }
            }

            /// Returns the names of the arguments, with those that may be left out in brackets.
            pub(crate) fn arguments(self) -> &'static str {
                match self {
                    $(Self::$function => $names,)+
                }
            }
        }
    };
}

functions! {
    Abs = "abs", 1..=1, "number";
    Ceiling = "ceil" | "ceiling", 1..=1, "number";
    Coalesce = "coalesce" | "ifnull", 1..=100, "value, ...";
    Concat = "concat", 1..=100, "value, ...";
    Contains = "contains", 2..=2, "text, part";
    DateAdd = "date_add", 2..=2, "date, days";
    DateDiff = "date_diff" | "datediff", 3..=3, "unit, from, to";
    DateTrunc = "date_trunc", 2..=2, "unit, date";
    Day = "day", 1..=1, "date";
    EndsWith = "ends_with", 2..=2, "text, end";
    Floor = "floor", 1..=1, "number";
    Greatest = "greatest", 1..=100, "value, ...";
    Hour = "hour", 1..=1, "time";
    JsonExtract = "json_extract", 2..=2, "json, path";
    Least = "least", 1..=100, "value, ...";
    Left = "left", 2..=2, "text, length";
    Length = "length" | "len" | "char_length", 1..=1, "text";
    Logarithm = "ln", 1..=1, "number";
    Lower = "lower", 1..=1, "text";
    LeftTrim = "ltrim", 1..=1, "text";
    Month = "month", 1..=1, "date";
    NullIf = "nullif", 2..=2, "value, other";
    Power = "power" | "pow", 2..=2, "base, exponent";
    Quarter = "quarter", 1..=1, "date";
    Replace = "replace", 3..=3, "text, from, to";
    Right = "right", 2..=2, "text, length";
    Round = "round", 1..=2, "number[, decimals]";
    RightTrim = "rtrim", 1..=1, "text";
    SplitPart = "split_part", 3..=3, "text, separator, number";
    SquareRoot = "sqrt", 1..=1, "number";
    StartsWith = "starts_with", 2..=2, "text, start";
    Position = "strpos" | "instr", 2..=2, "text, part";
    Substring = "substr" | "substring", 2..=3, "text, first[, length]";
    Trim = "trim", 1..=1, "text";
    TypeOf = "typeof", 1..=1, "value";
    Upper = "upper", 1..=1, "text";
    Weekday = "weekday", 1..=1, "date";
    Year = "year", 1..=1, "date";
}

impl Function {
    /// Computes the function. A null argument makes null of most functions.
    pub(crate) fn call(self, arguments: &[Value]) -> Result<Value, ToolFailure> {
        let [first, rest @ ..] = arguments else { return Ok(Value::Null) };
        let second = rest.first().unwrap_or(&Value::Null);
        let third = rest.get(1).unwrap_or(&Value::Null);
        match self {
            Self::Coalesce => {
                Ok(arguments.iter().find(|it| !it.is_null()).cloned().unwrap_or(Value::Null))
            }
            Self::Concat => concat(arguments),
            Self::Greatest => Ok(arguments.iter().max().cloned().unwrap_or(Value::Null)),
            Self::Least => Ok(arguments
                .iter()
                .filter(|it| !it.is_null())
                .min()
                .cloned()
                .unwrap_or(Value::Null)),
            Self::NullIf => Ok(if first == second { Value::Null } else { first.clone() }),
            Self::TypeOf => Ok(Value::text(format!("{:?}", first.kind()).to_lowercase())),
            _ if arguments.iter().any(Value::is_null) => Ok(Value::Null),
            Self::Abs => match first {
                Value::Integer(integer) if *integer != i64::MIN => {
                    Ok(Value::Integer(integer.abs()))
                }
                _ => Ok(Value::Number(number(first)?.abs())),
            },
            Self::Ceiling => rounded(first, f64::ceil),
            Self::Floor => rounded(first, f64::floor),
            Self::Round => round(first, second),
            Self::Logarithm => finite(number(first)?.ln()),
            Self::Power => finite(number(first)?.powf(number(second)?)),
            Self::SquareRoot => finite(number(first)?.sqrt()),
            Self::Length => Ok(count(first.to_text().chars().count())),
            Self::Lower => Ok(Value::text(first.to_text().to_lowercase())),
            Self::Upper => Ok(Value::text(first.to_text().to_uppercase())),
            Self::Trim => Ok(Value::text(first.to_text().trim())),
            Self::LeftTrim => Ok(Value::text(first.to_text().trim_start())),
            Self::RightTrim => Ok(Value::text(first.to_text().trim_end())),
            Self::Contains => Ok(Value::Boolean(first.to_text().contains(&*second.to_text()))),
            Self::StartsWith => Ok(Value::Boolean(first.to_text().starts_with(&*second.to_text()))),
            Self::EndsWith => Ok(Value::Boolean(first.to_text().ends_with(&*second.to_text()))),
            Self::Position => {
                let (text, wanted) = (first.to_text(), second.to_text());
                let before = text.find(&*wanted).and_then(|at| text.get(..at));
                Ok(before.map_or(Value::Integer(0), |before| count(before.chars().count() + 1)))
            }
            Self::Left => Ok(part(first, 1, Some(integer(second)?))),
            Self::Right => {
                let (text, wanted) = (first.to_text(), integer(second)?.max(0));
                let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
                Ok(part(first, length.saturating_sub(wanted).saturating_add(1), None))
            }
            Self::Substring => {
                let length = if rest.len() > 1 { Some(integer(third)?) } else { None };
                Ok(part(first, integer(second)?, length))
            }
            Self::Replace => replace(&first.to_text(), &second.to_text(), &third.to_text()),
            Self::SplitPart => {
                let (text, separator) = (first.to_text(), second.to_text());
                let index = usize::try_from(integer(third)?.saturating_sub(1));
                let part = match (separator.is_empty(), index) {
                    (false, Ok(index)) => text.split(&*separator).nth(index).unwrap_or_default(),
                    _ => "",
                };
                Ok(Value::text(part))
            }
            Self::JsonExtract => json_extract(&first.to_text(), &second.to_text()),
            Self::Year => date(first, |date, _| date.year),
            Self::Quarter => date(first, |date, _| (date.month + 2) / 3),
            Self::Month => date(first, |date, _| date.month),
            Self::Day => date(first, |date, _| date.day),
            Self::Hour => date(first, |_, moment| moment.seconds / 3_600),
            // January 1, 1970 was a Thursday; Monday is 1.
            Self::Weekday => date(first, |_, moment| (moment.days + 3).rem_euclid(7) + 1),
            Self::DateTrunc => date_trunc(&first.to_text(), second),
            Self::DateAdd => {
                let days = moment(first)?.days.saturating_add(integer(second)?);
                Ok(Value::text(Date::of_days(days.clamp(-4_000_000, 4_000_000)).to_string()))
            }
            Self::DateDiff => date_diff(&first.to_text(), moment(second)?, moment(third)?),
        }
    }
}

fn number(value: &Value) -> Result<f64, ToolFailure> {
    value.as_number().ok_or_else(|| not_a_number(value))
}

#[expect(clippy::cast_possible_truncation, reason = "a larger number is as good as the largest")]
fn integer(value: &Value) -> Result<i64, ToolFailure> {
    match value {
        Value::Integer(integer) => Ok(*integer),
        other => Ok(number(other)? as i64),
    }
}

fn count(count: usize) -> Value {
    Value::Integer(i64::try_from(count).unwrap_or(i64::MAX))
}

#[expect(clippy::unnecessary_wraps, reason = "the value of a function")]
fn finite(number: f64) -> Result<Value, ToolFailure> {
    Ok(if number.is_finite() { Value::Number(number) } else { Value::Null })
}

#[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
fn rounded(value: &Value, round: impl Fn(f64) -> f64) -> Result<Value, ToolFailure> {
    if let Value::Integer(integer) = value {
        return Ok(Value::Integer(*integer));
    }
    let whole = round(number(value)?);
    Ok(if whole.abs() < 9e15 { Value::Integer(whole as i64) } else { Value::Number(whole) })
}

/// Rounds to a number of decimals.
fn round(value: &Value, decimals: &Value) -> Result<Value, ToolFailure> {
    let decimals = if decimals.is_null() { 0 } else { integer(decimals)?.clamp(-15, 15) };
    match (value, decimals) {
        (Value::Integer(_), 0..) => Ok(value.clone()),
        (_, 0) => rounded(value, f64::round),
        _ => {
            let scale = 10_f64.powi(i32::try_from(decimals).unwrap_or_default());
            finite((number(value)? * scale).round() / scale)
        }
    }
}

fn too_long() -> ToolFailure {
    ToolFailure::new(format!("a text of more than {TEXT_BYTES_MAX} bytes was about to be made"))
        .permanent()
}

fn concat(values: &[Value]) -> Result<Value, ToolFailure> {
    let mut text = String::new();
    for value in values {
        let part = value.to_text();
        if text.len() + part.len() > TEXT_BYTES_MAX {
            return Err(too_long());
        }
        text += &part;
    }
    Ok(Value::text(text))
}

fn replace(text: &str, from: &str, to: &str) -> Result<Value, ToolFailure> {
    if from.is_empty() {
        return Ok(Value::text(text));
    }
    let matches = text.matches(from).count();
    if text.len() + matches.saturating_mul(to.len()) > TEXT_BYTES_MAX {
        return Err(too_long());
    }
    Ok(Value::text(text.replace(from, to)))
}

/// Returns characters of a text. The first one has the number 1.
fn part(value: &Value, start: i64, length: Option<i64>) -> Value {
    let text = value.to_text();
    let end = length.map_or(i64::MAX, |length| start.saturating_add(length.max(0)));
    let skipped = usize::try_from(start.saturating_sub(1)).unwrap_or_default();
    let taken = usize::try_from(end.saturating_sub(start.max(1))).unwrap_or_default();
    Value::text(text.chars().skip(skipped).take(taken).collect::<String>())
}

fn moment(value: &Value) -> Result<Moment, ToolFailure> {
    Moment::parse(&value.to_text()).ok_or_else(|| {
        ToolFailure::new(format!("`{}` is not a date", shorten(&value.to_text())))
            .suggestion("dates are `YYYY-MM-DD`, optionally with a time: `2026-01-31T09:30:00`")
            .permanent()
    })
}

fn date(value: &Value, part: impl Fn(Date, Moment) -> i64) -> Result<Value, ToolFailure> {
    let moment = moment(value)?;
    Ok(Value::Integer(part(Date::of_days(moment.days), moment)))
}

fn unknown_unit(unit: &str) -> ToolFailure {
    ToolFailure::new(format!("`{}` is not a unit of time", shorten(unit)))
        .suggestion("use 'year', 'quarter', 'month', 'week' or 'day'")
        .permanent()
}

fn date_trunc(unit: &str, value: &Value) -> Result<Value, ToolFailure> {
    let days = moment(value)?.days;
    let date = Date::of_days(days);
    let first = match unit.to_ascii_lowercase().as_str() {
        "year" => Date { month: 1, day: 1, ..date },
        "quarter" => Date { month: (date.month - 1) / 3 * 3 + 1, day: 1, ..date },
        "month" => Date { day: 1, ..date },
        "week" => Date::of_days(days - (days + 3).rem_euclid(7)),
        "day" => date,
        _ => return Err(unknown_unit(unit)),
    };
    Ok(Value::text(first.to_string()))
}

/// Returns the number of boundaries of a unit between two dates.
fn date_diff(unit: &str, from: Moment, to: Moment) -> Result<Value, ToolFailure> {
    let (start, end) = (Date::of_days(from.days), Date::of_days(to.days));
    let months = |date: Date| date.year * 12 + date.month - 1;
    let week = |moment: Moment| (moment.days + 3).div_euclid(7);
    Ok(Value::Integer(match unit.to_ascii_lowercase().as_str() {
        "year" => end.year - start.year,
        "quarter" => months(end).div_euclid(3) - months(start).div_euclid(3),
        "month" => months(end) - months(start),
        "week" => week(to) - week(from),
        "day" => to.days - from.days,
        _ => return Err(unknown_unit(unit)),
    }))
}

/// Returns a part of JSON text by a path such as `$.items[0].name`, `$` and dots being optional.
/// Text that is not JSON, and a path that does not exist, give null.
#[expect(clippy::unnecessary_wraps, reason = "the value of a function")]
fn json_extract(text: &str, path: &str) -> Result<Value, ToolFailure> {
    let Ok(mut json) = serde_json::from_str::<Json>(text) else { return Ok(Value::Null) };
    for step in path.trim_start_matches('$').split(['.', '[']).filter(|step| !step.is_empty()) {
        let step = step.trim_end_matches(']').trim_matches(['"', '\'']);
        let next = match &mut json {
            Json::Object(object) => object.get_mut(step).map(Json::take),
            Json::Array(items) => {
                step.parse().ok().and_then(|index: usize| items.get_mut(index)).map(Json::take)
            }
            _ => None,
        };
        let Some(next) = next else { return Ok(Value::Null) };
        json = next;
    }
    Ok(Value::of_json(json))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, arguments: &[Value], expected: impl Into<Option<&'static str>>) {
        let value = Function::find(name).unwrap().call(arguments).unwrap();
        assert_eq!(
            (!value.is_null()).then(|| value.to_text().to_string()).as_deref(),
            expected.into()
        );
    }

    fn texts<const N: usize>(texts: [&str; N]) -> [Value; N] {
        texts.map(Value::text)
    }

    #[test]
    fn text_functions() {
        check("lower", &texts(["ÄB"]), "äb");
        check("length", &texts(["größe"]), "5");
        check("substr", &[Value::text("größe"), Value::Integer(3), Value::Integer(2)], "öß");
        check("substr", &[Value::text("abc"), Value::Integer(-1), Value::Integer(3)], "a");
        check("substr", &[Value::text("abc"), Value::Integer(2)], "bc");
        check("left", &[Value::text("abc"), Value::Integer(2)], "ab");
        check("right", &[Value::text("abc"), Value::Integer(2)], "bc");
        check("right", &[Value::text("abc"), Value::Integer(i64::MIN)], "");
        check("replace", &texts(["a-b", "-", "+"]), "a+b");
        check("split_part", &[Value::text("a,b"), Value::text(","), Value::Integer(2)], "b");
        check("split_part", &[Value::text("a,b"), Value::text(","), Value::Integer(i64::MIN)], "");
        check("strpos", &texts(["größe", "ß"]), "4");
        check("concat", &[Value::text("a"), Value::Null, Value::Integer(1)], "a1");
        check("upper", &[Value::Null], None);
        let long = Value::text("x".repeat(TEXT_BYTES_MAX));
        assert!(Function::Concat.call(&[long.clone(), Value::text("x")]).is_err());
        assert!(Function::Replace.call(&[long, Value::text("x"), Value::text("yy")]).is_err());
    }

    #[test]
    fn number_functions() {
        check("round", &[Value::Number(2.345), Value::Integer(2)], "2.35");
        check("round", &[Value::Number(2.5)], "3");
        check("round", &[Value::Integer(1_234), Value::Integer(-2)], "1200");
        check("ceil", &[Value::Number(-0.5)], "0");
        check("sqrt", &[Value::Number(-1.0)], None);
        check("abs", &[Value::Integer(i64::MIN)], "9223372036854776000");
        check("greatest", &[Value::Integer(1), Value::Number(2.5), Value::Null], "2.5");
        assert!(Function::Abs.call(&texts(["x"])).is_err());
    }

    #[test]
    fn date_functions() {
        check("year", &texts(["2026-01-31T10:00:00Z"]), "2026");
        check("hour", &texts(["2026-01-31T10:00:00Z"]), "10");
        check("weekday", &texts(["2026-01-04"]), "7");
        check("date_trunc", &texts(["week", "2026-01-04"]), "2025-12-29");
        check("date_trunc", &texts(["quarter", "2026-05-04"]), "2026-04-01");
        check("date_diff", &texts(["day", "2026-02-27", "2026-03-01"]), "2");
        check("date_diff", &texts(["month", "2025-12-31", "2026-01-01"]), "1");
        check("date_add", &[Value::text("2026-12-31"), Value::Integer(1)], "2027-01-01");
        check("date_add", &[Value::text("2026-12-31"), Value::Integer(i64::MAX)], "12921-08-18");
        assert!(Function::Year.call(&texts(["yesterday"])).is_err());
        assert!(Function::DateTrunc.call(&texts(["decade", "2026-01-01"])).is_err());
    }

    #[test]
    fn json_is_taken_apart() {
        let json = Value::text(r#"{"a": {"b": [1, {"c": null}]}, "d": "x"}"#);
        check("json_extract", &[json.clone(), Value::text("$.a.b[0]")], "1");
        check("json_extract", &[json.clone(), Value::text("a")], r#"{"b":[1,{"c":null}]}"#);
        check("json_extract", &[json.clone(), Value::text("$.a.b[1].c")], None);
        check("json_extract", &[json.clone(), Value::text("$.d.e")], None);
        check("json_extract", &[Value::text("no json"), Value::text("$.a")], None);
    }
}
