//! Shortens a JSON value so that it stays JSON, and states what is missing.

use serde_json::{Map, Value};

use crate::output::parse_json;
use crate::{DecodeOptions, ToolDefinition};

/// Minimum bytes that an item keeps. A list or an object with more items than room for that loses
/// its last items.
const ITEM_BYTES_MIN: usize = 64;
/// Bytes that a mark for missing parts takes at most.
const MARK_BYTES: usize = 48;
/// Name of the member that states how many members of an object are missing.
const MISSING: &str = "…";

/// Returns the value within `budget` bytes of JSON, or `None` if it has no more. The largest parts
/// are shortened first: strings lose their ends, lists and objects their last items. A mark in
/// their place counts what is missing.
#[must_use]
pub fn shortened(value: &Value, budget: usize) -> Option<Value> {
    (size(value) > budget).then(|| cut(value, budget))
}

/// Returns the bytes of a value as compact JSON.
#[must_use]
pub fn size(value: &impl serde::Serialize) -> usize {
    let mut count = ByteCounter(0);
    // Writing to a counter does not fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

/// Returns the arguments of a call as a user reads them who decides about it: as the tool receives
/// them, declared ones first, each part within `bytes_max` bytes of JSON. The largest values are
/// shortened, so that none hides another. Arguments that cannot be decoded are shown as they were
/// written.
#[must_use]
pub fn shown_arguments(tool: &ToolDefinition, arguments: &[u8], bytes_max: usize) -> String {
    let options = DecodeOptions::default();
    let decoded = match tool.input.decode(tool.name.as_str(), Some(arguments), &options) {
        Ok(decoded) => decoded.into_map(),
        Err(_) => match parse_json(&String::from_utf8_lossy(arguments)) {
            Ok(Value::Object(written)) => written,
            _ => Map::from_iter([("?".to_owned(), String::from_utf8_lossy(arguments).into())]),
        },
    };
    let declared = tool.input.published().get("properties").and_then(Value::as_object);
    let is_declared = |name: &String| declared.is_some_and(|declared| declared.contains_key(name));
    let (known, others): (Map<_, _>, Map<_, _>) =
        decoded.into_iter().partition(|(name, _)| is_declared(name));
    let shown = |part: Map<String, Value>| {
        let part = Value::Object(part);
        shortened(&part, bytes_max).unwrap_or(part)
    };
    match (known.is_empty(), others.is_empty()) {
        (_, true) => shown(known).to_string(),
        (true, false) => shown(others).to_string(),
        (false, false) => format!("{} and, not declared, {}", shown(known), shown(others)),
    }
}

struct ByteCounter(usize);

impl std::io::Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn cut(value: &Value, budget: usize) -> Value {
    match value {
        Value::String(text) => Value::String(cut_text(text, budget)),
        Value::Array(items) => {
            let parts: Vec<_> =
                items.iter().map(|item| ShortenedPart { own: 1, size: size(item) }).collect();
            let shares = Shares::new(&parts, budget.saturating_sub(2));
            let kept = items.iter().zip(&parts).take(shares.count);
            let mut kept: Vec<_> = kept.map(|(item, part)| shares.cut(item, part)).collect();
            if let Some(missing) = shares.missing(items.len()) {
                kept.push(Value::String(format!("… {missing} more items")));
            }
            Value::Array(kept)
        }
        Value::Object(members) => {
            let part = |(name, member): (&String, &Value)| ShortenedPart {
                own: size(&Value::from(name.as_str())) + 2,
                size: size(member),
            };
            let parts: Vec<_> = members.iter().map(part).collect();
            let shares = Shares::new(&parts, budget.saturating_sub(2));
            let kept = members.iter().zip(&parts).take(shares.count);
            let mut kept: Map<_, _> = kept
                .map(|((name, member), part)| (name.clone(), shares.cut(member, part)))
                .collect();
            if let Some(missing) = shares.missing(members.len()) {
                kept.insert(MISSING.to_owned(), format!("{missing} more members").into());
            }
            Value::Object(kept)
        }
        other => other.clone(),
    }
}

/// Returns the start of a text, and the number of characters that are missing.
fn cut_text(text: &str, budget: usize) -> String {
    let room = budget.saturating_sub(MARK_BYTES);
    let mut used = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        // Escapes count as they are written.
        used += match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            c => c.len_utf8(),
        };
        if used > room {
            break;
        }
        end = at + c.len_utf8();
    }
    let (shown, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    match rest.chars().count() {
        0 => shown.to_owned(),
        missing => format!("{shown}… ({missing} more characters)"),
    }
}

/// Bytes of an item of a list or an object.
struct ShortenedPart {
    /// Bytes that are not the value's and stay: the name of a member and the separators.
    own: usize,
    /// Bytes of the value.
    size: usize,
}

/// Distribution of a budget to the items of a list or an object.
struct Shares {
    /// Number of items that stay.
    count: usize,
    /// Maximum bytes of a value.
    each: usize,
}

impl Shares {
    /// Distributes `budget` so that small items stay whole, and large ones get the same share.
    fn new(parts: &[ShortenedPart], budget: usize) -> Self {
        if parts.iter().map(|part| part.own + part.size).sum::<usize>() <= budget {
            return Self { count: parts.len(), each: usize::MAX };
        }
        let room = budget.saturating_sub(MARK_BYTES);
        // Drops items from the end until the others have room for the minimum.
        let mut count = 0;
        let mut least = 0;
        for part in parts {
            least += part.own + part.size.min(ITEM_BYTES_MIN);
            if least > room {
                break;
            }
            count += 1;
        }
        let mut kept: Vec<_> = parts.iter().take(count).map(|part| part.size).collect();
        kept.sort_unstable();
        let names: usize = parts.iter().take(count).map(|part| part.own).sum();
        let mut left = room.saturating_sub(names);
        let mut each = usize::MAX;
        for (index, size) in kept.iter().enumerate() {
            let share = left / (kept.len() - index);
            if *size > share {
                each = share;
                break;
            }
            left -= size;
        }
        Self { count, each }
    }

    /// Returns a value within its share.
    fn cut(&self, item: &Value, part: &ShortenedPart) -> Value {
        if part.size <= self.each { item.clone() } else { cut(item, self.each) }
    }

    fn missing(&self, count: usize) -> Option<usize> {
        count.checked_sub(self.count).filter(|missing| *missing > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_largest_parts_are_shortened_first() {
        let value = json!({"name": "report", "rows": vec!["x".repeat(100); 50], "total": 50});
        let cut = shortened(&value, 1000).unwrap();
        assert_eq!((&cut["name"], &cut["total"]), (&json!("report"), &json!(50)));
        let rows = cut["rows"].as_array().unwrap();
        assert!(rows.len() > 5, "{cut}");
        let last = rows.last().unwrap().as_str().unwrap();
        let missing = 50 - (rows.len() - 1);
        assert_eq!(last, format!("… {missing} more items"));
        assert_eq!(shortened(&value, 10_000), None);
    }

    #[test]
    fn text_states_the_number_of_missing_characters() {
        let cut = shortened(&json!("ä".repeat(1000)), 248).unwrap();
        let text = cut.as_str().unwrap();
        assert_eq!(text, format!("{}… (900 more characters)", "ä".repeat(100)));
    }

    #[test]
    fn long_names_do_not_exceed_the_budget() {
        let name = |c: char| String::from(c).repeat(40);
        let value = json!({
            name('\u{1}'): "x".repeat(300), name('b'): "y".repeat(300), name('c'): 1, name('d'): 2,
        });
        for budget in 200..900 {
            assert!(size(&shortened(&value, budget).unwrap_or_default()) <= budget, "{budget}");
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            ".{0,300}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 10, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..10).prop_map(Value::from),
                prop::collection::btree_map(".{0,20}", inner, 0..10)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_shortened_value_has_room_in_its_budget(value in values(), budget in 200usize..4000) {
            match shortened(&value, budget) {
                None => prop_assert!(size(&value) <= budget),
                Some(cut) => prop_assert!(size(&cut) <= budget, "{} > {budget}", size(&cut)),
            }
        }
    }
    #[test]
    fn no_argument_hides_another_from_the_user_who_decides() {
        let schema = r#"{"type":"object","properties":{"to":{"type":"string"},"amount":{"type":"integer"}}}"#;
        let tool = |schema| ToolDefinition {
            name: "pay".parse().unwrap(),
            title: None,
            description: String::new(),
            input: std::sync::Arc::new(crate::InputSchema::compile("pay", schema).unwrap()),
            output: None,
            annotations: crate::Annotations::default(),
            group: None,
        };
        let padding = " ".repeat(5000);
        let arguments = json!({
            "aa": format!("{{\"to\":\"a friend\"}}{padding}"), "to": format!("{padding}x"), "amount": "9999",
        });
        let shown = shown_arguments(&tool(schema), arguments.to_string().as_bytes(), 500);
        assert!(shown.contains("\"amount\":9999") && !shown.contains("friend"), "{shown}");
        assert!(shown.len() < 600, "{shown}");
        let open = schema
            .replace("\"type\":\"object\",", "\"type\":\"object\",\"additionalProperties\":true,");
        let shown = shown_arguments(&tool(&open), arguments.to_string().as_bytes(), 500);
        let expected = r#""amount":9999} and, not declared, {"aa""#;
        assert!(shown.contains(expected), "{shown}");
        assert_eq!(shown_arguments(&tool(schema), b"nonsense", 500), r#"{"?":"nonsense"}"#);
    }
}
