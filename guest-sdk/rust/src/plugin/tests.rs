use serde_json::json;

use super::{Entry, call};
use crate::{Arguments, Content, Definition, Tool, ToolFailure};

enum Echo {}

impl Tool for Echo {
    const NAME: &'static str = "echo";

    fn definition() -> Definition {
        Definition::new(Self::NAME, "Gives back what it gets.", json!({"type": "object"}))
    }

    fn call(mut arguments: Arguments) -> Result<Vec<Content>, ToolFailure> {
        Ok(vec![Content::Text(arguments.take("text")?)])
    }
}

fn check(name: &str, arguments: &str, expected: &str) {
    let found = match call(&[Entry::of::<Echo>()], name, arguments) {
        Ok(contents) => format!("{contents:?}"),
        Err(failure) => failure.to_string(),
    };
    assert_eq!(found, expected, "{name}({arguments})");
}

#[test]
fn calls_the_tool_of_that_name() {
    check("echo", r#"{"text": "a"}"#, r#"[Text("a")]"#);
    check("Echo", r#"{"text": "a"}"#, "this plugin has no tool `Echo`");
    check("", "", "this plugin has no tool ``");
}

#[test]
fn survives_a_host_that_breaks_its_word() {
    let malformed = "Arguments for 'echo' are not a JSON object.";
    for text in ["", "null", "[]", "{", "{} {}", "\"text\"", "{\"text\":\"\\ud800\"}"] {
        check("echo", text, malformed);
    }
    check("echo", "{}", "Required argument 'text' was not supplied to 'echo'.");
    check("echo", r#"{"text": null}"#, "Required argument 'text' was not supplied to 'echo'.");
    check(
        "echo",
        r#"{"text": 1}"#,
        "Argument 'text' of 'echo' cannot be used: invalid type: integer `1`, expected a string.",
    );
}

#[test]
fn reads_128_levels() {
    let nested = format!(r#"{{"text": "a", "deep": {}{}}}"#, "[".repeat(127), "]".repeat(127));
    check("echo", &nested, r#"[Text("a")]"#);
}
