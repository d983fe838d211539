use super::*;
use crate::Annotations;

fn tool(name: &str, schema: &str) -> Declaration {
    Declaration {
        name: name.to_owned(),
        title: None,
        description: "Looks something up and says what it is.".to_owned(),
        input_schema: schema.to_owned(),
        output_schema: None,
        annotations: Annotations::default(),
        group: None,
    }
}

fn advice(declarations: &[Declaration]) -> Vec<String> {
    let review = review(declarations);
    assert_eq!(review.refusals, []);
    review
        .advice
        .iter()
        .map(|remark| format!("{} {} {}", remark.rule, remark.tool, remark.pointer))
        .collect()
}

#[test]
fn a_good_tool_is_left_alone() {
    let schema = r#"{"type":"object","properties":{"id":{"type":"integer","description":"Which one"}},"required":["id"]}"#;
    assert_eq!(review(&[tool("look_up", schema)]), Review::default());
}

#[test]
fn refusals_are_those_of_a_load_and_more() {
    let bad =
        r#"{"properties":{"a":{"type":"x"},"b":{"default":1,"type":"string"}},"required":["c"]}"#;
    let declarations = [tool("one", bad), tool("two words", "{}"), tool("ONE", "{}")];
    let all = review(&declarations).refusals;
    assert!(all.contains(&super::super::check_declarations(&declarations).unwrap_err()));
    assert_eq!(all.len(), 3, "{all:?}");
    // The types of this schema are wrong, so it says nothing certain about defaults.
    let bad = r#"{"properties":{"a":{"default":2,"type":"string"},"b":{"default":1,"type":"string"}},"required":["c","d"]}"#;
    assert_eq!(review(&[tool("one", bad)]).refusals.len(), 4);
    for text in ["", "[]", "{", "nonsense", r#"{"type":"array"}"#] {
        assert_eq!(review(&[tool("one", text)]).refusals.len(), 1, "{text}");
    }
}

#[test]
fn names_that_clients_write_alike_collide() {
    let found = advice(&[tool("a.b", "{}"), tool("a_b", "{}")]);
    assert_eq!(found, ["name-characters a.b ", "name-collides a_b "]);
    assert_eq!(advice(&[tool(&"x".repeat(40), "{}")]), Vec::<String>::new());
    for chars in [41, 64, 65] {
        assert_eq!(advice(&[tool(&"x".repeat(chars), "{}")]).len(), 1);
    }
}

#[test]
fn parameters_at_every_depth_want_a_description() {
    let schema = r##"{"properties":{
        "a":{"type":"array","description":"x","items":{"type":"object","properties":{"b":{"type":"integer"}}}},
        "properties":{"$ref":"#/$defs/d"}
    },"$defs":{"d":{"type":"object","properties":{"c/d":{"type":"string"}}}}}"##;
    let expected = [
        "parameter-description-missing t /$defs/d/properties/c~1d",
        "parameter-name t /$defs/d/properties/c~1d",
        "parameter-description-missing t /properties/a/items/properties/b",
    ];
    assert_eq!(advice(&[tool("t", schema)]), expected);
}

#[test]
fn what_looks_like_a_parameter_in_a_value_is_none() {
    let schema = r#"{"properties":{"p":{"type":"object","description":"x","properties":{},"default":{"properties":{"q":{}}}}}}"#;
    let review = review(&[tool("t", &schema.replace(r#","default":{"properties":{"q":{}}}"#, ""))]);
    assert_eq!(review.advice, []);
    let in_enum = r#"{"properties":{"p":{"description":"x","enum":[{"properties":{"q":{}}}]}}}"#;
    let rules: Vec<_> =
        super::review(&[tool("t", in_enum)]).advice.iter().map(|remark| remark.rule).collect();
    assert_eq!(rules, ["not-strict", "not-strict"]);
}

#[test]
fn many_tools_and_odd_results_are_spoken_about() {
    let many: Vec<_> = (0..41).map(|n| tool(&format!("t{n:02}x"), "{}")).collect();
    assert_eq!(advice(&many), ["tools-many  "]);
    let mut list = tool("list", "{}");
    list.output_schema = Some(r#"{"type":"array"}"#.to_owned());
    assert_eq!(advice(&[list]), ["output-not-object list "]);
}

#[test]
fn strings_that_hold_json_should_be_objects() {
    let found = |name: &str, property: &str| {
        let schema = format!(r#"{{"properties":{{"{name}":{property}}}}}"#);
        advice(&[tool("t", &schema)]).iter().any(|rule| rule.starts_with("parameter-json-string"))
    };
    let string = |text: &str| format!(r#"{{"type":"string","description":"{text}"}}"#);
    for (name, text) in [
        ("filter_json", "The filter."),
        ("json", "The input."),
        ("filter", "A JSON object with the fields to match."),
        ("filter", "The filter, serialized JSON."),
        ("filter", "JSON-encoded list of ids."),
        ("filter", "Conditions as JSON."),
        ("filter", "A stringified array."),
    ] {
        assert!(found(name, &string(text)), "{name}: {text}");
    }
    assert!(found("filter", r#"{"type":["string","null"],"description":"A JSON object."}"#));
    for (name, text) in [
        ("file", "Path of a JSON file."),
        ("pointer", "A JSON pointer, such as /a/0."),
        ("query", "What to look for in the documents."),
        ("format", "json or text"),
        ("expression", "A JSONata expression."),
    ] {
        assert!(!found(name, &string(text)), "{name}: {text}");
    }
    assert!(!found("filter", r#"{"type":"object","description":"A JSON object."}"#));
    assert!(!found("json", r#"{"enum":["a"],"type":"string","description":"A JSON object."}"#));
}
