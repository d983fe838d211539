//! Rules for one segment of a path.

use std::sync::LazyLock;

use regex::Regex;

use super::{NameRules, RESERVED_PREFIX, SegmentRefusal};

/// Maximum length of a name on common file systems, in bytes.
const SEGMENT_BYTES_MAX: usize = 255;

/// Names for which Windows opens a device, in any directory, with any extension.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
/// Names for which Windows opens a device if they are followed by a digit.
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];
/// Digits that Windows accepts there, which include the superscripts of Latin-1.
const DEVICE_DIGITS: [char; 12] = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '¹', '²', '³'];

/// Characters that names cannot have on this system. Elsewhere they are allowed, because names of
/// existing files have them.
const SYSTEM_CHARACTERS: &[char] =
    if cfg!(windows) { &['?', '*', '<', '>', '|', '"'] } else { &[] };

/// Returns the first rule of `FILE-6` that `segment` breaks.
pub(super) fn refusal(segment: &str) -> Option<SegmentRefusal> {
    if segment.ends_with(['.', ' ']) {
        Some(SegmentRefusal::TrailingDotOrSpace)
    } else if is_device(segment) {
        Some(SegmentRefusal::Device(segment.to_owned()))
    } else if segment.len() > SEGMENT_BYTES_MAX {
        Some(SegmentRefusal::TooLong)
    } else if segment.starts_with(RESERVED_PREFIX) {
        Some(SegmentRefusal::Reserved(segment.to_owned()))
    } else {
        let character = segment.chars().find(|character| SYSTEM_CHARACTERS.contains(character));
        character.map(SegmentRefusal::SystemCharacter)
    }
}

/// Returns whether the string starts with one letter and a colon (`FILE-3`).
///
/// If names may contain a colon, only a segment that consists of a letter and a colon counts. If
/// the regular expression did not compile, `FILE-5` would still refuse the colon.
pub(super) fn is_drive_root(text: &str, rules: NameRules) -> bool {
    let first = text.split(super::is_separator).next().unwrap_or_default();
    if rules.allows_colon() && !first.ends_with(':') {
        return false;
    }
    static LETTER_AND_COLON: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\A\p{L}:").ok());
    LETTER_AND_COLON.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// Returns whether Windows takes the name for a device. Windows only looks at the part before the
/// first dot and ignores spaces at the end of that part.
pub(crate) fn is_device(segment: &str) -> bool {
    let stem =
        segment.split('.').next().unwrap_or_default().trim_end_matches(' ').to_ascii_lowercase();
    let is_numbered = |device: &&str| stem.strip_prefix(*device).is_some_and(is_one_device_digit);
    DEVICES.contains(&stem.as_str()) || NUMBERED_DEVICES.iter().any(is_numbered)
}

fn is_one_device_digit(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| DEVICE_DIGITS.contains(&c)) && chars.next().is_none()
}
