//! Conditions on strings.

use regex::RegexBuilder;
use serde_json::Value;

use super::TextCondition;
use crate::Condition;

/// Maximum bytes of a compiled pattern and maximum depth of a condition. They bound the memory that
/// a workflow file can use.
const PATTERN_BYTES_MAX: usize = 1 << 20;
const DEPTH_MAX: usize = 16;

type Test = Box<dyn Fn(&str) -> bool + Send + Sync>;

impl TextCondition {
    /// Compiles the condition. Its name is its definition.
    ///
    /// # Errors
    /// A description of the mistake, for the author of the workflow.
    pub fn condition(&self) -> Result<Condition, String> {
        let (name, test) = compiled(self, DEPTH_MAX)?;
        Ok(Condition::new(name, move |value| match value {
            Value::String(text) => test(text),
            other => test(&other.to_string()),
        }))
    }
}

fn compiled(when: &TextCondition, depth: usize) -> Result<(String, Test), String> {
    let TextCondition { contains, equals, matches, not, ignore_case } = when;
    let is_folded = *ignore_case;
    let said = if is_folded { ", whatever the case" } else { "" };
    let folded = move |text: &str| if is_folded { text.to_lowercase() } else { text.to_owned() };
    match (contains, equals, matches, not) {
        (Some(part), None, None, None) => {
            let wanted = folded(part);
            Ok((
                format!("contains {part:?}{said}"),
                Box::new(move |text| folded(text).contains(&wanted)),
            ))
        }
        // Models often end their answers with a line feed.
        (None, Some(whole), None, None) => {
            let wanted = folded(whole.trim());
            Ok((
                format!("equals {whole:?}{said}"),
                Box::new(move |text| folded(text.trim()) == wanted),
            ))
        }
        (None, None, Some(pattern), None) => {
            let mut builder = RegexBuilder::new(pattern);
            let built = builder.case_insensitive(is_folded).size_limit(PATTERN_BYTES_MAX).build();
            let regex = built.map_err(|error| format!("invalid regex in `matches`: {error}"))?;
            Ok((format!("matches {pattern:?}{said}"), Box::new(move |text| regex.is_match(text))))
        }
        (None, None, None, Some(inner)) => {
            let depth = depth.checked_sub(1).ok_or("a condition is nested too deeply")?;
            let (name, test) = compiled(inner, depth)?;
            Ok((format!("not {name}"), Box::new(move |text| !test(text))))
        }
        _ => Err("`when` needs exactly one of contains, equals, matches and not".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(yaml: &str) -> Result<Condition, String> {
        serde_saphyr::from_str::<TextCondition>(yaml).unwrap().condition()
    }

    fn holds(yaml: &str, text: &str) -> bool {
        // Calls the compiled test directly, because `Condition` needs a workflow to run.
        compiled(&serde_saphyr::from_str(yaml).unwrap(), DEPTH_MAX).unwrap().1(text)
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
    fn what_is_no_condition_is_refused() {
        assert!(when("{}").is_err() && when("{contains: a, equals: b}").is_err());
        assert!(when("{matches: '('}").unwrap_err().starts_with("invalid regex in `matches`"));
        assert!(when("{matches: '(a{1000}){1000}'}").is_err());
        let deep = format!("{}{{contains: a}}{}", "{not: ".repeat(20), "}".repeat(20));
        assert!(when(&deep).unwrap_err().contains("too deeply"));
    }
}
