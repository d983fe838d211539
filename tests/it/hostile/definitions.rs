//! Plugins whose definitions are too many, too large, invalid, or different each time.

use cofferdam_engine::Component;
use cofferdam_tool::ToolSource as _;

use super::{Arena, End, Ended, Launch, attacks};
use crate::module::{Definition, Module};

attacks! {
    /// Two tools have one name, which makes calls ambiguous.
    two_of_one_name: Launch::Tool("list_twice", "same", "{}") => End::Refused("cannot be told \
        from 'same'"),
    /// Two tools that look the same.
    two_that_look_alike: Launch::Module(|| tools(["list", "Iist"])) => End::Refused("cannot be told from"),
    /// Two tools that differ by case.
    two_that_differ_by_case: Launch::Module(|| tools(["read", "READ"])) => End::Refused("cannot be told from"),
    /// More tools than a model should read.
    too_many_tools: Launch::Module(|| Module {
        definitions: (0..129).map(|n| Definition::new(&format!("t{n}x"))).collect(),
        ..Module::default()
    }) => End::Refused("129 tools"),
    /// A million definitions that share their bytes.
    a_million_definitions: Launch::Module(|| Module {
        list: "(i32.store (i32.const 4) (i32.const 1000000)) (drop (memory.grow (i32.const 950)))",
        ..Module::default()
    }) => End::Refused("did not list its tools: "),
    /// A description that is too long.
    a_description_that_is_too_long: Launch::Module(|| described(&"x".repeat(4_097)))
        => End::Refused("longer than 4096 bytes"),
    /// Many descriptions, each within the limit.
    descriptions_that_are_too_long_together: Launch::Module(|| Module {
        definitions: (0..100)
            .map(|n| Definition { description: vec![b'x'; 4_000], ..Definition::new(&format!("t{n}x")) })
            .collect(),
        ..Module::default()
    }) => End::Refused("at most 262144"),
    /// A name that moves the cursor.
    a_name_with_an_escape_sequence: Launch::Module(|| tools(["a\u{1b}[2Jb", "c"]))
        => End::Refused("a name is made of"),
    /// A name that reads backwards.
    a_name_with_a_bidi_control: Launch::Module(|| tools(["a\u{202e}b", "c"]))
        => End::Refused("a name is made of"),
    /// A name with a letter of another script.
    a_name_in_another_script: Launch::Module(|| tools(["re\u{430}d", "c"]))
        => End::Refused("a name is made of"),
    /// A name that starts a second line in a message.
    a_name_with_a_line_feed: Launch::Module(|| tools(["a\nerror: all is well", "c"]))
        => End::Refused("a name is made of"),
    /// A name with a zero byte, which ends a string for some programs.
    a_name_with_a_zero: Launch::Module(|| tools(["a\0b", "c"])) => End::Refused("a name is made of"),
    /// A very long name.
    a_name_of_a_hundred_thousand_characters: Launch::Module(|| tools([&"x".repeat(100_000), "c"]))
        => End::Refused("must not be longer than 128"),
    /// An empty name.
    a_name_that_is_empty: Launch::Module(|| tools(["", "c"])) => End::Refused("must not be empty"),
    /// A schema that is not JSON.
    a_schema_that_is_no_json: Launch::Module(|| schema("{")) => End::Refused("not JSON"),
    /// A very deeply nested schema.
    a_schema_of_many_levels: Launch::Module(|| {
        schema(&format!("{}{}", r#"{"not":"#.repeat(5_000), "}".repeat(5_000)))
    }) => End::Refused("nested deeper"),
    /// A schema that refers only to itself.
    a_schema_that_is_a_circle: Launch::Module(|| {
        schema(r##"{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}"##)
    }) => End::Refused("form a cycle"),
    /// A schema that doubles with every reference.
    a_schema_that_unfolds: Launch::Module(|| schema(&unfolding())) => End::Refused("more than 10000 nodes"),
    /// A pattern that takes a backtracking matcher exponential time is accepted and matched in
    /// linear time.
    a_pattern_that_backtracks: Launch::Module(|| {
        schema(r#"{"type":"object","properties":{"a":{"type":"string","pattern":"^(a+)+$"}}}"#)
    }) => End::Succeeds,
    /// A pattern that is short as a string and large as an automaton.
    a_pattern_that_unfolds: Launch::Module(|| {
        schema(r#"{"type":"object","properties":{"a":{"pattern":"(((x{100}){100}){100}){100}"}}}"#)
    }) => End::Refused("pattern is not supported"),
    /// A schema that asks the host to fetch a document.
    a_schema_on_another_server: Launch::Module(|| {
        schema(r#"{"type":"object","properties":{"a":{"$ref":"http://127.0.0.1:1/x.json"}}}"#)
    }) => End::Refused("not followed"),
    /// A schema that asks the host to read a file.
    a_schema_in_a_file: Launch::Module(|| {
        schema(r#"{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}"#)
    }) => End::Refused("not followed"),
    /// A default that does not match its own schema.
    a_default_that_lies: Launch::Tool("bad_schema", "bad", "{}") => End::Refused("invalid declaration"),
    /// Listing the tools traps.
    a_trap_instead_of_a_list: Launch::Tool("list_traps", "t", "{}")
        => End::Refused("did not list its tools: Trap.Unreachable"),
    /// A plugin that describes its tools differently each time.
    a_list_that_changes: Launch::Steps(|arena| Box::pin(asked_once(arena))) => End::AsExpected,
    /// A plugin whose listing changes has only the tools of its first listing.
    a_tool_that_was_not_declared: Launch::Steps(|arena| Box::pin(async move {
        let plugin = arena.load(&Component::from_bytes(changing().component())).await.expect("it loads");
        assert_eq!(plugin.definitions().len(), 1, "what is declared is what can be called");
        Ended::AsExpected
    })) => End::AsExpected,
}

fn tools(names: [&str; 2]) -> Module<'static> {
    Module { definitions: names.map(Definition::new).into(), ..Module::default() }
}

fn described(description: &str) -> Module<'static> {
    let definition = Definition { description: description.into(), ..Definition::new("t") };
    Module { definitions: vec![definition], ..Module::default() }
}

fn schema(schema: &str) -> Module<'static> {
    let definition = Definition { input_schema: schema.into(), ..Definition::new("t") };
    Module { definitions: vec![definition], ..Module::default() }
}

/// Returns a schema of twenty definitions, each of which refers to the one before twice.
fn unfolding() -> String {
    let mut definitions = String::from(r#""d0":{"type":"string"}"#);
    for level in 1..=20 {
        let before = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, level - 1);
        definitions
            .push_str(&format!(r#","d{level}":{{"properties":{{"a":{before},"b":{before}}}}}"#));
    }
    format!(
        r##"{{"type":"object","$defs":{{{definitions}}},"properties":{{"a":{{"$ref":"#/$defs/d20"}}}}}}"##
    )
}

/// Returns a module that declares a tool whose name has a letter that depends on the clock.
fn changing() -> Module<'static> {
    Module {
        wit: "package test:clocks; package wasi:clocks@0.2.0 \
            { interface monotonic-clock { now: func() -> u64; } }",
        world: "import wasi:clocks/monotonic-clock@0.2.0;",
        imports: r#"(import "wasi:clocks/monotonic-clock@0.2.0" "now" (func $now (result i64)))"#,
        // The name is one letter, at the address at the start of the definition.
        list: "(i32.store8 (i32.load (i32.load (i32.const 0)))
            (i32.add (i32.const 97) (i32.wrap_i64 (i64.rem_u (call $now) (i64.const 26)))))",
        ..Module::default()
    }
}

/// Checks that a plugin lists its tools once, and that the list holds until its component changes.
async fn asked_once(arena: &mut Arena) -> Ended {
    let component = Component::from_bytes(changing().component());
    let first = arena.load(&component).await.expect("it loads");
    let names = |plugin: &cofferdam_engine::Plugin| plugin.definitions()[0].name.clone();
    for _ in 0..20 {
        let next = arena.load(&component).await.expect("it loads");
        assert_eq!(names(&next), names(&first));
    }
    Ended::AsExpected
}
