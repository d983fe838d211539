use super::*;

fn tool(name: &str) -> Declaration {
    Declaration {
        name: name.to_owned(),
        title: None,
        description: String::new(),
        input_schema: "{}".to_owned(),
        output_schema: None,
        annotations: Annotations::default(),
        group: None,
    }
}

fn refusal(names: &[&str]) -> Option<String> {
    let declarations: Vec<_> = names.iter().copied().map(tool).collect();
    check_declarations(&declarations).err().map(|error| error.to_string())
}

#[test]
fn names_that_can_be_mistaken_for_each_other_are_refused() {
    let taken = |name: &str, other: &str| {
        Some(format!(
            "Tool '{name}': invalid declaration at '': the tool cannot be told from '{other}'."
        ))
    };
    assert_eq!(refusal(&["a", "b", "a"]), taken("a", "a"));
    assert_eq!(refusal(&["read", "Read"]), taken("Read", "read"));
    assert_eq!(refusal(&["page_O", "page_0"]), taken("page_0", "page_O"));
    assert_eq!(refusal(&["too1", "tooI"]), taken("tooI", "too1"));
    assert_eq!(refusal(&["sum", "surn"]), taken("surn", "sum"));
    assert_eq!(refusal(&["mail", "mall", "main", "maim_"]), None);
}

#[test]
fn a_plugin_has_limits() {
    let named: Vec<String> = (0..129).map(|n| format!("t{n:03}x")).collect();
    let many: Vec<_> = named.iter().map(|name| tool(name)).collect();
    assert_eq!(
        check_declarations(&many).unwrap_err().to_string(),
        "the plugin declares 129 tools, at most 128 are allowed"
    );
    assert!(check_declarations(&many[..128]).is_ok());
}

#[test]
fn descriptions_and_definitions_have_lengths() {
    let long = |bytes| Declaration { description: "x".repeat(bytes), ..tool("t") };
    assert!(check_declarations(&[long(4096)]).is_ok());
    assert_eq!(
        check_declarations(&[long(4097)]).unwrap_err().to_string(),
        "Tool 't': invalid declaration at '': the description is longer than 4096 bytes."
    );
    let large = |name: &str| Declaration {
        input_schema: format!("{{}}{}", " ".repeat(60_000)),
        ..tool(name)
    };
    let all: Vec<_> = ["a", "b", "c", "d", "e"].into_iter().map(large).collect();
    assert!(check_declarations(&all[..4]).is_ok());
    assert!(matches!(check_declarations(&all), Err(DeclarationError::TooLarge { bytes: 300_015 })));
}

#[test]
fn names_are_checked_before_anything_else() {
    assert_eq!(
        refusal(&[""]).as_deref(),
        Some("Tool '': invalid declaration at '': a name must not be empty.")
    );
    let spaced =
        "Tool 'a b': invalid declaration at '': a name is made of A-Z a-z 0-9 _ . -, not ' '.";
    assert_eq!(refusal(&["a b"]).as_deref(), Some(spaced));
}

#[test]
fn an_output_schema_is_compiled_with_the_tool() {
    let declared =
        |schema: &str| Declaration { output_schema: Some(schema.to_owned()), ..tool("t") };
    let definition = declared(r#"{"type":"object","required":["n"]}"#).compile().unwrap();
    let output = definition.output.unwrap();
    assert!(output.validate(&serde_json::json!({"n": 1})).is_ok());
    assert_eq!(output.validate(&serde_json::json!({})).unwrap_err(), "'n' violates 'required'");
    assert_eq!(
        declared(r#"{"type":"thing"}"#).compile().unwrap_err().to_string(),
        "Tool 't': invalid declaration at '/outputSchema/type': there is no type 'thing'."
    );
}

#[test]
fn what_an_author_has_chosen_does_not_take_over_the_message() {
    let text = refusal(&["a\n\u{1b}[2Jb"]).unwrap();
    assert!(text.starts_with(r"Tool 'a\u{a}\u{1b}[2Jb': invalid declaration at ''"), "{text}");
    let long = refusal(&[&"x".repeat(100_000)]).unwrap();
    assert!(long.len() < 1_000, "{} bytes", long.len());
}

#[test]
fn a_group_belongs_to_the_tool_and_not_to_its_arguments() {
    let schema =
        r#"{"type":"object","properties":{"x-group":{"type":"string"}},"x-group":"reading"}"#;
    let definition = Declaration::new("t", "Does.", schema).compile().unwrap();
    assert_eq!(definition.group.as_deref(), Some("reading"));
    assert_eq!(
        definition.input.published().to_string(),
        r#"{"type":"object","properties":{"x-group":{"type":"string"}}}"#
    );
    let stated =
        Declaration { group: Some("own".to_owned()), ..Declaration::new("t", "Does.", schema) };
    assert_eq!(stated.compile().unwrap().group.as_deref(), Some("own"));
    assert_eq!(Declaration::new("t", "Does.", "{}").compile().unwrap().group, None);
    for group in [r#""""#, r#""two words""#, "3", "null"] {
        let schema = format!(r#"{{"x-group":{group}}}"#);
        let compiled = Declaration::new("t", "Does.", schema).compile();
        if group == "null" {
            assert_eq!(compiled.unwrap().group, None);
        } else {
            assert!(compiled.unwrap_err().to_string().contains("'/x-group'"), "{group}");
        }
    }
}
