use cofferdam_tool::{ErrorType, Outcome, Output};
use serde_json::{Value, json};

use super::{CommandEnd, CommandTool, StandardInput, tools};
use crate::manifest::{Manifest, OutputFormat};

/// Returns the tool `t` of a manifest whose table continues with `keys`.
fn tool(keys: &str) -> Result<CommandTool, String> {
    let text = format!("[tools.t]\ndescription = \"A tool.\"\n{keys}");
    let manifest = Manifest::parse(Some(&text), None).map_err(|error| error.to_string())?;
    let mut tools = tools(&manifest).map_err(|error| error.to_string())?;
    Ok(tools.remove("t").expect("the tool has a schema"))
}

fn schema(names: &[&str]) -> String {
    let names: Vec<_> = names.iter().map(|name| format!("{name} = {{}}")).collect();
    format!("schema = {{ type = \"object\", properties = {{ {} }} }}\n", names.join(", "))
}

/// Returns the command line after the program, and standard input.
fn run(keys: &str, values: Value) -> (Vec<String>, String) {
    let names: Vec<_> = values.as_object().unwrap().keys().map(String::as_str).collect();
    let tool = tool(&format!("{}{keys}", schema(&names))).unwrap();
    let streams = tool.streams("t", values.as_object().unwrap(), 1000).unwrap();
    (streams.arguments[1..].to_vec(), String::from_utf8(streams.stdin.to_vec()).unwrap())
}

#[test]
fn arguments_reach_the_command_line_as_the_templates_say() {
    let words = |keys: &str, values: Value| run(keys, values).0;
    assert_eq!(words("arguments = [\"-x\", \"{a}\"]", json!({"a": "b c"})), ["-x", "b c"]);
    assert_eq!(words("arguments = [\"--n={a}\"]", json!({"a": 3})), ["--n=3"]);
    assert_eq!(words("arguments = [\"{{{a}}}\"]", json!({"a": true})), ["{true}"]);
    assert_eq!(words("arguments = [\"{a}\"]", json!({"a": ["x", 1]})), ["x", "1"]);
    assert_eq!(words("arguments = [\"a={a}\"]", json!({"a": ["x", 1]})), ["a=[\"x\",1]"]);
    let group = "arguments = [[\"--a\", \"{a}\"], [\"-v\", \"{b?}\"], \"end\"]";
    assert_eq!(words(group, json!({"a": null, "b": false})), ["end"]);
    assert_eq!(words(group, json!({"a": "x", "b": true})), ["--a", "x", "-v", "end"]);
}

#[test]
fn standard_input_is_all_arguments_or_a_template() {
    assert_eq!(run("", json!({"a": 1})), (vec![], r#"{"a":1}"#.to_owned()));
    assert_eq!(run("arguments = [\"{a}\"]", json!({"a": 1})).1, "");
    assert_eq!(run("stdin = \"{a}\\n\"", json!({"a": "x"})).1, "x\n");
}

#[test]
fn mistakes_of_a_manifest_are_found() {
    for (keys, expected) in [
        (
            format!("{}arguments = [\"{{b}}\"]", schema(&["a"])),
            "`{b}` is not a parameter of the schema",
        ),
        (format!("{}arguments = [\"{{\"]", schema(&[])), "a brace has no partner"),
        (format!("{}stdin = \"}}\"", schema(&[])), "a brace has no partner"),
        (format!("{}arguments = []", schema(&["a"])), "`a` does not reach the command"),
        ("schema = \"{\"\n".to_owned(), "the schema is not JSON"),
        (format!("{}arguments = [3]", schema(&[])), "expected a string, or a list of strings"),
        (format!("{}output = \"xml\"", schema(&[])), "unknown variant `xml`"),
        (
            format!("{}output-schema = {{ type = \"object\" }}", schema(&[])),
            "4:17: `output-schema` needs `output = \"json\"`: the result is text",
        ),
        (
            format!("{}[tools.t.parameters.b]", schema(&[])),
            "4:21: the tool `t` is of a command: describe the parameter `b` in its `schema`",
        ),
    ] {
        let error = tool(&keys).unwrap_err();
        assert!(error.contains(expected), "{keys}: {error}");
    }
}

#[test]
fn a_command_line_has_limits() {
    let tool = tool(&format!("{}arguments = [\"{{a}}\"]", schema(&["a"]))).unwrap();
    let message = |value: Value| {
        let arguments = json!({ "a": value });
        tool.streams("t", arguments.as_object().unwrap(), 10).err().expect("a failure")
    };
    assert!(message(json!("a\0b")).contains("NUL"));
    assert!(message(json!("x".repeat(2 << 20))).contains("command line of 2 words"));
    assert!(message(json!(vec!["x"; 5000])).contains("command line of 5001 words"));
}

fn ended(output: OutputFormat, exit_code: i32, printed: &[u8], errors: &str) -> Outcome {
    let tool = CommandTool { arguments: Vec::new(), input: StandardInput::Empty, output };
    tool.outcome(CommandEnd { exit_code, output: printed.to_vec() }, errors)
}

#[test]
fn the_result_is_what_the_command_printed() {
    let value = |output, printed: &[u8]| match ended(output, 0, printed, "noise") {
        Outcome::Ok(Output::Value(value)) => value,
        other => panic!("{other:?}"),
    };
    assert_eq!(value(OutputFormat::Text, b"a\nb\n"), json!("a\nb"));
    assert_eq!(value(OutputFormat::Text, b""), json!(""));
    assert_eq!(value(OutputFormat::Json, b"{\"a\": 1}\n"), json!({"a": 1}));
    for (output, printed) in [
        (OutputFormat::Json, &b"garbage"[..]),
        (OutputFormat::Json, b""),
        (OutputFormat::Text, b"\xff"),
    ] {
        let Outcome::Error(error) = ended(output, 0, printed, "") else { panic!("{printed:?}") };
        assert_eq!(error.error_type(), Some(ErrorType::InvalidResult));
    }
}

#[test]
fn a_failure_has_the_end_of_standard_error() {
    let message = |exit_code, printed: &[u8], errors: &str| match ended(
        OutputFormat::Json,
        exit_code,
        printed,
        errors,
    ) {
        Outcome::Failure(failure) => failure.message,
        other => panic!("{other:?}"),
    };
    assert_eq!(message(2, b"out", "bad input\n"), "the command ended with exit code 2: bad input");
    assert_eq!(message(1, b"out", " \n"), "the command ended with exit code 1: out");
    assert_eq!(message(255, b"", ""), "the command ended with exit code 255");
    let long = message(1, b"", &format!("start{}", "ä".repeat(5000)));
    assert!(long.contains(": … ä") && !long.contains("start"));
    assert!(long.chars().count() < 2100);
}
