//! First check: whether the file is a complete component.

use super::error::{FileKind, Quantity, ScreenError};

const MAGIC: &[u8] = b"\0asm";
/// Length of magic, version and layer.
const HEADER_BYTES: u64 = 8;
/// Maximum number of bytes of an unknown file that are read to determine its kind.
const LOOK_BYTES: usize = 512;

/// Rejects files that are not a component by their header, that are too long, or that end before
/// their last section does.
pub(super) fn check(bytes: &[u8], bytes_max: u64) -> Result<(), ScreenError> {
    let length = bytes.len() as u64;
    check_header(bytes)?;
    if length > bytes_max {
        let quantity = Quantity::ComponentBytes;
        return Err(ScreenError::OverLimit { quantity, found: length, limit: bytes_max });
    }
    let announced = announced_bytes(bytes);
    if announced > length {
        return Err(ScreenError::Truncated { length, announced });
    }
    Ok(())
}

fn check_header(bytes: &[u8]) -> Result<(), ScreenError> {
    match bytes {
        [] => Err(ScreenError::Empty),
        [0, b'a', b's', b'm', 13, 0, 1, 0, ..] => Ok(()),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => Err(ScreenError::CoreModule),
        [0, b'a', b's', b'm', v0, v1, l0, l1, ..] => Err(ScreenError::UnknownVersion {
            version: u16::from_le_bytes([*v0, *v1]),
            layer: u16::from_le_bytes([*l0, *l1]),
        }),
        short if short.starts_with(MAGIC) || MAGIC.starts_with(short) => {
            Err(ScreenError::Truncated { length: short.len() as u64, announced: HEADER_BYTES })
        }
        other => Err(ScreenError::NotWasm { kind: file_kind(other) }),
    }
}

/// Determines the kind of bytes that are not WebAssembly.
fn file_kind(bytes: &[u8]) -> FileKind {
    let start = bytes.get(..LOOK_BYTES).unwrap_or(bytes);
    match start {
        [0x7f, b'E', b'L', b'F', ..] => FileKind::Elf,
        [b'P', b'K', 3, 4, ..] | [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            FileKind::Archive
        }
        tar if tar.get(257..262) == Some(b"ustar") => FileKind::Archive,
        zeros if zeros.iter().all(|byte| *byte == 0) => FileKind::Zeros,
        text if is_text(text) => FileKind::Text,
        _ => FileKind::Unknown,
    }
}

/// Returns true if `start` is UTF-8 without control characters, except for a character that is cut
/// off at the end.
fn is_text(start: &[u8]) -> bool {
    let text = match std::str::from_utf8(start) {
        Ok(text) => text,
        Err(error) if error.error_len().is_some() => return false,
        Err(error) => match start.get(..error.valid_up_to()).map(std::str::from_utf8) {
            Some(Ok(text)) => text,
            _ => return false,
        },
    };
    !text.is_empty() && !text.chars().any(|c| c.is_control() && !c.is_whitespace())
}

/// Returns the length of the file according to its headers: the end of the last top-level section
/// with a complete header.
///
/// An invalid header ends the search; the parser reports the error.
fn announced_bytes(bytes: &[u8]) -> u64 {
    let length = bytes.len() as u64;
    let mut end = HEADER_BYTES;
    while end < length {
        match section_end(bytes, end) {
            Some(next) => end = next,
            None => return length,
        }
    }
    end
}

/// Returns the end of the section that starts at `start`; one past the file if its header is cut
/// off, `None` if it is invalid.
fn section_end(bytes: &[u8], start: u64) -> Option<u64> {
    let header = bytes.get(usize::try_from(start).ok()?..)?;
    let mut size = 0_u64;
    for (index, shift) in (1_usize..=5).zip((0_u32..).step_by(7)) {
        let Some(byte) = header.get(index) else {
            return Some(bytes.len() as u64 + 1);
        };
        size |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(start + 1 + index as u64 + size);
        }
    }
    None
}
