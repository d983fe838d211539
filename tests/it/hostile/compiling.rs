//! Kilobytes that cost a compiler gigabytes.
//!
//! The screen refuses most of them: it counts before anything is compiled, and has its own tests.
//! The rest is stopped by the limits of the compiler's process.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest};

use super::{Arena, End, Ended, Launch, attacks};

attacks! {
    /// Components that instantiate the one before twice, 24 times over: 16 million instances in 3
    /// KB.
    instances_that_double: Launch::Text(|| laughs(24, 2)) => End::Refused("instances; the limit \
        is 1000"),
    /// The same 64 times over: an overflowing count must not become a small one.
    instances_beyond_counting: Launch::Text(|| laughs(64, 2)) => End::Refused("instances"),
    /// Types that export the one before twice: the validator copies them.
    types_that_double: Launch::Text(|| types(19, 2)) => End::Refused("definitions after expansion"),
    /// Types that refer to each other in a chain, which validators follow by recursion.
    types_in_a_chain: Launch::Text(|| types(300, 1)) => End::Refused("levels in one type"),
    /// Four billion locals in two groups of a few bytes.
    four_billion_locals: Launch::Bytes(groups_of_locals) => End::Refused("locals in one function"),
    /// Fifty thousand locals.
    many_locals: Launch::Text(|| core(&format!("(func (local {}))", "i32 ".repeat(50_000))))
        => End::Refused("locals in one function"),
    /// One function of a million instructions.
    a_function_without_end: Launch::Text(|| core(&format!("(func {})", "nop ".repeat(1_100_000))))
        => End::Refused("bytes in one function"),
    /// A hundred thousand functions.
    functions_without_end: Launch::Text(|| core(&"(func)".repeat(100_001)))
        => End::Refused("functions; the limit is 100000"),
    /// Calls that move a thousand values each.
    calls_of_a_thousand_values: Launch::Text(|| {
        let results = "i32 ".repeat(1_000);
        let calls = "call $f ".repeat(10_000);
        core(&format!(
            r#"(type $t (func (result {results}))) (import "" "" (func $f (type $t))) (func {calls} unreachable)"#
        ))
    }) => End::Refused("operands of calls and branches"),
    /// Twenty thousand nested blocks.
    blocks_inside_blocks: Launch::Text(|| {
        core(&format!("(func {} {})", "block ".repeat(20_000), "end ".repeat(20_000)))
    }) => End::Refused("levels of blocks"),
    /// Nested loops in which every variable changes: within every limit of the screen, and
    /// quadratic for a compiler that tracks values.
    values_that_flow_through_loops: Launch::Steps(|arena| Box::pin(stopped_by_the_child(arena)))
        => End::AsExpected,
    /// Bytes that take over the compiler run in a process without rights.
    a_compiler_that_was_taken_over: Launch::Steps(|_| Box::pin(async { confined() })) => End::AsExpected,
}

/// Returns a component around a core module.
fn core(items: &str) -> String {
    format!("(component (core module {items}))")
}

fn laughs(levels: usize, copies: usize) -> String {
    let mut text =
        "(component (component $c0 (core module $m) (core instance (instantiate $m)))".to_owned();
    for level in 1..=levels {
        let before = level - 1;
        write!(text, "(component $c{level} (alias outer 1 {before} (component $c))").unwrap();
        text.push_str(&"(instance (instantiate $c))".repeat(copies));
        text.push(')');
    }
    write!(text, "(instance (instantiate $c{levels})))").unwrap();
    text
}

fn types(levels: usize, copies: usize) -> String {
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
    text
}

fn groups_of_locals() -> Vec<u8> {
    let body = [2, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, 0x0b];
    let code = [&[10, 16, 1, 14][..], &body].concat();
    let module = [b"\0asm\x01\0\0\0", &[1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0][..], &code].concat();
    [b"\0asm\x0d\0\x01\0", &[1, module.len() as u8][..], &module].concat()
}

/// Returns a component of `loops` nested loops, with `locals` variables that all change in the
/// innermost one.
fn loops(loops: usize, locals: usize) -> String {
    let mut body = String::new();
    for index in 1..=locals {
        write!(body, "(local.set {index} (i32.add (local.get {index}) (local.get {})))", index - 1)
            .unwrap();
    }
    let open = "loop ".repeat(loops);
    let close = "local.get 0 br_if 0 end ".repeat(loops);
    let sum: String = (1..=locals).map(|index| format!("local.get {index} i32.xor ")).collect();
    format!(
        r#"(component
          (core module $m (func (export "f") (param i32) (result i32) (local {})
            {open} {body} {close} i32.const 0 {sum}))
          (core instance $i (instantiate $m))
          (func (export "f") (param "x" u32) (result u32) (canon lift (core func $i "f"))))"#,
        "i32 ".repeat(locals),
    )
}

/// Checks the process of the compiler, which blocks on an answer that is not read. The engine's own
/// tests try what that process can still do.
fn confined() -> Ended {
    let mut child = Command::new(binary())
        .arg("cofferdam-compile-child")
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // CPU seconds, bytes of memory, no metering, no required confinement.
    let limits = [&60_u64.to_le_bytes()[..], &(4_u64 << 30).to_le_bytes(), &[0, 0]].concat();
    stdin.write_all(&limits).unwrap();
    stdin.write_all(&std::fs::read(guest("remember")).unwrap()).unwrap();
    drop(stdin);
    let mut first = [0; 2];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(first, [0, 1], "compiled and confined");
    let has = |line: &str| {
        status.lines().any(|found| found.split_whitespace().eq(line.split_whitespace()))
    };
    assert!(has("NoNewPrivs: 1") && has("Seccomp: 2"), "{status}");
    Ended::AsExpected
}

/// Checks that a limit of the compiler's process stops the compilation and is named in the error.
async fn stopped_by_the_child(arena: &mut Arena) -> Ended {
    let bytes = wat::parse_str(loops(1_500, 3_000)).unwrap();
    assert!(bytes.len() < 100_000, "{} bytes", bytes.len());
    let Ended::Refused(text) = arena.run(bytes).await else { panic!("the bomb is compiled") };
    let is_limit = text.contains("s of CPU time to compile") || text.contains("MiB of memory");
    assert!(is_limit, "{text}");
    Ended::AsExpected
}
