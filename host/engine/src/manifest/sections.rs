//! Custom sections of a component, found by section headers only.
//!
//! A custom section cannot make a component invalid, so truncated or unknown content is skipped.

use wasmparser::BinaryReader;

/// Length of magic number, version and layer.
const HEADER_BYTES: usize = 8;
/// Id of a custom section, in components and in core modules.
const CUSTOM: u8 = 0;
/// Id of a core module in a component.
const CORE_MODULE: u8 = 1;

/// Sections of a component or module with their ids, without descending into nested ones.
struct Sections<'a> {
    reader: BinaryReader<'a>,
}

impl<'a> Sections<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            reader: BinaryReader::new(bytes.get(HEADER_BYTES..).unwrap_or_default(), HEADER_BYTES),
        }
    }
}

impl<'a> Iterator for Sections<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.eof() {
            return None;
        }
        let id = self.reader.read_u8().ok()?;
        let length = usize::try_from(self.reader.read_var_u32().ok()?).ok()?;
        Some((id, self.reader.read_bytes(length).ok()?))
    }
}

/// Returns the contents of the custom sections with a name in the outermost component.
pub(crate) fn custom<'a>(component: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    Sections::new(component)
        .filter(|(id, _)| *id == CUSTOM)
        .filter_map(move |(_, section)| named(section, name))
}

/// Like [`custom`], and also those of the core modules in the outermost component, where a linker
/// places sections that a compiler was asked to keep.
pub(crate) fn custom_of_modules<'a>(
    component: &'a [u8],
    name: &str,
) -> impl Iterator<Item = &'a [u8]> {
    let modules = Sections::new(component).filter(|(id, _)| *id == CORE_MODULE);
    custom(component, name).chain(modules.flat_map(move |(_, module)| custom(module, name)))
}

/// Returns the contents of a custom section if it has this name.
fn named<'a>(section: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut reader = BinaryReader::new(section, 0);
    if reader.read_string().ok()? != name {
        return None;
    }
    let left = reader.bytes_remaining();
    reader.read_bytes(left).ok()
}

/// Returns `component` with another custom section at its end.
pub(crate) fn with_custom(component: &[u8], name: &str, contents: &[u8]) -> Vec<u8> {
    let mut section = Vec::new();
    push_length(&mut section, name.len());
    section.extend_from_slice(name.as_bytes());
    section.extend_from_slice(contents);
    let mut bytes = component.to_vec();
    bytes.push(CUSTOM);
    push_length(&mut bytes, section.len());
    bytes.extend(section);
    bytes
}

/// Appends a length as LEB128.
fn push_length(bytes: &mut Vec<u8>, mut length: usize) {
    loop {
        // The lowest seven bits.
        let low = u8::try_from(length & 0x7f).unwrap_or_default();
        length >>= 7;
        if length == 0 {
            bytes.push(low);
            return;
        }
        bytes.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_that_was_added_is_found() {
        let component = wat::parse_str("(component (core module))").unwrap();
        let module = wat::parse_str("(module (@custom \"manifest\" \"inner\"))").unwrap();
        for length in [0, 1, 127, 128, 20_000] {
            let contents = vec![b'x'; length];
            let with = with_custom(&component, "manifest", &contents);
            assert_eq!(custom(&with, "manifest").collect::<Vec<_>>(), [contents.as_slice()]);
            assert_eq!(custom(&with, "other").count(), 0);
            wasmparser::validate(&with).unwrap();
        }
        assert_eq!(custom(&module, "manifest").collect::<Vec<_>>(), [b"inner"]);
        let nested = "(component (core module (@custom \"manifest\" \"inner\")) \
            (@custom \"manifest\" \"outer\"))";
        let nested = wat::parse_str(nested).unwrap();
        let found: Vec<_> = custom_of_modules(&nested, "manifest").collect();
        assert_eq!(found, [b"outer", b"inner"]);
    }

    #[test]
    fn bytes_that_are_cut_off_have_no_more_sections() {
        let component = with_custom(b"\0asm\x0d\0\x01\0", "manifest", b"contents");
        for cut in 0..component.len() {
            assert_eq!(custom_of_modules(&component[..cut], "manifest").count(), 0, "{cut}");
        }
    }
}
