//! Reading of a server's JSON, field by field.
//!
//! Only requested fields are read, and a field of an unexpected type counts as absent, because
//! servers that claim compatibility differ in everything but the few fields that matter. Other
//! fields are not stored, so memory stays within the size of the JSON, and numbers that do not fit
//! into any type of this crate do no harm.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// Maximum number of members of an object. Those of the three APIs have about twenty.
const MEMBERS_MAX: usize = 1024;
/// Maximum number of elements of a list.
const ELEMENTS_MAX: usize = 16 * 1024;

/// Members of a JSON object.
#[derive(Default)]
pub(super) struct Fields<'j>(HashMap<String, &'j RawValue>);

/// Elements of a JSON list.
struct List<'j>(Vec<&'j RawValue>);

/// A JSON string. A lone surrogate, which remains when a server cuts a character in two, is
/// replaced.
struct Lossy(String);

impl<'j> Fields<'j> {
    /// Parses a JSON object.
    pub(super) fn read(json: &'j str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// Returns the JSON of a field as it was written; `None` for null.
    pub(super) fn raw(&self, key: &str) -> Option<&'j str> {
        self.0.get(key).map(|raw| raw.get()).filter(|raw| *raw != "null")
    }

    /// Returns a string field.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.raw(key).and_then(text)
    }

    /// Returns a string field that is not empty.
    pub(super) fn some_text(&self, key: &str) -> Option<String> {
        self.text(key).filter(|text| !text.is_empty())
    }

    /// Returns a number field as a count.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        let raw = self.raw(key)?;
        // Some servers write `12.0`.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates, and NaN is not JSON"
        )]
        let rounded = || raw.parse::<f64>().ok().map(|number| number as u64);
        raw.parse().ok().or_else(rounded)
    }

    /// Returns an object field.
    pub(super) fn object(&self, key: &str) -> Option<Fields<'j>> {
        self.raw(key).and_then(Fields::read)
    }

    /// Returns the elements of a list field as they were written; `None` if it is not a list.
    pub(super) fn list(&self, key: &str) -> Option<Vec<&'j str>> {
        elements(self.raw(key)?)
    }

    /// Returns the objects in a list field.
    pub(super) fn objects(&self, key: &str) -> impl Iterator<Item = Fields<'j>> + use<'j> {
        self.list(key).unwrap_or_default().into_iter().filter_map(Fields::read)
    }
}

/// Parses a JSON list and returns its elements as they were written.
pub(super) fn elements(json: &str) -> Option<Vec<&str>> {
    let List(elements) = serde_json::from_str(json).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

/// Parses a JSON string.
pub(super) fn text(raw: &str) -> Option<String> {
    serde_json::from_str(raw).ok().map(|Lossy(text)| text)
}

/// Parses any JSON value.
pub(super) fn value(raw: &str) -> Option<Value> {
    serde_json::from_str(raw).ok()
}

impl<'de: 'j, 'j> Deserialize<'de> for Fields<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldMap;
        impl<'de> Visitor<'de> for FieldMap {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = HashMap::new();
                while let Some(key) = members.next_key::<String>()? {
                    if fields.len() >= MEMBERS_MAX {
                        return Err(A::Error::custom("too many members"));
                    }
                    fields.insert(key, members.next_value()?);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldMap)
    }
}

impl<'de: 'j, 'j> Deserialize<'de> for List<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements;
        impl<'de> Visitor<'de> for Elements {
            type Value = List<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<List<'de>, A::Error> {
                let mut list = Vec::new();
                while let Some(element) = elements.next_element()? {
                    if list.len() >= ELEMENTS_MAX {
                        return Err(A::Error::custom("too many elements"));
                    }
                    list.push(element);
                }
                Ok(List(list))
            }
        }
        deserializer.deserialize_seq(Elements)
    }
}

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextField;
        impl Visitor<'_> for TextField {
            type Value = Lossy;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Lossy, E> {
                Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
            }
        }
        // Read as bytes, because serde_json rejects half a character in a string.
        deserializer.deserialize_bytes(TextField)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_another_type_is_absent() {
        let json =
            r#"{"text": 1, "count": "1", "object": [], "list": {}, "null": null, "odd": 1e999}"#;
        let fields = Fields::read(json).unwrap();
        assert_eq!(fields.text("text"), None);
        assert_eq!(fields.count("count"), None);
        assert!(fields.object("object").is_none());
        assert!(fields.list("list").is_none());
        assert_eq!(fields.raw("null"), None);
        assert_eq!(fields.objects("list").count(), 0);
        assert!(Fields::read("[1]").is_none());
        assert!(Fields::read("{\"a\":").is_none());
    }

    #[test]
    fn what_is_there_is_read_as_it_was_written() {
        let json = r#"{"t": "a\ud83d!\u00e9", "n": 12.0, "o": {"big": 12345678901234567890123}, "l": [{"a": 1}, 2]}"#;
        let fields = Fields::read(json).unwrap();
        assert_eq!(fields.text("t").unwrap().replace('\u{fffd}', ""), "a!é");
        assert_eq!(fields.count("n"), Some(12));
        assert_eq!(fields.raw("o"), Some(r#"{"big": 12345678901234567890123}"#));
        assert_eq!(fields.objects("l").count(), 1);
    }

    #[test]
    fn what_has_too_many_parts_is_not_read() {
        let members: Vec<_> = (0..=MEMBERS_MAX).map(|n| format!("\"k{n}\":0")).collect();
        assert!(Fields::read(&format!("{{{}}}", members.join(","))).is_none());
        let elements = format!("{{\"l\":[{}0]}}", "0,".repeat(ELEMENTS_MAX));
        assert!(Fields::read(&elements).unwrap().list("l").is_none());
    }
}
