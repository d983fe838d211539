//! Removes sections from a component that are not needed to run it.

use wasm_encoder::{RawSection, Section};

use crate::sections::{BinaryLayer, CUSTOM, DEPTH_MAX, HEADER_BYTES, custom_name, sections};

/// Returns a component without its debugging sections and, unless `keep_names`, without function
/// names. Returns `None` if the bytes are not a component.
pub(crate) fn strip(component: &[u8], keep_names: bool) -> Option<Vec<u8>> {
    (BinaryLayer::of(component)? == BinaryLayer::Component).then_some(())?;
    stripped(component, keep_names, 0)
}

fn stripped(bytes: &[u8], keep_names: bool, depth: u32) -> Option<Vec<u8>> {
    let layer = BinaryLayer::of(bytes)?;
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(bytes.get(..HEADER_BYTES)?);
    for (id, section) in sections(bytes)? {
        match id {
            CUSTOM if is_for_debugging(section, keep_names) => {}
            id if layer.nests_in(id) && depth < DEPTH_MAX => {
                let data = stripped(section, keep_names, depth + 1)?;
                RawSection { id, data: &data }.append_to(&mut out);
            }
            _ => RawSection { id, data: section }.append_to(&mut out),
        }
    }
    Some(out)
}

/// Returns whether a custom section is only for debugging, by its name. Sections that the host
/// reads (`cofferdam:manifest`, `package-docs`), the dependency data (`.dep-v0`) and the list of
/// tools that made the component stay.
fn is_for_debugging(section: &[u8], keep_names: bool) -> bool {
    let name = custom_name(section);
    match name {
        "name" | "component-name" => !keep_names,
        "sourceMappingURL" | "external_debug_info" | "linking" => true,
        _ => name.starts_with(".debug") || name.starts_with("reloc."),
    }
}

#[cfg(test)]
mod tests {
    use wasm_encoder::{RawSection, Section};

    use super::strip;

    fn custom(name: &str, content: &[u8]) -> Vec<u8> {
        let name_length = u8::try_from(name.len()).unwrap();
        let length = u8::try_from(1 + name.len() + content.len()).unwrap();
        [&[0, length, name_length], name.as_bytes(), content].concat()
    }

    fn module(sections: &[Vec<u8>]) -> Vec<u8> {
        [b"\0asm\x01\0\0\0".as_slice(), &sections.concat()].concat()
    }

    fn component(sections: &[Vec<u8>]) -> Vec<u8> {
        [b"\0asm\x0d\0\x01\0".as_slice(), &sections.concat()].concat()
    }

    fn nested(id: u8, inner: &[u8]) -> Vec<u8> {
        let mut section = Vec::new();
        RawSection { id, data: inner }.append_to(&mut section);
        section
    }

    #[test]
    fn names_and_debugging_sections_go_at_every_depth_and_the_rest_stays() {
        let retained = [
            custom("cofferdam:manifest", b"x"),
            [custom("producers", b"y"), custom(".dep-v0", b"z")].concat(),
        ];
        let gone = [custom("name", b"n"), custom(".debug_info", b"d"), custom("linking", b"l")];
        let with = |more: &[Vec<u8>]| {
            let inner = module(&[&retained[..], more].concat());
            let middle = component(&[nested(1, &inner), retained[0].clone()]);
            component(&[nested(4, &middle), more.concat(), retained[1].clone()])
        };
        assert_eq!(strip(&with(&gone), false).unwrap(), with(&[]));
        assert_eq!(strip(&with(&gone), true).unwrap(), with(&[custom("name", b"n")]));
        assert_eq!(strip(&with(&[]), false).unwrap(), with(&[]));
    }

    /// In a core module, sections 1 and 4 are types and tables.
    #[test]
    fn sections_of_modules_are_not_taken_for_components() {
        let types = nested(1, b"\0asm not a module");
        let whole = component(&[nested(1, &module(&[types]))]);
        assert_eq!(strip(&whole, false).unwrap(), whole);
    }

    #[test]
    fn what_is_no_component_is_refused() {
        for bytes in
            [&b""[..], b"\0asm", b"\0asm\x01\0\0\0", b"MZ", b"\0asm\x0d\0\x01\0\x01\xff\xff"]
        {
            assert_eq!(strip(bytes, false), None, "{bytes:?}");
        }
        // A section that is longer than the rest of the bytes.
        assert_eq!(strip(&component(&[vec![0, 9, 1]]), false), None);
        // A component nested beyond the limit stays unchanged.
        let mut deep = component(&[]);
        for _ in 0..17 {
            deep = component(&[nested(4, &deep)]);
        }
        assert_eq!(strip(&deep, false).unwrap(), deep);
    }
}
