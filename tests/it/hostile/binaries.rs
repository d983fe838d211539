//! Files that are not components, or almost are.

use cofferdam_engine::Component;
use cofferdam_tests::guest;

use super::{Arena, End, Ended, Launch, attacks};
use crate::module::Module;

const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";

attacks! {
    /// An empty file.
    an_empty_file: Launch::Bytes(Vec::new) => End::Refused("the file is empty"),
    /// A header without sections.
    a_header_alone: Launch::Bytes(|| HEADER.to_vec()) => End::Refused("exports neither"),
    /// Another magic number.
    a_wrong_magic_number: Launch::Bytes(|| [b"\0asn", &HEADER[4..]].concat())
        => End::Refused("not a WebAssembly file"),
    /// A version that does not exist yet.
    a_version_from_the_future: Launch::Bytes(|| b"\0asm\x0e\0\x01\0".to_vec())
        => End::Refused("unknown WebAssembly version"),
    /// A core module, which declares no types to check.
    a_core_module: Launch::Bytes(|| wat::parse_str("(module)").unwrap()) => End::Refused("core module"),
    /// The text format, which some engines accept.
    the_text_format: Launch::Bytes(|| b"(component (core module))".to_vec())
        => End::Refused("text; turn the text format"),
    /// An ELF file, the format of compiled code: loading it would run it.
    an_elf_file: Launch::Bytes(|| std::fs::read("/proc/self/exe").unwrap()[..100_000].to_vec())
        => End::Refused("which is never loaded from outside"),
    /// An archive, for a reader that unpacks it.
    an_archive: Launch::Bytes(|| b"PK\x03\x04 and some more".to_vec()) => End::Refused("archive"),
    /// A file that is mostly holes.
    a_file_of_zeros: Launch::Bytes(|| vec![0; 1_000_000]) => End::Refused("zero bytes"),
    /// More bytes than a component may have.
    a_file_that_is_too_large: Launch::Bytes(|| [HEADER, &[0; 64 << 20]].concat())
        => End::Refused("a component may have"),
    /// A section that announces 4 GiB.
    a_section_of_four_gibibytes: Launch::Bytes(|| [HEADER, &[7, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]].concat())
        => End::Refused("cut off"),
    /// A length of ten bytes where five are the maximum.
    a_length_that_does_not_end: Launch::Bytes(|| [HEADER, &[7], &[0x80; 10], &[0]].concat())
        => End::Refused("not a valid component"),
    /// A count of 4 billion in a section of five bytes.
    a_count_that_is_a_lie: Launch::Bytes(|| [HEADER, &[7, 5, 0xff, 0xff, 0xff, 0xff, 0x0f]].concat())
        => End::Refused("the component has"),
    /// A section of an unknown kind.
    a_section_of_no_kind: Launch::Bytes(|| [HEADER, &[0x3f, 0]].concat())
        => End::Refused("not a valid component"),
    /// Two million empty sections.
    millions_of_empty_sections: Launch::Bytes(|| [HEADER, &[0, 1, 0].repeat(2_000_000)].concat())
        => End::Refused("sections; the limit is 20000"),
    /// Deeply nested components.
    two_hundred_levels: Launch::Bytes(nested) => End::Refused("levels of nested components"),
    /// A component that imports a module to run.
    a_module_as_a_value: Launch::Text(|| r#"(component (import "m" (core module)))"#.to_owned())
        => End::Refused("a core module; link it into one component"),
    /// An import with a very long name.
    an_import_of_a_hundred_thousand_characters: Launch::Text(|| {
        format!(r#"(component (import "a:b/{}" (instance (export "f" (func)))))"#, "c".repeat(90_000))
    }) => End::Refused("does not offer"),
    /// An import of a known interface in an unknown version.
    an_import_of_another_version: Launch::Text(|| {
        r#"(component (import "cofferdam:plugin/call@0.2.0" (instance (export "f" (func)))))"#.to_owned()
    }) => End::Refused("does not offer"),
    /// An import of a known function with another type.
    an_import_of_another_type: Launch::Text(|| r#"(component
        (import "cofferdam:plugin/call@0.1.0" (instance (export "id" (func (param "x" u64)))))
        (core module $m (func (export "f")))
        (core instance $i (instantiate $m))
        (func (export "f") (canon lift (core func $i "f"))))"#.to_owned())
        => End::Refused("does not fit the plugin interface"),
    /// A component that is cut off, at any position.
    cut_off_anywhere: Launch::Steps(|arena| Box::pin(cut_off(arena))) => End::AsExpected,
    /// A component with one flipped bit, at many positions.
    bits_that_are_flipped: Launch::Steps(|arena| Box::pin(flipped(arena))) => End::AsExpected,
    /// A directory, a pipe and an endless device instead of a file.
    what_is_no_file: Launch::Steps(|arena| Box::pin(no_files(arena))) => End::AsExpected,
    /// A component with a pipe beside it instead of its manifest.
    a_pipe_beside_a_component: Launch::Steps(|arena| Box::pin(async move {
        let path = arena.folder().join("plugin.wasm");
        std::fs::write(&path, wat::parse_str(TYPED).unwrap()).unwrap();
        make_fifo(&path.with_extension("toml"));
        let error = arena.load(&Component::from_file_ambient(path)).await.err();
        Ended::Refused(error.expect("it is refused").to_string())
    })) => End::Refused("manifest beside it that is not a regular file"),
}

/// A component whose function is a tool, so that a manifest beside it is read.
const TYPED: &str = r#"(component
    (core module $m (func (export "f") (result i32) (i32.const 1)))
    (core instance $i (instantiate $m))
    (func (export "f") (result u32) (canon lift (core func $i "f"))))"#;

fn nested() -> Vec<u8> {
    let mut nested = HEADER.to_vec();
    for _ in 0..200 {
        let mut section = vec![4];
        let mut length = nested.len();
        while length >= 0x80 {
            section.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        section.push(length as u8);
        nested = [HEADER, &section, &nested].concat();
    }
    nested
}

async fn cut_off(arena: &mut Arena) -> Ended {
    let whole = std::fs::read(guest("list_empty")).unwrap();
    for end in (0..whole.len()).step_by(whole.len() / 40) {
        let cut = Component::from_bytes(whole[..end].to_vec());
        assert!(arena.load(&cut).await.is_err(), "cut at {end} of {} bytes", whole.len());
    }
    Ended::AsExpected
}

/// A flipped bit makes the bytes invalid or another program: both are fine if loading and the call
/// end.
async fn flipped(arena: &mut Arena) -> Ended {
    let whole = Module::default().component();
    arena.host.limits.wall_ms_max = 1_000;
    let (mut refused, mut ran) = (0, 0);
    for index in 0..48 {
        let mut bytes = whole.clone();
        let at = index * whole.len() / 48;
        bytes[at] ^= 1 << (index % 8);
        match arena.run_any(bytes).await {
            Ended::Refused(_) => refused += 1,
            _ => ran += 1,
        }
    }
    assert!(refused > 10, "{refused} were refused, {ran} ran");
    Ended::AsExpected
}

async fn no_files(arena: &mut Arena) -> Ended {
    let pipe = arena.folder().join("pipe.wasm");
    make_fifo(&pipe);
    for path in [pipe.as_path(), arena.folder(), "/dev/zero".as_ref(), "/dev/random".as_ref()] {
        let error =
            arena.load(&Component::from_file_ambient(path)).await.expect_err("it is refused");
        assert_eq!(error.to_string(), "is not a regular file", "{}", path.display());
    }
    Ended::AsExpected
}

/// Makes a named pipe.
pub(super) fn make_fifo(path: &std::path::Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}
