//! Record of what a commit is going to do, in a form that survives a crash.
//!
//! A record is read back only from the directory in which commits are prepared, and even there it
//! may have been planted. So it is bounded and parsed strictly, and its paths are checked like
//! those of a model: they can only name what is in the store.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};

use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::fs::{Dir, Metadata, OpenOptions};
use serde::{Deserialize, Serialize};

use crate::StorePath;

/// Maximum length of a record, in bytes. The paths of as many files as a store holds by default are
/// shorter, however long each one is.
const RECORD_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Version of the record format.
const FORMAT: u32 = 1;

/// Progress of a commit. The phase is the file name of the record, so that entering the next phase
/// is one rename, which needs no room on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Moves every entry that leaves its path into the directory of the commit.
    Vacate,
    /// Puts every entry at its new path.
    Fill,
    /// Takes back every entry that was put at a new path, because the commit cannot be made.
    Unfill,
    /// Moves every entry that left its path back there.
    Unvacate,
}

/// All steps of a commit. The numbers in it are indexes into the two lists.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CommitRecord {
    format: u32,
    pub(super) leaving: Vec<Departure>,
    pub(super) coming: Vec<Arrival>,
}

/// Something that leaves its path. The list is ordered so that each path is still the one from
/// before the commit when it is used.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Departure {
    #[serde(with = "as_text")]
    pub(super) path: StorePath,
    pub(super) is_directory: bool,
    pub(super) end: Removal,
    /// Expected [`state`] of the file or directory.
    pub(super) state: u64,
}

/// Reason why something leaves its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Removal {
    Deleted,
    Moved,
    /// Another entry replaces this one, which stays at its path until then. It gets a second name,
    /// so that it can be restored.
    Replaced,
}

/// Something that is put at a path. Directories are listed before their contents.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arrival {
    #[serde(with = "as_text")]
    pub(super) path: StorePath,
    pub(super) is_directory: bool,
    pub(super) from: ArrivalSource,
    /// Index of the entry in `leaving` that it replaces.
    pub(super) replaces: Option<usize>,
}

/// Origin of something that is put at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ArrivalSource {
    /// The entry is new and was written beforehand.
    Staged,
    /// The entry left another path; the number is its index in `leaving`.
    Vacated(usize),
}

/// Returns a value that stays the same until a file is replaced or written to, or a directory is
/// replaced. Unlike a version, it survives a rename. Another build may compute it differently: then
/// an interrupted commit is rolled back.
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

/// Error for a record that no commit has written.
#[derive(Debug)]
pub(super) struct InvalidRecord;

impl Phase {
    const ALL: [Self; 4] = [Self::Vacate, Self::Fill, Self::Unfill, Self::Unvacate];

    /// Returns the name of the record in this phase.
    pub(super) fn file_name(self) -> &'static str {
        match self {
            Self::Vacate => "record-vacate",
            Self::Fill => "record-fill",
            Self::Unfill => "record-unfill",
            Self::Unvacate => "record-unvacate",
        }
    }
}

impl CommitRecord {
    pub(super) fn new(leaving: Vec<Departure>, coming: Vec<Arrival>) -> Self {
        Self { format: FORMAT, leaving, coming }
    }

    /// Returns the name under which the directory of the commit keeps something that leaves.
    pub(super) fn vacated_name(number: usize) -> String {
        format!("v{number}")
    }

    /// Returns the name under which the directory of the commit keeps something new.
    pub(super) fn staged_name(number: usize) -> String {
        format!("n{number}")
    }

    /// Writes the record under `name` and returns the file, so that the caller can flush it.
    pub(super) fn write(&self, directory: &Dir, name: &str) -> io::Result<cap_std::fs::File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut writer = io::BufWriter::new(directory.open_with(name, &options)?);
        serde_json::to_writer(&mut writer, self)?;
        writer.flush()?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        // A record that cannot be read back must not become the point of no return.
        if file.metadata()?.len() > RECORD_BYTES_MAX {
            Err(io::ErrorKind::FileTooLarge.into())
        } else {
            Ok(file)
        }
    }

    /// Returns the record in `directory` and its phase, if there is one.
    pub(super) fn find(
        directory: &Dir,
    ) -> io::Result<Result<Option<(Phase, Self)>, InvalidRecord>> {
        let mut found = None;
        for phase in Phase::ALL {
            if directory.symlink_metadata(phase.file_name()).is_err() {
                continue;
            }
            if found.is_some() {
                return Ok(Err(InvalidRecord));
            }
            match read(directory, phase.file_name())? {
                Some(record) => found = Some((phase, record)),
                None => return Ok(Err(InvalidRecord)),
            }
        }
        Ok(Ok(found))
    }

    /// Returns whether the parts of the record are consistent.
    fn is_sound(&self) -> bool {
        let mut used = HashSet::new();
        let mut uses = |number: usize, end: Removal| {
            self.leaving.get(number).is_some_and(|leaving| leaving.end == end)
                && used.insert(number)
        };
        let are_found = self.coming.iter().all(|coming| {
            let is_found = match coming.from {
                ArrivalSource::Staged => true,
                ArrivalSource::Vacated(number) => uses(number, Removal::Moved),
            };
            is_found && coming.replaces.is_none_or(|number| uses(number, Removal::Replaced))
        });
        let expected =
            self.leaving.iter().filter(|leaving| leaving.end != Removal::Deleted).count();
        self.format == FORMAT && are_found && used.len() == expected
    }
}

/// Reads the record in the file `name`. Returns `None` if it is not a valid record.
fn read(directory: &Dir, name: &str) -> io::Result<Option<CommitRecord>> {
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
    Ok(serde_json::from_slice(&text).ok().filter(CommitRecord::is_sound))
}

/// Serializes a path as a string. Only strings that are valid paths are read back.
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

    fn read_back(text: &str) -> Option<CommitRecord> {
        serde_json::from_str(text).ok().filter(CommitRecord::is_sound)
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let path = |text| StorePath::file(text).unwrap();
        let leaving =
            |text, end| Departure { path: path(text), is_directory: false, end, state: u64::MAX };
        let record = CommitRecord::new(
            vec![
                leaving("a", Removal::Replaced),
                leaving("b", Removal::Moved),
                leaving("d/ü \"", Removal::Deleted),
            ],
            vec![
                Arrival {
                    path: path("a"),
                    is_directory: false,
                    from: ArrivalSource::Staged,
                    replaces: Some(0),
                },
                Arrival {
                    path: path("c"),
                    is_directory: false,
                    from: ArrivalSource::Vacated(1),
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
