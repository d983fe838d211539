//! What a commit is going to do, in the form that survives a crash.
//!
//! A record is read back only from the directory in which commits are prepared, and even there it
//! may have been planted. So it is bounded, parsed strictly, and its paths are checked like those
//! of a model: they name what is in the store and nothing else.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, Metadata, OpenOptions};
use serde::{Deserialize, Serialize};

use crate::StorePath;

/// Longest record, in bytes. The paths of as many files as a store holds by default are shorter,
/// whatever their length.
const RECORD_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Which form of the record this is.
const FORMAT: u32 = 1;

/// How far a commit is. It is the name of the record, so that going on is one rename, which needs
/// no room on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// What leaves its path moves into the directory of the commit.
    Vacate,
    /// Everything comes to its new path.
    Fill,
    /// The commit cannot be made: what came is taken back.
    Unfill,
    /// What left goes back.
    Unvacate,
}

/// All steps of a commit. The numbers in it are positions in the two lists.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    format: u32,
    pub(super) leaving: Vec<Leaving>,
    pub(super) coming: Vec<Coming>,
}

/// Something that leaves its path, in an order in which each path is still the one that it had
/// before.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Leaving {
    #[serde(with = "as_text")]
    pub(super) path: StorePath,
    pub(super) is_directory: bool,
    pub(super) end: End,
    /// The [`state`] in which it is expected.
    pub(super) state: u64,
}

/// What becomes of something that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum End {
    Deleted,
    Moved,
    /// It stays where it is until something takes its place. It is given a second name, to have it
    /// back if need be.
    Replaced,
}

/// Something that comes to a path, directories before what is in them.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Coming {
    #[serde(with = "as_text")]
    pub(super) path: StorePath,
    pub(super) is_directory: bool,
    pub(super) from: Source,
    /// What it takes the place of.
    pub(super) replaces: Option<usize>,
}

/// Where something that comes has been until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Source {
    /// It is new and was written beforehand.
    Staged,
    /// It left another path.
    Vacated(usize),
}

/// What is the same until a file is replaced or written to, or a directory is replaced. Unlike its
/// version, it is the same under another name. Another build may compute it otherwise: then a
/// commit that was interrupted is taken back.
pub(super) fn state(metadata: &Metadata) -> u64 {
    let mut hasher = DefaultHasher::new();
    #[cfg(unix)]
    {
        use cap_std::fs::MetadataExt as _;
        metadata.ino().hash(&mut hasher);
    }
    if metadata.is_file() {
        metadata.len().hash(&mut hasher);
        metadata.modified().ok().map(cap_std::time::SystemTime::into_std).hash(&mut hasher);
    }
    hasher.finish()
}

/// A record that no commit has written.
#[derive(Debug)]
pub(super) struct Malformed;

impl Phase {
    const ALL: [Self; 4] = [Self::Vacate, Self::Fill, Self::Unfill, Self::Unvacate];

    /// The name of the record in this phase.
    pub(super) fn file_name(self) -> &'static str {
        match self {
            Self::Vacate => "record-vacate",
            Self::Fill => "record-fill",
            Self::Unfill => "record-unfill",
            Self::Unvacate => "record-unvacate",
        }
    }
}

impl Record {
    pub(super) fn new(leaving: Vec<Leaving>, coming: Vec<Coming>) -> Self {
        Self { format: FORMAT, leaving, coming }
    }

    /// Where the directory of the commit keeps what leaves.
    pub(super) fn vacated_name(number: usize) -> String {
        format!("v{number}")
    }

    /// Where the directory of the commit keeps what is new.
    pub(super) fn staged_name(number: usize) -> String {
        format!("n{number}")
    }

    /// Writes the record under `name` and gives the file for flushing.
    pub(super) fn write(&self, directory: &Dir, name: &str) -> io::Result<cap_std::fs::File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut writer = io::BufWriter::new(directory.open_with(name, &options)?);
        serde_json::to_writer(&mut writer, self)?;
        writer.flush()?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        // What could not be read back must not become the point of no return.
        if file.metadata()?.len() > RECORD_BYTES_MAX {
            Err(io::ErrorKind::FileTooLarge.into())
        } else {
            Ok(file)
        }
    }

    /// The record in `directory` and the phase that it is in, if there is one.
    pub(super) fn find(directory: &Dir) -> io::Result<Result<Option<(Phase, Self)>, Malformed>> {
        let mut found = None;
        for phase in Phase::ALL {
            if directory.symlink_metadata(phase.file_name()).is_err() {
                continue;
            }
            if found.is_some() {
                return Ok(Err(Malformed));
            }
            match read(directory, phase.file_name())? {
                Some(record) => found = Some((phase, record)),
                None => return Ok(Err(Malformed)),
            }
        }
        Ok(Ok(found))
    }

    /// Whether everything in it fits together.
    fn is_sound(&self) -> bool {
        let mut used = HashSet::new();
        let mut uses = |number: usize, end: End| {
            self.leaving.get(number).is_some_and(|leaving| leaving.end == end)
                && used.insert(number)
        };
        let are_found = self.coming.iter().all(|coming| {
            let is_found = match coming.from {
                Source::Staged => true,
                Source::Vacated(number) => uses(number, End::Moved),
            };
            is_found && coming.replaces.is_none_or(|number| uses(number, End::Replaced))
        });
        let expected = self.leaving.iter().filter(|leaving| leaving.end != End::Deleted).count();
        self.format == FORMAT && are_found && used.len() == expected
    }
}

/// The record in the file `name`, or `None` if it is no record.
fn read(directory: &Dir, name: &str) -> io::Result<Option<Record>> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    if !directory.symlink_metadata(name)?.is_file() {
        return Ok(None);
    }
    let file = directory.open_with(name, &options)?;
    if !file.metadata()?.is_file() || file.metadata()?.len() > RECORD_BYTES_MAX {
        return Ok(None);
    }
    let mut text = Vec::new();
    file.take(RECORD_BYTES_MAX).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text).ok().filter(Record::is_sound))
}

/// A path as text. Only what a text may denote is read back.
mod as_text {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::{NameRules, StorePath};

    pub(super) fn serialize<S: Serializer>(path: &StorePath, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(path.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<StorePath, D::Error> {
        let text = String::deserialize(from)?;
        match StorePath::file_under(&text, NameRules::Native) {
            Ok(path) if path.as_str() == text => Ok(path),
            _ => Err(D::Error::custom("not a path")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_back(text: &str) -> Option<Record> {
        serde_json::from_str(text).ok().filter(Record::is_sound)
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let path = |text| StorePath::file(text).unwrap();
        let leaving =
            |text, end| Leaving { path: path(text), is_directory: false, end, state: u64::MAX };
        let record = Record::new(
            vec![
                leaving("a", End::Replaced),
                leaving("b", End::Moved),
                leaving("d/ü \"", End::Deleted),
            ],
            vec![
                Coming {
                    path: path("a"),
                    is_directory: false,
                    from: Source::Staged,
                    replaces: Some(0),
                },
                Coming {
                    path: path("c"),
                    is_directory: false,
                    from: Source::Vacated(1),
                    replaces: None,
                },
            ],
        );
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(read_back(&text), Some(record));
    }

    #[test]
    fn what_no_commit_writes_is_no_record() {
        let record = |leaving: &str, coming: &str| {
            read_back(&format!(r#"{{"format":1,"leaving":[{leaving}],"coming":[{coming}]}}"#))
        };
        let leaving = |path: &str| {
            format!(r#"{{"path":"{path}","is_directory":false,"end":"moved","state":1}}"#)
        };
        let coming = |path: &str, from: &str| {
            format!(r#"{{"path":"{path}","is_directory":false,"from":{from},"replaces":null}}"#)
        };
        let moved = r#"{"vacated":0}"#;
        assert!(record(&leaving("a"), &coming("b", moved)).is_some());
        for path in [
            "",
            "/a",
            "../a",
            "a/../b",
            "a//b",
            "a/",
            " a",
            "a\\\\b",
            ".~cofferdam-x",
            "con",
            "a\\u0000",
        ] {
            assert!(record(&leaving(path), &coming("b", moved)).is_none(), "{path}");
            assert!(record(&leaving("a"), &coming(path, moved)).is_none(), "{path}");
        }
        assert!(record(&leaving("a"), &coming("b", r#"{"vacated":1}"#)).is_none(), "not there");
        assert!(record(&leaving("a"), &coming("b", r#""staged""#)).is_none(), "moved to nowhere");
        let twice = format!("{},{}", coming("b", moved), coming("c", moved));
        assert!(record(&leaving("a"), &twice).is_none(), "moved twice");
        assert!(read_back(r#"{"format":2,"leaving":[],"coming":[]}"#).is_none());
        assert!(read_back(r#"{"format":1,"leaving":[],"coming":[],"more":1}"#).is_none());
    }
}
