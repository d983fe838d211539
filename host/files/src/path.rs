//! The only path type that a file store accepts.
//!
//! A [`StorePath`] is checked once, when a string is parsed, and is valid from then on: it is
//! relative, has no `.` or `..`, and every segment is a name that each supported system can hold.
//! It is only a name: not following links on the way is the duty of the store (`FILE-18`).
//!
//! A name that no valid string denotes does not exist for a store: `StorePath::child` refuses it,
//! so listings leave it out.

mod refusal;
mod segment;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use refusal::PathError;
pub(crate) use refusal::quoted;
use refusal::{PathRefusal, SegmentRefusal};
pub(crate) use segment::is_device;

/// Maximum length of a path in bytes (`FILE-5`).
const PATH_BYTES_MAX: usize = 4096;

/// Prefix of names that are reserved for the stores: temporary files and journals (`FILE-6`).
pub(crate) const RESERVED_PREFIX: &str = ".~cofferdam";

/// Rules for the names that a store accepts, in addition to the names that every store accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameRules {
    /// Names that every supported system can hold.
    #[default]
    Portable,
    /// Names that this system can hold as well: on Linux those with a `:`. Elsewhere the same as
    /// [`Portable`](Self::Portable).
    Native,
}

impl NameRules {
    fn allows_colon(self) -> bool {
        cfg!(target_os = "linux") && self == Self::Native
    }
}

/// A normalized path below the root of a file store; the empty path is the root.
///
/// Paths are ordered bytewise. Names are case-sensitive and not Unicode-normalized (`FILE-8`,
/// `FILE-11`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorePath(String);

impl StorePath {
    /// The root directory of a store.
    pub const ROOT: Self = Self(String::new());

    /// Parses the path of a file, as written by a model or a user (`FILE-1` to `FILE-6`).
    ///
    /// # Errors
    /// The first rule that the string breaks, in the order of `FILE-8`.
    pub fn file(text: &str) -> Result<Self, PathError> {
        Self::file_under(text, NameRules::Portable)
    }

    /// Like [`file`](Self::file), for a store with `rules`.
    ///
    /// # Errors
    /// Like [`file`](Self::file).
    pub fn file_under(text: &str, rules: NameRules) -> Result<Self, PathError> {
        let given = text.trim();
        if given.is_empty() {
            return Err(PathError::empty());
        }
        if given.ends_with(is_separator) {
            return Err(PathError::new(given, PathRefusal::TrailingSeparator));
        }
        normalise(given, rules)
    }

    /// Parses the path of a directory, like [`file`](Self::file), except that a blank string is the
    /// root and trailing separators are allowed (`FILE-7`).
    ///
    /// # Errors
    /// The first rule that the string breaks, in the order of `FILE-8`.
    pub fn directory(text: &str) -> Result<Self, PathError> {
        Self::directory_under(text, NameRules::Portable)
    }

    /// Like [`directory`](Self::directory), for a store with `rules`.
    ///
    /// # Errors
    /// Like [`directory`](Self::directory).
    pub fn directory_under(text: &str, rules: NameRules) -> Result<Self, PathError> {
        normalise(text.trim(), rules)
    }

    /// Returns the path of `name` inside this directory.
    ///
    /// # Errors
    /// If no string denotes that path: `name` is not one segment, breaks a rule, or would be
    /// changed by normalization (a first segment that starts with white space, for example).
    pub fn child(&self, name: &str) -> Result<Self, PathError> {
        self.child_under(name, NameRules::Portable)
    }

    /// Like [`child`](Self::child), for a store with `rules`.
    ///
    /// # Errors
    /// Like [`child`](Self::child).
    pub fn child_under(&self, name: &str, rules: NameRules) -> Result<Self, PathError> {
        let text = if self.is_root() { name.to_owned() } else { format!("{}/{name}", self.0) };
        let path = Self::file_under(&text, rules)?;
        let is_exact = path.0 == text && !name.is_empty() && !name.contains('/');
        if is_exact { Ok(path) } else { Err(PathError::new(&text, PathRefusal::NotNormalised)) }
    }

    /// Creates a path in the root that no string denotes, for internal use by the stores.
    pub(crate) fn reserved(name: &str) -> Self {
        Self(format!("{RESERVED_PREFIX}{name}"))
    }

    /// Returns true for a path created by [`reserved`](Self::reserved).
    pub(crate) fn is_reserved(&self) -> bool {
        self.0.starts_with(RESERVED_PREFIX)
    }

    /// Appends `name`, which may be several segments or empty.
    pub(crate) fn join(&self, name: &str) -> Self {
        match (self.is_root(), name.is_empty()) {
            (_, true) => self.clone(),
            (true, false) => Self(name.to_owned()),
            (false, false) => Self(format!("{}/{name}", self.0)),
        }
    }

    /// Returns the path of an entry that a listing of this directory contains, which may be several
    /// segments down. The store that listed the name accepts it.
    pub(crate) fn descend(&self, name: &str) -> Option<Self> {
        name.split('/')
            .try_fold(self.clone(), |path, name| path.child_under(name, NameRules::Native).ok())
    }

    /// Returns the path as a string, with `/` between segments; empty for the root.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this is the root directory.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the segments, from the root downward; empty for the root.
    pub fn segments(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|segment| !segment.is_empty())
    }

    /// Returns the number of segments; 0 for the root.
    #[must_use]
    pub fn depth(&self) -> u64 {
        self.segments().fold(0, |depth, _| depth + 1)
    }

    /// Splits the path into its parent directory and its name. Returns `None` for the root.
    #[must_use]
    pub fn split(&self) -> Option<(Self, &str)> {
        if self.is_root() {
            return None;
        }
        match self.0.rsplit_once('/') {
            Some((parent, name)) => Some((Self(parent.to_owned()), name)),
            None => Some((Self::ROOT, &self.0)),
        }
    }

    /// Returns the last segment; empty for the root.
    #[must_use]
    pub fn name(&self) -> &str {
        self.segments().next_back().unwrap_or_default()
    }

    /// Iterates over the directories above this path, nearest first, without the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        self.0
            .rmatch_indices('/')
            .filter_map(|(at, _)| self.0.get(..at))
            .map(|above| Self(above.to_owned()))
    }

    /// Returns this path relative to `directory`, or `None` if it is not below it.
    #[must_use]
    pub fn below(&self, directory: &Self) -> Option<&str> {
        if directory.is_root() {
            return (!self.is_root()).then_some(&self.0);
        }
        self.0.strip_prefix(directory.as_str())?.strip_prefix('/')
    }
}

impl fmt::Display for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for StorePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl AsRef<str> for StorePath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

fn is_separator(c: char) -> bool {
    matches!(c, '/' | '\\')
}

/// Checks `FILE-3` to `FILE-6` in this order and joins the segments with one `/`. `given` is
/// trimmed.
fn normalise(given: &str, rules: NameRules) -> Result<StorePath, PathError> {
    let refuse = |refusal| Err(PathError::new(given, refusal));
    if given.starts_with(is_separator) || segment::is_drive_root(given, rules) {
        return refuse(PathRefusal::NotRelative);
    }
    let segments: Vec<&str> =
        given.split(is_separator).filter(|segment| !segment.is_empty()).collect();
    if segments.iter().any(|segment| matches!(*segment, "." | "..")) {
        return refuse(PathRefusal::DotSegment);
    }
    let path = segments.join("/");
    if let Some(refusal) = refusal_of_text(&path, rules) {
        return refuse(refusal);
    }
    match segments.iter().find_map(|segment| segment::refusal(segment)) {
        Some(refusal) => refuse(PathRefusal::Segment(refusal)),
        None => Ok(StorePath(path)),
    }
}

/// Checks `FILE-5` on the normalized path.
fn refusal_of_text(path: &str, rules: NameRules) -> Option<PathRefusal> {
    if path.len() > PATH_BYTES_MAX {
        Some(PathRefusal::TooLong)
    } else if path.contains(is_control) {
        Some(PathRefusal::ControlCharacter)
    } else if path.contains(':') && !rules.allows_colon() {
        Some(PathRefusal::Colon)
    } else {
        None
    }
}

/// Returns whether `c` is a control character by `FILE-5`, which treats those from U+0080 on as
/// ordinary characters.
fn is_control(c: char) -> bool {
    c.is_ascii_control()
}

#[cfg(test)]
mod tests;
