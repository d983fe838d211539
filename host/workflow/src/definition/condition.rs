//! Conditions on strings and on fields of structured answers.

use std::borrow::Cow;

use regex::RegexBuilder;
use serde_json::Value;

use super::TextCondition;
use crate::Condition;

/// Maximum bytes of a compiled pattern and maximum depth of a condition. They bound the memory that
/// a workflow file can use.
const PATTERN_BYTES_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 16;

type Test = Box<dyn Fn(&Value) -> bool + Send + Sync>;

impl TextCondition {
    /// Compiles the condition. Its name is its definition.
    ///
    /// # Errors
    /// A description of the mistake, for the author of the workflow.
    pub fn condition(&self) -> Result<Condition, String> {
        let (name, test) = compiled(self, DEPTH_MAX)?;
        Ok(Condition::new(name, test))
    }

    /// Returns the field that the condition tests, if no answer with this JSON Schema has it.
    /// Undeclared fields are possible only if the schema says so.
    #[must_use]
    pub fn impossible_field(&self, schema: &Value) -> Option<&str> {
        let Some(field) = &self.field else {
            return self.not.as_ref().and_then(|inner| inner.impossible_field(schema));
        };
        let mut schema = schema;
        for name in field.split('.') {
            match declared(schema, name.trim()) {
                DeclaredField::Schema(member) => schema = member,
                DeclaredField::Unknown => return None,
                DeclaredField::Impossible => return Some(field),
            }
        }
        None
    }
}

/// Declaration of a field in a JSON Schema.
enum DeclaredField<'s> {
    Schema(&'s Value),
    /// The field may exist.
    Unknown,
    Impossible,
}

/// Keywords with which a schema allows fields that it does not declare itself.
const COMBINING: [&str; 9] = [
    "$ref",
    "$dynamicRef",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "dependentSchemas",
    "patternProperties",
    "unevaluatedProperties",
];

/// Finds the declaration of a field in the schema of the value that contains it.
fn declared<'s>(schema: &'s Value, name: &str) -> DeclaredField<'s> {
    let Value::Object(keywords) = schema else { return DeclaredField::Unknown };
    if COMBINING.iter().any(|keyword| keywords.contains_key(*keyword)) {
        return DeclaredField::Unknown;
    }
    let properties = keywords.get("properties");
    if let Some(member) = properties.and_then(|properties| properties.get(name)) {
        return DeclaredField::Schema(member);
    }
    let is_object = match keywords.get("type") {
        Some(Value::Array(types)) => types.iter().any(|one| one == "object"),
        Some(one) => one == "object",
        None => true,
    };
    let is_closed = match keywords.get("additionalProperties") {
        Some(others) => *others == Value::Bool(false),
        None => properties.is_some(),
    };
    if is_closed || !is_object { DeclaredField::Impossible } else { DeclaredField::Unknown }
}

fn compiled(when: &TextCondition, depth: usize) -> Result<(String, Test), String> {
    let Some(field) = &when.field else { return compiled_test(when, depth) };
    if field.split('.').any(|name| name.trim().is_empty()) {
        return Err(format!("`field` needs names separated by dots, not `{field}`"));
    }
    let (name, test) = compiled_test(when, depth)?;
    let path = field.clone();
    let test: Test = Box::new(move |value| match value {
        // Structured answers travel as JSON in a string.
        Value::String(text) => serde_json::from_str(text)
            .is_ok_and(|parsed: Value| member(&parsed, &path).is_some_and(&test)),
        other => member(other, &path).is_some_and(&test),
    });
    Ok((format!("{field} {name}"), test))
}

/// Compiles the condition without its field.
fn compiled_test(when: &TextCondition, depth: usize) -> Result<(String, Test), String> {
    let TextCondition { field: _, contains, equals, matches, not, ignore_case } = when;
    let is_folded = *ignore_case;
    let said = if is_folded { ", whatever the case" } else { "" };
    let folded = move |text: &str| if is_folded { text.to_lowercase() } else { text.to_owned() };
    match (contains, equals, matches, not) {
        (Some(part), None, None, None) => {
            let wanted = folded(part);
            Ok((
                format!("contains {part:?}{said}"),
                Box::new(move |value| folded(&text_of(value)).contains(&wanted)),
            ))
        }
        // Models often end their answers with a line feed.
        (None, Some(whole), None, None) => {
            let wanted = folded(whole.trim());
            let number = whole.trim().parse::<f64>().ok();
            Ok((
                format!("equals {whole:?}{said}"),
                Box::new(move |value| {
                    let is_same_number = value.is_number() && value.as_f64() == number;
                    is_same_number || folded(text_of(value).trim()) == wanted
                }),
            ))
        }
        (None, None, Some(pattern), None) => {
            let mut builder = RegexBuilder::new(pattern);
            let built = builder.case_insensitive(is_folded).size_limit(PATTERN_BYTES_MAX).build();
            let regex = built.map_err(|error| format!("invalid regex in `matches`: {error}"))?;
            Ok((
                format!("matches {pattern:?}{said}"),
                Box::new(move |value| regex.is_match(&text_of(value))),
            ))
        }
        (None, None, None, Some(inner)) => {
            let depth = depth.checked_sub(1).ok_or("a condition is nested too deeply")?;
            let (name, test) = compiled(inner, depth)?;
            Ok((format!("not {name}"), Box::new(move |value| !test(value))))
        }
        _ => Err("`when` needs exactly one of contains, equals, matches and not".to_owned()),
    }
}

/// Returns the string that a condition tests: a string itself, or the JSON of another value.
fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

/// Returns the value at a path of names that are separated by dots.
fn member<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| value.get(name.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(yaml: &str) -> Result<Condition, String> {
        serde_saphyr::from_str::<TextCondition>(yaml).unwrap().condition()
    }

    fn holds(yaml: &str, text: &str) -> bool {
        // Calls the compiled test directly, because `Condition` needs a workflow to run.
        compiled(&serde_saphyr::from_str(yaml).unwrap(), DEPTH_MAX).unwrap().1(&text.into())
    }

    #[test]
    fn texts_are_compared_as_the_condition_says() {
        assert!(holds("{contains: bc}", "abcd") && !holds("{contains: BC}", "abcd"));
        assert!(holds("{contains: BC, ignore-case: true}", "abcd"));
        assert!(holds("{equals: 'yes'}", "yes\n") && !holds("{equals: 'yes'}", "yes, but"));
        assert!(holds("{matches: '^a+$'}", "aaa") && !holds("{matches: '^a+$'}", "ab"));
        assert!(holds("{not: {contains: x}}", "abc"));
        assert_eq!(
            when("{not: {equals: no, ignore-case: true}}").unwrap().name(),
            r#"not equals "no", whatever the case"#
        );
    }

    #[test]
    fn a_field_is_tested_instead_of_the_whole_message() {
        let answer = r#"{"kind":"Bug","urgent":true,"score":2.0,"at":{"city":"Cork"},"n":null}"#;
        for (yaml, expected) in [
            ("{field: kind, equals: Bug}", true),
            ("{field: kind, equals: bug}", false),
            ("{field: kind, equals: bug, ignore-case: true}", true),
            ("{field: urgent, equals: true}", true),
            ("{field: urgent, equals: false}", false),
            ("{field: score, equals: 2}", true),
            ("{field: score, equals: 3}", false),
            ("{field: n, equals: 'null'}", true),
            ("{field: at.city, contains: or}", true),
            ("{field: at, contains: Cork}", true),
            ("{field: at.city, not: {equals: Cork}}", false),
            ("{not: {field: kind, equals: Idea}}", true),
            ("{field: missing, equals: a}", false),
            ("{field: missing, not: {equals: a}}", false),
            ("{field: kind.more, contains: ''}", false),
        ] {
            assert_eq!(holds(yaml, answer), expected, "{yaml}");
            let parsed: Value = serde_json::from_str(answer).unwrap();
            assert_eq!(when(yaml).unwrap().holds(&parsed), expected, "{yaml}");
            assert_eq!(when(yaml).unwrap().holds(&"no JSON".into()), yaml.starts_with("{not"));
        }
        assert_eq!(when("{field: at.city, equals: a}").unwrap().name(), r#"at.city equals "a""#);
        assert!(when("{field: a..b, equals: a}").unwrap_err().contains("`a..b`"));
        assert!(when("{field: a}").unwrap_err().contains("exactly one of"));
    }

    #[test]
    fn a_field_that_no_answer_has_is_found() {
        let schema = serde_json::json!({
            "type": "object",
            "properties": {
                "kind": {"type": "string"},
                "at": {"type": ["object", "null"], "properties": {"city": {}}},
                "open": {"type": "object", "properties": {"a": {}}, "additionalProperties": true},
                "map": {"type": "object"},
                "either": {"anyOf": [{"type": "object"}, {"type": "null"}]},
            },
        });
        for (yaml, expected) in [
            ("{field: kind, equals: a}", None),
            ("{field: kynd, equals: a}", Some("kynd")),
            ("{field: kind.more, equals: a}", Some("kind.more")),
            ("{field: at.city, equals: a}", None),
            ("{field: at.city.name, equals: a}", None),
            ("{field: at.country, equals: a}", Some("at.country")),
            ("{not: {not: {field: kynd, equals: a}}}", Some("kynd")),
            ("{field: open.b, equals: a}", None),
            ("{field: map.b, equals: a}", None),
            ("{field: either.b, equals: a}", None),
            ("{contains: kynd}", None),
        ] {
            let condition: TextCondition = serde_saphyr::from_str(yaml).unwrap();
            assert_eq!(condition.impossible_field(&schema), expected, "{yaml}");
        }
        let condition: TextCondition = serde_saphyr::from_str("{field: a, equals: b}").unwrap();
        for open in [serde_json::json!({"type": "object"}), true.into()] {
            assert_eq!(condition.impossible_field(&open), None, "{open}");
        }
        let closed = serde_json::json!({"type": "object", "additionalProperties": false});
        assert_eq!(condition.impossible_field(&closed), Some("a"));
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        assert!(when("{}").is_err() && when("{contains: a, equals: b}").is_err());
        assert!(when("{matches: '('}").unwrap_err().starts_with("invalid regex in `matches`"));
        assert!(when("{matches: '(a{1000}){1000}'}").is_err());
        let deep = format!("{}{{contains: a}}{}", "{not: ".repeat(20), "}".repeat(20));
        assert!(when(&deep).unwrap_err().contains("too deeply"));
    }
}
