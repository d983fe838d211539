//! Takes out of a component what nobody reads who runs it.

use wasmparser::BinaryReader;

/// Length of magic number, version and layer.
const HEADER_BYTES: usize = 8;
/// What components and core modules begin with.
const MAGIC: [u8; 4] = *b"\0asm";
const CUSTOM: u8 = 0;
/// The ids of what is nested in a component; in a core module they stand for types and functions.
const CORE_MODULE: u8 = 1;
const COMPONENT: u8 = 4;
/// Deepest nesting that a toolchain makes.
const DEPTH_MAX: u32 = 16;

/// A component without its debugging sections, and unless `keep_names` without the names of functions. `None` if the bytes
/// are no component.
pub(crate) fn strip(component: &[u8], keep_names: bool) -> Option<Vec<u8>> {
    (layer(component)? == Layer::Component).then_some(())?;
    stripped(component, keep_names, 0)
}

#[derive(PartialEq, Eq)]
enum Layer {
    Component,
    Core,
}

fn layer(bytes: &[u8]) -> Option<Layer> {
    let (magic, rest) = bytes.split_first_chunk::<4>()?;
    match (*magic == MAGIC, rest) {
        (true, [_, _, 0, 0, ..]) => Some(Layer::Core),
        (true, [_, _, 1, 0, ..]) => Some(Layer::Component),
        _ => None,
    }
}

fn stripped(bytes: &[u8], keep_names: bool, depth: u32) -> Option<Vec<u8>> {
    let is_component = layer(bytes)? == Layer::Component;
    let mut out = Vec::with_capacity(bytes.len());
    out.extend_from_slice(bytes.get(..HEADER_BYTES)?);
    let mut reader = BinaryReader::new(bytes.get(HEADER_BYTES..)?, HEADER_BYTES);
    while !reader.eof() {
        let id = reader.read_u8().ok()?;
        let length = usize::try_from(reader.read_var_u32().ok()?).ok()?;
        let section = reader.read_bytes(length).ok()?;
        match id {
            CUSTOM if is_for_debugging(section, keep_names) => {}
            CORE_MODULE | COMPONENT if is_component && depth < DEPTH_MAX => {
                push(&mut out, id, &stripped(section, keep_names, depth + 1)?)?;
            }
            _ => push(&mut out, id, section)?,
        }
    }
    Some(out)
}

/// By the name of a custom section. Sections that the host reads stay (`cofferdam:manifest`, `package-docs`), and so does the
/// list of tools that made the component.
fn is_for_debugging(section: &[u8], keep_names: bool) -> bool {
    let name = BinaryReader::new(section, 0).read_string().unwrap_or_default();
    match name {
        "name" | "component-name" => !keep_names,
        "sourceMappingURL" | "external_debug_info" | "linking" => true,
        _ => name.starts_with(".debug") || name.starts_with("reloc."),
    }
}

fn push(out: &mut Vec<u8>, id: u8, section: &[u8]) -> Option<()> {
    out.push(id);
    let mut left = u32::try_from(section.len()).ok()?;
    loop {
        // Seven bits at a time, the lowest first.
        let bits = u8::try_from(left & 0x7f).ok()?;
        left >>= 7;
        if left == 0 {
            out.push(bits);
            break;
        }
        out.push(bits | 0x80);
    }
    out.extend_from_slice(section);
    Some(())
}
