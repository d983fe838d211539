//! Small files that cost a validator or compiler much, against the default limits.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::*;

const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";
/// Time limit: far above what any rejection takes in a debug build on a busy machine, far below
/// what the bombs take if they pass.
const PATIENCE: Duration = Duration::from_secs(2);

/// Screens on a small stack, so that recursion is detected, and checks that the result comes soon.
fn refused(bytes: Vec<u8>) -> String {
    let start = Instant::now();
    let screening =
        std::thread::Builder::new().stack_size(256 * 1024).spawn(move || refusal(&bytes)).unwrap();
    let text = screening.join().unwrap();
    assert!(start.elapsed() < PATIENCE, "{:?}: {text}", start.elapsed());
    text
}

fn leb(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn section(id: u8, contents: &[u8]) -> Vec<u8> {
    [&[id][..], &leb(contents.len()), contents].concat()
}

/// Returns `levels` nested component types.
fn nested_types(levels: usize) -> Vec<u8> {
    let types = [&[1][..], &[0x41, 1, 1].repeat(levels - 1), &[0x41, 0]].concat();
    [HEADER, &section(7, &types)].concat()
}

/// Returns components that instantiate the previous one `copies` times, with `levels` levels.
fn billion_laughs(levels: usize, copies: usize) -> Vec<u8> {
    let mut text =
        "(component (component $c0 (core module $m) (core instance (instantiate $m)))".to_owned();
    for level in 1..=levels {
        let before = level - 1;
        write!(text, "(component $c{level} (alias outer 1 {before} (component $c))").unwrap();
        text.push_str(&"(instance (instantiate $c))".repeat(copies));
        text.push(')');
    }
    write!(text, "(instance (instantiate $c{levels})))").unwrap();
    bytes(&text)
}

/// Returns instance types that export the previous one `copies` times, with `levels` levels; the
/// last one is imported.
fn type_laughs(levels: usize, copies: usize) -> Vec<u8> {
    let mut text =
        "(component (type $t0 (instance (export \"r\" (type (sub resource)))))".to_owned();
    for level in 1..=levels {
        let before = level - 1;
        write!(text, "(type $t{level} (instance (alias outer 1 {before} (type $t))").unwrap();
        for copy in 0..copies {
            write!(text, "(export \"e{copy}\" (instance (type $t)))").unwrap();
        }
        text.push_str("))");
    }
    write!(text, "(import \"i\" (instance (type $t{levels}))))").unwrap();
    bytes(&text)
}

#[test]
fn billions_of_instances() {
    // A component and its module are 2 instances; the component of level 8 has 767.
    assert_eq!(
        refused(billion_laughs(24, 2)),
        "the component has 1534 or more instances; the limit is 1000"
    );
    assert_eq!(
        refused(billion_laughs(8, 16)),
        "the component has 1058 or more instances; the limit is 1000"
    );
    // 2^64 instances do not wrap around to zero.
    assert!(refused(billion_laughs(64, 2)).contains("or more instances"));
    assert!(screen(&billion_laughs(7, 2), &ScreenLimits::default()).is_ok());
}

#[test]
fn types_that_double() {
    assert_eq!(
        refused(type_laughs(19, 2)),
        "the component has 1072995 or more definitions after expansion; the limit is 1000000"
    );
    assert!(refused(type_laughs(49, 64)).contains("or more definitions"));
    assert!(screen(&type_laughs(9, 2), &ScreenLimits::default()).is_ok());
}

#[test]
fn types_inside_types() {
    assert_eq!(
        refused(nested_types(2_000_000)),
        "the component has 51 or more levels in one type; the limit is 50"
    );
    assert!(screen(&nested_types(50), &ScreenLimits::default()).is_ok());
}

#[test]
fn chains_of_types() {
    assert_eq!(
        refused(type_laughs(300, 1)),
        "the component has 51 or more levels in one type; the limit is 50"
    );
    assert!(screen(&type_laughs(48, 1), &ScreenLimits::default()).is_ok());
}

#[test]
fn chains_of_instances() {
    let mut text = "(component (instance $i0)".to_owned();
    for level in 1..=900 {
        write!(text, "(instance $i{level} (export \"a\" (instance $i{})))", level - 1).unwrap();
    }
    text.push_str("(export \"a\" (instance $i900)))");
    assert_eq!(
        refused(bytes(&text)),
        "the component has 51 or more levels in one type; the limit is 50"
    );
}

#[test]
fn value_types_that_double_and_are_lifted_often() {
    let mut text = "(component (type $v0 (variant (case \"a\" u8) (case \"b\" u8)))".to_owned();
    for level in 1..=14 {
        let before = level - 1;
        write!(text, "(type $v{level} (variant (case \"a\" $v{before}) (case \"b\" $v{before})))")
            .unwrap();
    }
    text.push_str("(core module $m (func (export \"f\") (param i32 i32 i32 i32 i32 i32 i32 i32");
    text.push_str(" i32 i32 i32 i32 i32 i32 i32 i32))) (core instance $i (instantiate $m))");
    text.push_str("(type $f (func (param \"x\" $v14)))");
    text.push_str(&"(func (type $f) (canon lift (core func $i \"f\")))".repeat(1000));
    text.push(')');
    assert!(refused(bytes(&text)).ends_with("definitions after expansion; the limit is 1000000"));
}

#[test]
fn components_inside_components() {
    let mut nested = HEADER.to_vec();
    for _ in 0..200 {
        nested = [HEADER, &section(4, &nested)].concat();
    }
    assert_eq!(
        refused(nested),
        "the component has 17 or more levels of nested components; the limit is 16"
    );
}

#[test]
fn seventy_memories() {
    let modules = "(core instance (instantiate $m))".repeat(70);
    let text = format!("(component (core module $m (memory 1)) {modules})");
    assert_eq!(refused(bytes(&text)), "the component has 9 or more memories; the limit is 8");
    let text = format!(
        "(component (core module $m {}) (core instance (instantiate $m)))",
        "(memory 1)".repeat(70)
    );
    assert_eq!(refused(bytes(&text)), "the component has 9 or more memories; the limit is 8");
}

#[test]
fn memory_and_tables_of_all_instances_together() {
    let run = |items: &str| {
        bytes(&format!("(component (core module $m {items}) (core instance (instantiate $m)))"))
    };
    assert_eq!(
        refused(run("(memory 65536)")),
        "the component has 4294967296 or more bytes of initial memory; the limit is 1073741824"
    );
    assert_eq!(
        refused(run("(table 600000 funcref) (table 600000 funcref)")),
        "the component has 1200000 or more initial table elements; the limit is 1000000"
    );
    assert_eq!(
        refused(run(&"(table 0 funcref)".repeat(40))),
        "the component has 33 or more tables; the limit is 32"
    );
}

#[test]
fn a_million_types() {
    let types = [&leb(1_000_000)[..], &[0x60, 0, 0].repeat(1_000_000)].concat();
    let module = [&b"\0asm\x01\0\0\0"[..], &section(1, &types)].concat();
    assert_eq!(
        refused([HEADER, &section(1, &module)].concat()),
        "the component has 1000000 or more types; the limit is 50000"
    );
    let types = [&leb(1_000_000)[..], &[0x70, 0x7d].repeat(1_000_000)].concat();
    let component = [HEADER, &section(7, &types)].concat();
    assert_eq!(refused(component), "the component has 1000000 or more types; the limit is 50000");
}

#[test]
fn announced_counts_are_not_believed() {
    // Sections of a few bytes that announce 2^32 - 1 items, at component level and in a core
    // module.
    let count = [0xff, 0xff, 0xff, 0xff, 0x0f];
    for id in 2..=11 {
        refused([HEADER, &section(id, &count)].concat());
    }
    for id in 1..=13 {
        let module = [&b"\0asm\x01\0\0\0"[..], &section(id, &count)].concat();
        refused([HEADER, &section(1, &module)].concat());
    }
}

#[test]
fn functions_bodies_and_locals() {
    let module = |items: &str| bytes(&format!("(component (core module {items}))"));
    assert_eq!(
        refused(module(&"(func)".repeat(100_001))),
        "the component has 100001 or more functions; the limit is 100000"
    );
    assert_eq!(
        refused(module(&format!("(func {})", "nop ".repeat(1_100_000)))),
        "the component has 1100002 or more bytes in one function; the limit is 1048576"
    );
    assert_eq!(
        refused(module(&format!("(func (local {}))", "i32 ".repeat(50_000)))),
        "the component has 50000 or more locals in one function; the limit is 10000"
    );
    let blocks = format!("(func {} {})", "block ".repeat(20_000), "end ".repeat(20_000));
    assert_eq!(
        refused(module(&blocks)),
        "the component has 5001 or more levels of blocks in one function; the limit is 5000"
    );
}

#[test]
fn four_billion_locals_in_two_groups() {
    let body = [2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0x0b];
    let code = [&[1][..], &leb(body.len()), &body].concat();
    let module = [
        b"\0asm\x01\0\0\0",
        &section(1, &[1, 0x60, 0, 0])[..],
        &section(3, &[1, 0]),
        &section(10, &code),
    ]
    .concat();
    assert_eq!(
        refused([HEADER, &section(1, &module)].concat()),
        "the component has 4294967295 or more locals in one function; the limit is 10000"
    );
}

#[test]
fn calls_and_branches_that_move_a_thousand_values() {
    let results = "i32 ".repeat(1000);
    let module = |items: &str| {
        bytes(&format!(
            "(component (core module (type $t (func (result {results}))) (import \"\" \"\" (func \
             $f (type $t))) {items}))"
        ))
    };
    let calls = module(&format!("(func {} unreachable)", "call $f ".repeat(10_000)));
    assert_eq!(
        refused(calls),
        "the component has 1001000 or more operands of calls and branches in one function; the \
         limit is 1000000"
    );
    let table = module(&format!(
        "(func (block (type $t) unreachable br_table {}) unreachable)",
        "0 ".repeat(10_000)
    ));
    assert!(refused(table).contains("operands of calls and branches in one function"));
    let functions = module(&format!("(func {} unreachable)", "call $f ".repeat(900)).repeat(20));
    assert_eq!(
        refused(functions),
        "the component has 16200000 or more operands of calls and branches; the limit is 16000000"
    );
}

#[test]
fn long_branch_tables() {
    let table =
        format!("(component (core module (func i32.const 0 br_table {})))", "0 ".repeat(60_000));
    assert_eq!(
        refused(bytes(&table)),
        "the component has 59999 or more targets in one `br_table`; the limit is 50000"
    );
}

#[test]
fn a_module_with_many_imports_instantiated_often() {
    let mut exports = String::new();
    let mut imports = String::new();
    for index in 0..5_000 {
        write!(exports, "(func (export \"{index}\"))").unwrap();
        write!(imports, "(import \"a\" \"{index}\" (func))").unwrap();
    }
    let instances = "(core instance (instantiate $m (with \"a\" (instance $i))))".repeat(900);
    let text = format!(
        "(component (core module $e {exports}) (core module $m {imports}) (core instance $i \
         (instantiate $e)) {instances})"
    );
    assert!(refused(bytes(&text)).ends_with("definitions after expansion; the limit is 1000000"));
}

#[test]
fn a_great_many_empty_sections() {
    let sections = [HEADER, &[0, 1, 0].repeat(5_000_000)].concat();
    assert_eq!(refused(sections), "the component has 20001 or more sections; the limit is 20000");
}
