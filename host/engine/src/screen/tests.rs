//! Messages of all rejections, bombs against the default limits, and malformed bytes.

mod bombs;

use proptest::prelude::*;

use super::*;

/// Small component with most kinds of sections: nested components, two instances of one module, a
/// type with declarations, aliases, a lifted and a lowered function, custom sections.
const SMALL: &str = r#"(component
    (type $io (instance (export "stream" (type $s (sub resource))) (type (own $s))))
    (import "wasi:io/streams@0.2.6" (instance (type $io)))
    (import "log" (func $log (param "level" u32)))
    (core func $lowered (canon lower (func $log)))
    (core module $m
        (import "" "log" (func $log (param i32)))
        (memory 2) (table 3 funcref) (global i32 (i32.const 7))
        (elem (i32.const 0) func $log) (data (i32.const 0) "text")
        (func (export "run") (param i32) (local i32 i64)
            block (br_table 0 1 0 (local.get 0)) end
            (call $log (local.get 0))))
    (core instance $one (instantiate $m (with "" (instance (export "log" (func $lowered))))))
    (core instance $two (instantiate $m (with "" (instance (export "log" (func $lowered))))))
    (component $inner
        (core module $n (memory 1))
        (core instance (instantiate $n)))
    (instance (instantiate $inner))
    (instance (instantiate $inner))
    (func (export "run") (param "n" u32) (canon lift (core func $one "run")))
)"#;

pub(super) fn bytes(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

pub(super) fn refusal(bytes: &[u8]) -> String {
    refusal_with(bytes, &ScreenLimits::default())
}

fn refusal_with(bytes: &[u8], limits: &ScreenLimits) -> String {
    screen(bytes, limits).unwrap_err().to_string()
}

/// Returns the message of the rejection of `text` when one limit is lowered, after checking that it
/// passes with one more.
fn just_over(text: &str, found: u64, limit: impl Fn(&mut ScreenLimits) -> &mut u64) -> String {
    let (bytes, mut limits) = (bytes(text), ScreenLimits::default());
    *limit(&mut limits) = found;
    assert_eq!(screen(&bytes, &limits).map(|_| ()), Ok(()), "passes with a limit of {found}");
    *limit(&mut limits) = found - 1;
    refusal_with(&bytes, &limits)
}

#[test]
fn imports_that_only_mention_types_are_not_reported() {
    let text = r#"(component
        (type $io (instance (export "stream" (type (sub resource)))))
        (import "wasi:io/streams@0.2.6" (instance $streams (type $io)))
        (alias export $streams "stream" (type $stream))
        (import "my:own/types@1.0.0" (instance
            (type $unit (enum "c" "f")) (export "unit" (type (eq $unit)))
            (alias outer 1 $stream (type $s)) (export "stream" (type (eq $s)))))
        (import "stream" (type (eq $stream)))
        (type $day (enum "today"))
        (import "day" (type (eq $day)))
    )"#;
    assert_eq!(
        screen(&bytes(text), &ScreenLimits::default()).unwrap().imports,
        ["wasi:io/streams@0.2.6"]
    );
}

#[test]
fn a_component_passes_and_is_reported() {
    let screened = screen(&bytes(SMALL), &ScreenLimits::default()).unwrap();
    assert_eq!(screened.imports, ["wasi:io/streams@0.2.6", "log"]);
    assert_eq!(screened.exports, ["run"]);
    assert_eq!((screened.functions, screened.modules), (1, 2));
    // Two of `$m`, their two arguments, and `$inner` twice with its module.
    assert_eq!((screened.instances, screened.memories, screened.tables), (8, 4, 2));
    assert_eq!(screened.memory_bytes, (2 + 2 + 1 + 1) * 65_536);
}

#[test]
fn defaults_are_pinned() {
    let expected = ScreenLimits {
        component_bytes_max: 67_108_864,
        nesting_max: 16,
        sections_max: 20_000,
        instances_max: 1_000,
        definitions_max: 1_000_000,
        types_max: 50_000,
        type_depth_max: 50,
        externs_max: 50_000,
        functions_max: 100_000,
        body_bytes_max: 1_048_576,
        locals_max: 10_000,
        block_depth_max: 5_000,
        branch_targets_max: 50_000,
        body_operands_max: 1_000_000,
        operands_max: 16_000_000,
        globals_max: 20_000,
        memories_max: 8,
        memory_bytes_max: 1_073_741_824,
        tables_max: 32,
        table_elements_max: 1_000_000,
        data_segments_max: 200_000,
        element_segments_max: 10_000,
        segment_elements_max: 1_000_000,
        features: ScreenLimits::FEATURES,
    };
    assert_eq!(ScreenLimits::default(), expected);
}

#[test]
fn bytes_that_are_no_component() {
    let elf = [&b"\x7fELF\x02\x01\x01"[..], &[0; 64]].concat();
    let tar = [&b"plugin.wasm"[..], &[0; 246], b"ustar\0"].concat();
    let cases: [(&[u8], &str); 12] = [
        (b"", "the file is empty"),
        (b"\0as", "the file is cut off: it has 3 bytes and announces at least 8"),
        (b"\0asm\x0d\0\x01", "the file is cut off: it has 7 bytes and announces at least 8"),
        (
            b"\0asm\x01\0\0\0",
            "a core module, not a component; build a plugin for `wasm32-wasip2`, or make one of a command with \
             `cofferdam wrap`",
        ),
        (
            b"\0asm\x0a\0\x01\0",
            "unknown WebAssembly version 10, layer 1; a component has version 13, layer 1",
        ),
        (
            b"\0asm\x01\0\x02\0",
            "unknown WebAssembly version 1, layer 2; a component has version 13, layer 1",
        ),
        (
            &elf,
            "not a WebAssembly file but an ELF file (a program, or a precompiled `.cwasm`, which is never loaded from \
             outside)",
        ),
        (b"PK\x03\x04....", "not a WebAssembly file but a compressed archive; unpack it first"),
        (&tar, "not a WebAssembly file but a compressed archive; unpack it first"),
        (
            b"(component)\n",
            "not a WebAssembly file but text; turn the text format into bytes with `wasm-tools \
             parse`",
        ),
        (&[0; 4096], "not a WebAssembly file but zero bytes, as in a broken download"),
        (b"\x80\x01\xff\xfe\x00\x12", "not a WebAssembly file but bytes of an unknown kind"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(refusal(bytes), expected);
    }
}

#[test]
fn text_is_recognised_although_the_look_cuts_a_character() {
    let text = format!("{}ä and more", "x".repeat(511));
    assert!(refusal(text.as_bytes()).contains("but text"));
    assert!(refusal(b"text with \x1b[31mescapes").contains("unknown kind"));
}

#[test]
fn a_hundred_megabytes_are_refused_before_they_are_read() {
    let mut zeros = vec![0; 100 * 1024 * 1024];
    assert_eq!(refusal(&zeros), "not a WebAssembly file but zero bytes, as in a broken download");
    zeros[..8].copy_from_slice(b"\0asm\x0d\0\x01\0");
    assert_eq!(refusal(&zeros), "the component has 104857600 or more bytes; the limit is 67108864");
}

#[test]
fn every_cut_of_a_component_is_refused_or_was_a_section_boundary() {
    let bytes = bytes(SMALL);
    let limits = ScreenLimits::default();
    for length in 0..bytes.len() {
        match screen(&bytes[..length], &limits) {
            Err(ScreenError::Empty | ScreenError::Truncated { .. }) => {}
            // A file that ends between two sections appears complete.
            other => assert!(is_boundary(&bytes, length), "{length} of {}: {other:?}", bytes.len()),
        }
    }
}

fn is_boundary(bytes: &[u8], length: usize) -> bool {
    let mut ends = vec![8];
    for section in wasmparser::Parser::new(0).parse_all(bytes) {
        ends.extend(section.unwrap().as_section().map(|(_, range)| range.end));
    }
    ends.contains(&length)
}

#[test]
fn a_broken_section_length_is_not_called_a_cut() {
    let broken = b"\0asm\x0d\0\x01\0\x00\xff\xff\xff\xff\xff\xff";
    assert_eq!(
        refusal(broken),
        "not a valid component: invalid var_u32: integer representation too long (at byte 13)"
    );
}

#[test]
fn each_limit_has_its_words() {
    let many = |item: &str, count: usize| item.repeat(count);
    let module = |items: &str| format!("(component (core module {items}))");
    let run = |items: &str| {
        format!("(component (core module $m {items}) (core instance (instantiate $m)))")
    };
    let cases: [(String, String); 21] = [
        (
            just_over("(component)", 8, |l| &mut l.component_bytes_max),
            "the component has 8 or more bytes; the limit is 7".into(),
        ),
        (
            just_over("(component (component (component)))", 2, |l| &mut l.nesting_max),
            "the component has 2 or more levels of nested components; the limit is 1".into(),
        ),
        (
            just_over("(component (core module) (core module))", 2, |l| &mut l.sections_max),
            "the component has 2 or more sections; the limit is 1".into(),
        ),
        (
            just_over("(component (instance) (instance))", 2, |l| &mut l.instances_max),
            "the component has 2 or more instances; the limit is 1".into(),
        ),
        (
            just_over("(component (type (list u8)))", 2, |l| &mut l.definitions_max),
            "the component has 2 or more definitions after expansion; the limit is 1".into(),
        ),
        (
            just_over(&module(&many("(type (func))", 9)), 9, |l| &mut l.types_max),
            "the component has 9 or more types; the limit is 8".into(),
        ),
        (
            just_over("(component (type (list (list (list u8)))))", 4, |l| &mut l.type_depth_max),
            "the component has 4 or more levels in one type; the limit is 3".into(),
        ),
        (
            just_over(&module("(func (export \"a\")) (export \"b\" (func 0))"), 2, |l| {
                &mut l.externs_max
            }),
            "the component has 2 or more imports and exports; the limit is 1".into(),
        ),
        (
            just_over(&module("(func) (func)"), 2, |l| &mut l.functions_max),
            "the component has 2 or more functions; the limit is 1".into(),
        ),
        (
            just_over(&module(&format!("(func {})", many("nop ", 30))), 32, |l| {
                &mut l.body_bytes_max
            }),
            "the component has 32 or more bytes in one function; the limit is 31".into(),
        ),
        (
            just_over(&module("(func (local i32 i32 i64))"), 3, |l| &mut l.locals_max),
            "the component has 3 or more locals in one function; the limit is 2".into(),
        ),
        (
            just_over(&module("(func block loop i32.const 0 if end end end)"), 3, |l| {
                &mut l.block_depth_max
            }),
            "the component has 3 or more levels of blocks in one function; the limit is 2".into(),
        ),
        (
            just_over(&module("(func i32.const 0 br_table 0 0 0 0)"), 3, |l| {
                &mut l.branch_targets_max
            }),
            "the component has 3 or more targets in one `br_table`; the limit is 2".into(),
        ),
        (
            just_over(&module("(func $f (param i32 i32) unreachable call $f)"), 4, |l| {
                &mut l.body_operands_max
            }),
            "the component has 4 or more operands of calls and branches in one function; the \
             limit is 3"
                .into(),
        ),
        (
            just_over(&module("(func (param i32)) (func (param i32))"), 2, |l| &mut l.operands_max),
            "the component has 2 or more operands of calls and branches; the limit is 1".into(),
        ),
        (
            just_over(&module(&many("(global i32 (i32.const 0))", 2)), 2, |l| &mut l.globals_max),
            "the component has 2 or more globals; the limit is 1".into(),
        ),
        (
            just_over(&run("(memory 3)"), 196_608, |l| &mut l.memory_bytes_max),
            "the component has 196608 or more bytes of initial memory; the limit is 196607".into(),
        ),
        (
            just_over(&run("(table 1 funcref) (table 1 funcref)"), 2, |l| &mut l.tables_max),
            "the component has 2 or more tables; the limit is 1".into(),
        ),
        (
            just_over(&run("(table 2 funcref) (table 3 funcref)"), 5, |l| {
                &mut l.table_elements_max
            }),
            "the component has 5 or more initial table elements; the limit is 4".into(),
        ),
        (
            just_over(&module("(data \"a\") (data \"b\")"), 2, |l| &mut l.data_segments_max),
            "the component has 2 or more data segments; the limit is 1".into(),
        ),
        (
            just_over(&module("(func) (elem func 0) (elem func 0 0)"), 2, |l| {
                &mut l.element_segments_max
            }),
            "the component has 2 or more element segments; the limit is 1".into(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(text, expected);
    }
    assert_eq!(
        just_over(&module("(func) (elem func 0) (elem funcref (ref.func 0))"), 2, |l| {
            &mut l.segment_elements_max
        }),
        "the component has 2 or more functions in element segments; the limit is 1"
    );
    // Four memories: two instances of a component with one module that is instantiated twice.
    let nested = "(component (component $c (core module $m (memory 0))
        (core instance (instantiate $m)) (core instance (instantiate $m)))
        (instance (instantiate $c)) (instance (instantiate $c)))";
    assert_eq!(
        just_over(nested, 4, |l| &mut l.memories_max),
        "the component has 4 or more memories; the limit is 3"
    );
}

#[test]
fn components_and_modules_are_not_values() {
    let component = "the component imports, exports or passes on a component; link it into one \
        component before loading it";
    let module = component.replace("a component;", "a core module;");
    let cases = [
        ("(component (import \"a\" (component)))", component),
        ("(component (component $c) (export \"a\" (component $c)))", component),
        ("(component (component $c) (instance (export \"a\" (component $c))))", component),
        ("(component (import \"a\" (core module)))", &module),
        ("(component (core module $m) (export \"a\" (core module $m)))", &module),
        (
            "(component (import \"a\" (instance $i (export \"m\" (core module)))) (alias export \
             $i \"m\" (core module)))",
            &module,
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(refusal(&bytes(text)), expected, "{text}");
    }
}

#[test]
fn proposals_that_are_off_are_named() {
    let module = |items: &str| bytes(&format!("(component (core module {items}))"));
    let cases = [
        ("(memory i64 1)", "memory64 must be enabled for 64-bit memories (at byte 21)"),
        ("(func return_call 0)", "tail calls support is not enabled (at byte 33)"),
    ];
    let start = "the component needs a WebAssembly proposal that is switched off: ";
    for (items, expected) in cases {
        assert_eq!(refusal(&module(items)).strip_prefix(start), Some(expected), "{items}");
    }
    for items in ["(memory 1) (memory 1)", "(func (param externref))", "(type (struct))"] {
        assert!(screen(&module(items), &ScreenLimits::default()).is_err(), "{items}");
    }
    let everything = ScreenLimits { features: WasmFeatures::all(), ..ScreenLimits::default() };
    assert_eq!(screen(&module("(memory i64 1)"), &everything).map(|_| ()), Ok(()));
}

#[test]
fn exceptions_and_atomic_instructions_pass_and_shared_memories_never_do() {
    let module = |items: &str| bytes(&format!("(component (core module {items}))"));
    let throws = "(tag $t (param i32)) (func (block (result i32)
                  (try_table (catch $t 0) (throw $t (i32.const 1))) (i32.const 2)) drop)";
    let atomic = "(memory 1) (func (drop (i32.atomic.load (i32.const 1))))";
    for items in [throws, atomic] {
        assert_eq!(screen(&module(items), &ScreenLimits::default()).map(|_| ()), Ok(()), "{items}");
    }
    let everything = ScreenLimits { features: WasmFeatures::all(), ..ScreenLimits::default() };
    for items in ["(memory 1 1 shared)", "(import \"a\" \"m\" (memory 1 1 shared))"] {
        for limits in [&ScreenLimits::default(), &everything] {
            let screened = screen(&module(items), limits).map(|_| ());
            assert_eq!(screened, Err(ScreenError::SharedMemory), "{items}");
        }
    }
}

#[test]
fn what_the_validator_says_cannot_drive_a_terminal() {
    let error = ScreenError::from(
        wasmparser::Validator::new()
            .validate_all(&bytes("(component (import \"a\\1b[31m\\u{202e}b\" (func)))"))
            .map(|_| ())
            .unwrap_err(),
    );
    assert_eq!(
        error.to_string(),
        concat!(
            r"not a valid component: import name `a\u{1b}[31m\u{202e}b` is not a valid extern name: ",
            r"`a\u{1b}[31m\u{202e}b` is not in kebab case (at byte 18)"
        )
    );
    let long = bytes(&format!("(component (import \"{}!\" (func)))", "a".repeat(50_000)));
    assert!(refusal(&long).chars().count() < 300);
}

#[test]
fn a_nested_section_must_have_its_own_header() {
    let component = b"\0asm\x0d\0\x01\0";
    let bytes = [&component[..], &[1, 8], component].concat();
    assert_eq!(
        refusal(&bytes),
        "not a valid component: the header of a nested section is not of the section's kind (at \
         byte 10)"
    );
    let bytes = [&component[..], &[4, 8], b"\0asm\x01\0\0\0"].concat();
    assert!(refusal(&bytes).contains("not of the section's kind"));
}

#[test]
fn a_failure_of_the_validator_is_a_refusal() {
    assert_eq!(
        ScreenError::ValidatorFailed.to_string(),
        "not a valid component: the validator gave up on it"
    );
}

#[test]
fn custom_sections_are_not_looked_into() {
    let mut component = bytes(SMALL);
    for name in ["name", "component-name", "component-type", "\u{202e}"] {
        let contents =
            [&[name.len() as u8][..], name.as_bytes(), &[0xff, 0x80, 0, 0x7f, 0xff]].concat();
        component.extend([&[0, contents.len() as u8][..], &contents].concat());
    }
    assert!(screen(&component, &ScreenLimits::default()).is_ok());
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(screen(&bytes, &ScreenLimits::default()).is_err());
    }

    #[test]
    fn random_sections_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let component = [&b"\0asm\x0d\0\x01\0"[..], &bytes].concat();
        let _ = screen(&component, &ScreenLimits::default());
    }

    #[test]
    fn random_section_contents_do_not_panic(id in 1_u8..12, bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        let component = [&b"\0asm\x0d\0\x01\0"[..], &[id, bytes.len() as u8], &bytes].concat();
        let _ = screen(&component, &ScreenLimits::default());
    }

    #[test]
    fn changed_bytes_do_not_panic(changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6)) {
        let mut component = bytes(SMALL);
        for (index, byte) in changes {
            let index = index.index(component.len());
            component[index] = byte;
        }
        let _ = screen(&component, &ScreenLimits::default());
    }
}
