//! Merges the data segments of a module.

use std::borrow::Cow;

use wasm_encoder::{ConstExpr, DataCountSection, DataSection, RawSection, Section as _};
use wasmparser::{BinaryReaderError, DataKind, Operator, Parser, Payload};

/// Maximum gap between two segments that become one, in bytes. It is filled with zeros.
const GAP_MAX: u64 = 256;
/// Ids of sections.
const DATA: u8 = 11;
const DATA_COUNT: u8 = 12;

/// A piece of the memory of a module.
struct Segment<'a> {
    address: u32,
    data: Cow<'a, [u8]>,
}

impl Segment<'_> {
    fn end(&self) -> u64 {
        u64::from(self.address) + self.data.len() as u64
    }
}

/// Returns a module with fewer and longer data segments for the same memory, and without the empty
/// passive segments that Wizer leaves.
///
/// Returns the module unchanged if a segment has another form than in Go's modules.
pub(super) fn merge(module: &[u8]) -> Result<Vec<u8>, BinaryReaderError> {
    let mut segments = Vec::new();
    let mut sections = Vec::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload?;
        if let Payload::DataSection(data) = &payload {
            for segment in data.clone() {
                let segment = segment?;
                match &segment.kind {
                    DataKind::Passive if segment.data.is_empty() => {}
                    DataKind::Active { memory_index: 0, offset_expr }
                        if let Operator::I32Const { value } =
                            offset_expr.get_operators_reader().read()? =>
                    {
                        let data = Cow::Borrowed(segment.data);
                        segments.push(Segment { address: value.cast_unsigned(), data });
                    }
                    _ => return Ok(module.to_vec()),
                }
            }
        }
        if let Some((id, range)) = payload.as_section() {
            sections.push((id, module.get(range).unwrap_or_default()));
        }
    }
    let Some(segments) = joined(segments) else { return Ok(module.to_vec()) };
    let mut output = module.get(..8).unwrap_or_default().to_vec();
    for (id, data) in sections {
        match id {
            DATA => section(&segments).append_to(&mut output),
            DATA_COUNT => {
                let count = u32::try_from(segments.len()).unwrap_or(u32::MAX);
                DataCountSection { count }.append_to(&mut output);
            }
            id => RawSection { id, data }.append_to(&mut output),
        }
    }
    Ok(output)
}

/// Joins segments that are close to each other. Returns `None` if some overlap, because their order
/// matters then.
fn joined(mut segments: Vec<Segment<'_>>) -> Option<Vec<Segment<'_>>> {
    segments.sort_by_key(|segment| segment.address);
    let mut joined = Vec::<Segment<'_>>::new();
    for segment in segments {
        match joined.last_mut() {
            Some(last) => {
                let gap = u64::from(segment.address).checked_sub(last.end())?;
                if gap > GAP_MAX {
                    joined.push(segment);
                    continue;
                }
                let data = last.data.to_mut();
                data.resize(data.len() + usize::try_from(gap).ok()?, 0);
                data.extend(segment.data.iter());
            }
            None => joined.push(segment),
        }
    }
    Some(joined)
}

fn section(segments: &[Segment<'_>]) -> DataSection {
    let mut section = DataSection::new();
    for segment in segments {
        let address = ConstExpr::i32_const(segment.address.cast_signed());
        section.active(0, &address, segment.data.iter().copied());
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the data segments of a module after merging, or `None` if it is unchanged.
    fn merged(segments: &str) -> Option<Vec<(i32, Vec<u8>)>> {
        let module = wat::parse_str(format!("(module (memory 1) {segments})")).unwrap();
        let merged = merge(&module).unwrap();
        wasmparser::Validator::new().validate_all(&merged).unwrap();
        let mut found = Vec::new();
        for payload in Parser::new(0).parse_all(&merged) {
            let Payload::DataSection(data) = payload.unwrap() else { continue };
            for segment in data {
                let segment = segment.unwrap();
                if let DataKind::Active { offset_expr, .. } = &segment.kind
                    && let Ok(Operator::I32Const { value }) =
                        offset_expr.get_operators_reader().read()
                {
                    found.push((value, segment.data.to_vec()));
                }
            }
        }
        (merged != module).then_some(found)
    }

    #[test]
    fn segments_close_to_each_other_become_one() {
        let segments = r#"(data (i32.const 9000) "c") (data (i32.const 10) "a") (data "") (data (i32.const 13) "b")"#;
        assert_eq!(merged(segments).unwrap(), [(10, b"a\0\0b".to_vec()), (9000, b"c".to_vec())]);
    }

    #[test]
    fn modules_of_another_form_stay_as_they_are() {
        for segments in [
            r#"(data (i32.const 10) "abc") (data (i32.const 12) "d")"#,
            r#"(data (i32.const 10) "a") (data (i32.const 12) "b") (data "c")"#,
            r#"(global $at i32 (i32.const 5)) (data (i32.const 10) "a") (data (global.get $at) "b")"#,
        ] {
            assert_eq!(merged(segments), None, "{segments}");
        }
    }
}
