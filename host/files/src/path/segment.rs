//! What one segment of a path may be.

use std::sync::LazyLock;

use regex::Regex;

use super::{NameRules, RESERVED_PREFIX, SegmentRefusal};

/// Longest name that the common file systems hold, in bytes.
const SEGMENT_BYTES_MAX: usize = 255;

/// Windows opens a device for these names, in any directory, with any extension.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "conin$", "conout$"];
/// The same for these followed by a digit.
const NUMBERED_DEVICES: [&str; 2] = ["com", "lpt"];
/// The digits that Windows accepts there. It takes the superscripts of Latin-1 for digits.
const DEVICE_DIGITS: [char; 12] = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '¹', '²', '³'];

/// The first rule of `FILE-6` that `segment` breaks.
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
        None
    }
}

/// Whether the text starts with one letter and a colon (`FILE-3`).
///
/// If names may hold a colon, only a letter and a colon that are a whole segment count. Should the
/// pattern not compile, the colon is refused by `FILE-5` all the same.
pub(super) fn is_drive_root(text: &str, rules: NameRules) -> bool {
    let first = text.split(super::is_separator).next().unwrap_or_default();
    if rules.allows_colon() && !first.ends_with(':') {
        return false;
    }
    static LETTER_AND_COLON: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\A\p{L}:").ok());
    LETTER_AND_COLON.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

/// Whether Windows takes the name for a device. It looks at what stands before the first dot and
/// ignores spaces at the end of that.
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
