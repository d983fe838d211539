//! Merges the data segments of a module.

use std::borrow::Cow;

use wasm_encoder::{ConstExpr, DataCountSection, DataSection, RawSection, Section as _};
use wasmparser::{BinaryReader, DataKind, DataSectionReader};

use crate::sections::{HEADER_BYTES, address, sections};

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
/// passive segments that Wizer leaves. Returns `None` if a segment has another form than in Go's
/// modules.
pub(super) fn merge(module: &[u8]) -> Option<Vec<u8>> {
    let sections = sections(module)?;
    let mut segments = Vec::new();
    for &(_, data) in sections.iter().filter(|(id, _)| *id == DATA) {
        for segment in DataSectionReader::new(BinaryReader::new(data, 0)).ok()? {
            let segment = segment.ok()?;
            if matches!(segment.kind, DataKind::Passive) && segment.data.is_empty() {
                continue;
            }
            let data = Cow::Borrowed(segment.data);
            segments.push(Segment { address: address(&segment)?, data });
        }
    }
    let segments = joined(segments)?;
    let mut output = module.get(..HEADER_BYTES)?.to_vec();
    for (id, data) in sections {
        match id {
            DATA => section(&segments).append_to(&mut output),
            DATA_COUNT => {
                let count = u32::try_from(segments.len()).ok()?;
                DataCountSection { count }.append_to(&mut output);
            }
            id => RawSection { id, data }.append_to(&mut output),
        }
    }
    Some(output)
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

    /// Returns the data segments of a module after merging, or `None` if it stays as it is.
    fn merged(segments: &str) -> Option<Vec<(u32, Vec<u8>)>> {
        let module = wat::parse_str(format!("(module (memory 1) {segments})")).unwrap();
        let merged = merge(&module)?;
        wasmparser::Validator::new().validate_all(&merged).unwrap();
        let sections = sections(&merged).unwrap();
        let (_, data) = sections.iter().find(|(id, _)| *id == DATA).unwrap();
        let segments = DataSectionReader::new(BinaryReader::new(data, 0)).unwrap();
        let segments = segments.into_iter().map(Result::unwrap);
        Some(segments.map(|segment| (address(&segment).unwrap(), segment.data.to_vec())).collect())
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
