use proptest::prelude::*;

use super::*;

fn parse(head: &str) -> Result<FrontMatter, InvalidSkill> {
    FrontMatter::parse(&format!("---\nname: s\n{head}\n---\nbody"), "s")
}

fn license(head: &str) -> Option<String> {
    parse(&format!("description: d\n{head}")).unwrap().license
}

#[test]
fn the_two_lines_take_a_mark_spaces_and_carriage_returns() {
    for text in [
        "---\nname: s\ndescription: d\n---",
        "\u{feff}---\nname: s\ndescription: d\n---\n",
        "---\r\nname: s\r\ndescription: d\r\n---\r\nbody\r\n",
        "---  \nname: s\ndescription: d\n---\t \nbody",
    ] {
        let parsed = FrontMatter::parse(text, "s").unwrap();
        assert_eq!((parsed.name.as_str(), parsed.description.as_str()), ("s", "d"), "{text:?}");
    }
    for (text, error) in [
        (" ---\nname: s\ndescription: d\n---\n", InvalidSkill::NoFrontMatter),
        ("\n---\nname: s\ndescription: d\n---\n", InvalidSkill::NoFrontMatter),
        ("---", InvalidSkill::NoFrontMatter),
        ("---\nname: s\ndescription: d\n ---\n", InvalidSkill::Unclosed),
        ("---\nname: s\ndescription: d\n...\n", InvalidSkill::Unclosed),
        ("---\nname: s\ndescription: d\n--- x\n", InvalidSkill::Unclosed),
        ("---\n---\n", InvalidSkill::NoName),
        ("---\n- name\n---\n", InvalidSkill::NotAMap),
    ] {
        assert_eq!(FrontMatter::parse(text, "s"), Err(error), "{text:?}");
    }
}

#[test]
fn scalars_are_their_text_and_null_is_absent() {
    for (written, text) in [
        ("true", "true"),
        ("5", "5"),
        ("1.0", "1.0"),
        ("0x10", "0x10"),
        ("yes", "yes"),
        (".nan", ".nan"),
        ("2026-01-02", "2026-01-02"),
        ("'null'", "null"),
        ("\"\"", ""),
        ("!!str null", "null"),
        ("!!str 5", "5"),
        ("! 5", "5"),
        ("!!int 5", "5"),
        ("\"a\\u00e9\"", "aé"),
        ("a # comment", "a"),
        ("a#b", "a#b"),
    ] {
        assert_eq!(license(&format!("license: {written}")).as_deref(), Some(text), "{written}");
    }
    for written in ["", "~", "null", "Null", "NULL", "!!null ''"] {
        assert_eq!(license(&format!("license: {written}")), None, "{written}");
    }
    assert_eq!(license("license: |\n  a\n  b\n").as_deref(), Some("a\nb\n"));
    assert_eq!(license("license: >\n  a\n  b\n").as_deref(), Some("a b\n"));
    assert_eq!(license("license: |+\n  a\n").as_deref(), Some("a\n\n"));
    assert_eq!(license("License: upper"), None);
}

#[test]
fn a_key_stands_once_wherever_it_is() {
    for head in [
        "description: d\ndescription: e",
        "description: d\n\"description\": e",
        "description: d\nunknown: {a: 1, a: 2}",
        "description: d\nmetadata:\n  a: 1\n  a: 2",
        "description: d\nunknown:\n  ? [1, 2]\n  : a\n  ? [1, 2]\n  : b",
        "description: d\nunknown: [{~: 1, null: 2}]",
    ] {
        assert!(
            matches!(parse(head), Err(InvalidSkill::DuplicateKey { .. })),
            "{head}: {:?}",
            parse(head)
        );
    }
    assert!(
        parse("description: d\nDescription: e\nunknown: {[a, b]: 1, [ab]: 2, text: 3}").is_ok()
    );
    let twice = parse("description: d\nname: t").unwrap_err();
    assert_eq!(twice.to_string(), "line 4 of `SKILL.md`: the key `name` occurs twice");
}

#[test]
fn tags_that_are_not_yamls_own_are_refused() {
    for head in [
        "description: !mine d",
        "description: !!python/name:os.system d",
        "description: d\nunknown: !x {a: b}",
        "description: d\nunknown: [!x 1]",
        "description: d\n!x unknown: 1",
        "description: d\nlicense: !!map x",
        "description: d\nlicense: !<tag:example.org,2000:x> y",
    ] {
        assert!(matches!(parse(head), Err(InvalidSkill::Tag { .. })), "{head}: {:?}", parse(head));
    }
    let tag = parse("description: !mine d").unwrap_err();
    assert_eq!(tag.to_string(), "line 3 of `SKILL.md`: the tag `!mine` is not allowed");
}

#[test]
fn aliases_repeat_a_little() {
    let parsed = parse("description: &d text\nlicense: *d\nmetadata: {a: *d}").unwrap();
    assert_eq!(parsed.license.as_deref(), Some("text"));
    assert_eq!(parsed.metadata.unwrap().get("a").map(String::as_str), Some("text"));
    let mut bomb = "description: d\na0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned();
    for level in 1..8 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("\na{level}: &a{level} [{before}]"));
    }
    assert_eq!(parse(&bomb), Err(InvalidSkill::AliasedTooMuch { bytes_max: 65_536 }));
    let large = "x".repeat(33_000);
    assert!(matches!(
        parse(&format!("description: d\na: &a {large}\nb: *a")),
        Err(InvalidSkill::AliasedTooMuch { .. })
    ));
    // A front matter without aliases may be larger.
    assert!(parse(&format!("description: d\na: {}", "x".repeat(70_000))).is_ok());
    assert!(matches!(parse("description: d\na: &a [*a]"), Err(InvalidSkill::Alias { .. })));
    assert!(parse("description: d\na: *nothing").is_err());
}

#[test]
fn metadata_keeps_its_texts() {
    let metadata =
        |head: &str| parse(&format!("description: d\nmetadata: {head}")).unwrap().metadata;
    let strings = metadata("{a: b, c: 1.0, d: [e], f: {g: h}, i: ~, j: ''}").unwrap();
    let strings: Vec<_> =
        strings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(strings, [("a", "b"), ("c", "1.0"), ("j", "")]);
    assert_eq!(metadata("{a: [b]}"), Some(BTreeMap::new()));
    for absent in ["", "~", "text", "[a]"] {
        assert_eq!(metadata(absent), None, "{absent}");
    }
}

#[test]
fn metadata_that_is_left_out_is_a_problem_for_the_author() {
    let problem = |head: &str| {
        let parsed = parse(&format!("description: d\nmetadata: {head}")).unwrap();
        parsed.metadata_problem.map(|problem| problem.to_string())
    };
    for complete in ["", "~", "{}", "{a: b, c: 1.0, i: ~, j: ''}"] {
        assert_eq!(problem(complete), None, "{complete}");
    }
    assert_eq!(parse("description: d").unwrap().metadata_problem, None);
    for other in ["text", "[a]"] {
        let message = "the field `metadata` of `SKILL.md` is not a map and is left out";
        assert_eq!(problem(other).as_deref(), Some(message), "{other}");
    }
    let message = "entries of `metadata` of `SKILL.md` are not strings and are left out: ";
    assert_eq!(problem("{a: b, d: [e], f: {g: h}}"), Some(format!("{message}d, f")));
    assert_eq!(problem("{[a]: b}"), Some(format!("{message}a key that is not a string")));
    let long = problem(&format!("{{{}: [b]}}", "a".repeat(200)));
    assert_eq!(long, Some(format!("{message}{}…", "a".repeat(100))));
}

#[test]
fn what_is_no_yaml_says_where() {
    let error = parse("description: a: b").unwrap_err();
    assert!(matches!(error, InvalidSkill::Yaml { line: 3, .. }), "{error}");
    for head in [
        "description: d\n  bad: indent",
        "description: [a",
        "description: \"a",
        "description: d\n\tx: 1",
    ] {
        assert!(matches!(parse(head), Err(InvalidSkill::Yaml { .. })), "{head}: {:?}", parse(head));
    }
    let deep = format!("description: d\na: {}{}", "[".repeat(5000), "]".repeat(5000));
    assert!(matches!(parse(&deep), Err(InvalidSkill::Yaml { .. })));
    for list in ["license: [a]", "compatibility: {a: b}", "allowed-tools:\n  - a"] {
        assert!(
            matches!(parse(&format!("description: d\n{list}")), Err(InvalidSkill::NotAText { .. })),
            "{list}"
        );
    }
}

#[test]
fn lengths_are_counted_in_characters() {
    assert!(parse(&format!("description: {}", "é".repeat(1024))).is_ok());
    assert!(parse(&format!("description: {}", "é".repeat(1025))).is_err());
    assert!(parse(&format!("description: d\ncompatibility: {}", "é".repeat(500))).is_ok());
    assert_eq!(
        parse(&format!("description: d\ncompatibility: {}", "é".repeat(501))),
        Err(InvalidSkill::Compatibility)
    );
    assert!(check_name(&"a".repeat(64)).is_ok());
    assert!(check_name(&"a".repeat(65)).is_err());
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(?s)(---\n)?[a-z:\\-\\[\\]{}&*!|>'\"#%@~? \n\t\r.,é\u{feff}\u{0}]{0,120}(\n---\n)?.{0,20}") {
        let _ = FrontMatter::parse(&text, "s");
    }

    #[test]
    fn a_quoted_text_is_what_it_was(text in "\\PC{1,200}") {
        let written = serde_json::to_string(&text).unwrap();
        let parsed = license(&format!("license: {written}"));
        prop_assert_eq!(parsed, Some(text));
    }
}
