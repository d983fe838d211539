//! Sections of components and core modules, found by their headers only.

use wasm_encoder::{CustomSection, Section as _};
use wasmparser::{BinaryReader, Data, DataKind, Operator};

/// Length of the magic number, the version and the layer.
pub(crate) const HEADER_BYTES: usize = 8;
/// Id of a custom section, in components and in core modules.
pub(crate) const CUSTOM: u8 = 0;
/// First bytes of components and core modules.
const MAGIC: [u8; 4] = *b"\0asm";
/// Ids of sections of a component that contain nested binaries. In a core module, the same ids mean
/// types and tables.
const CORE_MODULE: u8 = 1;
const COMPONENT: u8 = 4;
/// Maximum depth of nested components that is looked into. Toolchains nest less deeply.
pub(crate) const DEPTH_MAX: u32 = 16;

/// Kind of a binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinaryLayer {
    /// A component.
    Component,
    /// A core module.
    Core,
}

impl BinaryLayer {
    /// Returns the kind of a binary, or `None` for other bytes.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<4>()?;
        match (*magic == MAGIC, rest) {
            (true, [_, _, 0, 0, ..]) => Some(Self::Core),
            (true, [_, _, 1, 0, ..]) => Some(Self::Component),
            _ => None,
        }
    }

    /// Returns whether the sections with this id contain binaries.
    pub(crate) fn nests_in(self, id: u8) -> bool {
        self == Self::Component && matches!(id, CORE_MODULE | COMPONENT)
    }
}

/// Returns the sections of a binary with their ids, or `None` if one is longer than the bytes.
pub(crate) fn sections(bytes: &[u8]) -> Option<Vec<(u8, &[u8])>> {
    let mut reader = BinaryReader::new(bytes.get(HEADER_BYTES..)?, HEADER_BYTES);
    let mut sections = Vec::new();
    while !reader.eof() {
        let id = reader.read_u8().ok()?;
        let length = usize::try_from(reader.read_var_u32().ok()?).ok()?;
        sections.push((id, reader.read_bytes(length).ok()?));
    }
    Some(sections)
}

/// Returns the constant address of an active data segment, or `None` for other segments.
pub(crate) fn address(segment: &Data<'_>) -> Option<u32> {
    let DataKind::Active { memory_index: 0, offset_expr } = &segment.kind else { return None };
    match offset_expr.get_operators_reader().read() {
        Ok(Operator::I32Const { value }) => Some(value.cast_unsigned()),
        _ => None,
    }
}

/// Returns the name of a custom section.
pub(crate) fn custom_name(section: &[u8]) -> &str {
    BinaryReader::new(section, 0).read_string().unwrap_or_default()
}

/// Returns whether a binary, or one nested in it, has a custom section with this name.
pub(crate) fn has_custom(bytes: &[u8], name: &str) -> bool {
    has_custom_below(bytes, name, 0)
}

fn has_custom_below(bytes: &[u8], name: &str, depth: u32) -> bool {
    let (Some(layer), Some(sections)) = (BinaryLayer::of(bytes), sections(bytes)) else {
        return false;
    };
    sections.into_iter().any(|(id, section)| match id {
        CUSTOM => custom_name(section) == name,
        id => {
            let is_nested = layer.nests_in(id) && depth < DEPTH_MAX;
            is_nested && has_custom_below(section, name, depth + 1)
        }
    })
}

/// Appends a custom section to a binary.
pub(crate) fn append_custom(binary: &mut Vec<u8>, name: &str, data: &[u8]) {
    CustomSection { name: name.into(), data: data.into() }.append_to(binary);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_sections_are_appended_and_found_at_every_depth() {
        let mut module = b"\0asm\x01\0\0\0".to_vec();
        append_custom(&mut module, ".dep-v0", &[7; 300]);
        assert!(has_custom(&module, ".dep-v0") && !has_custom(&module, ".dep"));
        let nest = |id: u8, inner: &[u8]| {
            let mut outer = b"\0asm\x0d\0\x01\0".to_vec();
            wasm_encoder::RawSection { id, data: inner }.append_to(&mut outer);
            outer
        };
        let component = nest(4, &nest(1, &module));
        assert!(has_custom(&component, ".dep-v0"));
        for cut in 0..component.len() {
            assert!(!has_custom(component.get(..cut).unwrap(), ".dep-v0"), "{cut}");
        }
    }
}
