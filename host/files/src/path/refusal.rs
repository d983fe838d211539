//! Reasons why a string is not a path, in the words of `FILE-2` to `FILE-6`.

use std::fmt;

/// Maximum length of a quotation in a message, in characters (`FILE-9`).
const QUOTED_CHARS_MAX: usize = 200;

/// Error for a string that is not a path. It displays as the exact message of `FILE-2` to `FILE-6`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathError {
    /// The trimmed string, or `None` if it is empty.
    given: Option<String>,
    refusal: PathRefusal,
}

/// The rule that a path breaks, in the order of the checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathRefusal {
    Empty,
    TrailingSeparator,
    NotRelative,
    DotSegment,
    TooLong,
    ControlCharacter,
    Colon,
    Segment(SegmentRefusal),
    NotNormalised,
}

/// The rule that a segment breaks. The string in a variant is the segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SegmentRefusal {
    TrailingDotOrSpace,
    Device(String),
    TooLong,
    Reserved(String),
    /// A character that the names of this system cannot have.
    SystemCharacter(char),
}

impl PathError {
    pub(super) fn empty() -> Self {
        Self { given: None, refusal: PathRefusal::Empty }
    }

    /// Creates the error for a path that is too long in an underlying store.
    pub(crate) fn too_long(path: &super::StorePath) -> Self {
        Self::new(path.as_str(), PathRefusal::TooLong)
    }

    /// Returns the description of the broken rule, without the path.
    pub(crate) fn rule(&self) -> String {
        self.refusal.to_string()
    }

    pub(super) fn new(given: &str, refusal: PathRefusal) -> Self {
        Self { given: Some(given.to_owned()), refusal }
    }
}

impl std::error::Error for PathError {}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.given {
            Some(given) => write!(f, "Invalid path: '{}'. {}", quoted(given), self.refusal),
            None => write!(f, "{}", self.refusal),
        }
    }
}

impl fmt::Display for PathRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "A file path must not be empty or whitespace-only.",
            Self::TrailingSeparator => "A file path must not end with a path separator.",
            Self::NotRelative => {
                r"Paths must be relative and must not start with '/', '\', or a drive root."
            }
            Self::DotSegment => "Paths must not contain '.' or '..' segments.",
            Self::TooLong => "A path must not be longer than 4096 bytes.",
            Self::ControlCharacter => "Paths must not contain control characters.",
            Self::Colon => "Paths must not contain ':'.",
            Self::Segment(segment) => return write!(f, "{segment}"),
            Self::NotNormalised => "The name is not a single normalised path segment.",
        })
    }
}

impl fmt::Display for SegmentRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TrailingDotOrSpace => {
                f.write_str("Path segments must not end with a dot or a space.")
            }
            Self::Device(segment) => write!(f, "'{}' is a reserved device name.", quoted(segment)),
            Self::TooLong => f.write_str("A path segment must not be longer than 255 bytes."),
            Self::Reserved(segment) => write!(f, "'{}' is a reserved name.", quoted(segment)),
            Self::SystemCharacter(character) => {
                write!(f, "Paths must not contain '{character}' on this system.")
            }
        }
    }
}

/// Quotes `text` for a message (`FILE-9`): escapes control characters, then truncates to 200
/// characters.
pub(crate) fn quoted(text: &str) -> String {
    let mut escaped = text.chars().flat_map(escape);
    let mut shown: String = escaped.by_ref().take(QUOTED_CHARS_MAX).collect();
    if escaped.next().is_some() {
        shown.push('…');
    }
    shown
}

fn escape(c: char) -> impl Iterator<Item = char> {
    let escaped = match c {
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if super::is_control(c) => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    escaped.chars().collect::<Vec<_>>().into_iter()
}
