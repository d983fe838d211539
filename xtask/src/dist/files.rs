//! Files of a package in memory, and their archives. The same files make the same bytes: entries
//! are sorted, belong to root, and have one time.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write as _};
use std::path::Path;

use anyhow::Context;
use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// Time of all entries, 1985-10-26 08:15:00 UTC, which npm uses as well: later than the beginning
/// of zip's calendar and than the oldest time that Debian accepts.
const SECONDS: u64 = 499_162_500;

/// Files of a package by their paths, with `/` between names.
#[derive(Debug, Clone, Default)]
pub(super) struct FileTree(BTreeMap<String, PackageFile>);

#[derive(Debug, Clone)]
pub(super) struct PackageFile {
    pub(super) bytes: Vec<u8>,
    pub(super) is_executable: bool,
}

impl PackageFile {
    fn mode(&self) -> u32 {
        match self.is_executable {
            true => 0o755,
            false => 0o644,
        }
    }
}

impl FileTree {
    /// Adds a file.
    pub(super) fn add(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), PackageFile { bytes: bytes.into(), is_executable: false });
    }

    /// Adds a program.
    pub(super) fn add_program(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), PackageFile { bytes: bytes.into(), is_executable: true });
    }

    /// Returns the files in the order of their paths.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &PackageFile)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    /// Returns the files with their folders as a tar archive. `prefix` is added to the paths.
    pub(super) fn tar(&self, prefix: &str) -> anyhow::Result<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut folders = std::collections::BTreeSet::new();
        for (path, file) in self.iter() {
            let path = format!("{prefix}{path}");
            for (end, _) in path.match_indices('/') {
                let folder = path.get(..=end).unwrap_or_default();
                if folder != "./" && folders.insert(folder.to_owned()) {
                    let mut header = header(tar::EntryType::Directory, 0o755, 0);
                    builder.append_data(&mut header, folder, std::io::empty())?;
                }
            }
            let size = u64::try_from(file.bytes.len())?;
            let mut header = header(tar::EntryType::Regular, file.mode(), size);
            builder.append_data(&mut header, &path, &*file.bytes).context(path)?;
        }
        Ok(builder.into_inner()?)
    }

    /// Returns the files as a compressed tar archive.
    pub(super) fn tar_gz(&self, prefix: &str) -> anyhow::Result<Vec<u8>> {
        gzip(&self.tar(prefix)?)
    }

    /// Returns the files as a zip archive.
    pub(super) fn zip(&self, prefix: &str) -> anyhow::Result<Vec<u8>> {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, file) in self.iter() {
            writer.start_file(format!("{prefix}{path}"), zip_options(file)?)?;
            writer.write_all(&file.bytes)?;
        }
        Ok(writer.finish()?.into_inner())
    }

    /// Writes the files below a folder, beside what is there.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        for (path, file) in self.iter() {
            let path = folder.join(path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&path, &file.bytes)?;
            #[cfg(unix)]
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(file.mode()))?;
        }
        Ok(())
    }

    /// Adds the files to a zip archive that another program has written.
    pub(super) fn append_to_zip(&self, archive: Vec<u8>) -> anyhow::Result<Vec<u8>> {
        let mut writer = ZipWriter::new_append(Cursor::new(archive))?;
        for (path, file) in self.iter() {
            writer.start_file(path, zip_options(file)?)?;
            writer.write_all(&file.bytes)?;
        }
        Ok(writer.finish()?.into_inner())
    }
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(SECONDS);
    header.set_uid(0);
    header.set_gid(0);
    header
}

fn zip_options(file: &PackageFile) -> anyhow::Result<SimpleFileOptions> {
    Ok(SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .compression_level(Some(9))
        .last_modified_time(DateTime::from_date_and_time(1985, 10, 26, 8, 15, 0)?)
        .unix_permissions(file.mode()))
}

/// Compresses bytes without a time and a name.
pub(super) fn gzip(bytes: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder: GzEncoder<Vec<u8>> =
        GzBuilder::new().operating_system(255).write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> FileTree {
        let mut tree = FileTree::default();
        tree.add_program("bin/b", "program");
        tree.add("a", "text");
        tree
    }

    #[test]
    fn a_tar_archive_is_sorted_and_has_folders_modes_and_no_owner() {
        let bytes = tree().tar("top/").unwrap();
        let mut archive = tar::Archive::new(&*bytes);
        let entries: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!((header.uid().unwrap(), header.mtime().unwrap()), (0, SECONDS));
                (entry.path().unwrap().display().to_string(), header.mode().unwrap())
            })
            .collect();
        let expected =
            [("top/", 0o755), ("top/a", 0o644), ("top/bin/", 0o755), ("top/bin/b", 0o755)];
        assert_eq!(entries, expected.map(|(path, mode)| (path.to_owned(), mode)));
    }

    #[test]
    fn equal_files_make_equal_archives() {
        assert_eq!(tree().tar_gz("").unwrap(), tree().tar_gz("").unwrap());
        assert_eq!(tree().zip("").unwrap(), tree().zip("").unwrap());
    }

    #[test]
    fn files_are_added_to_a_zip_archive() {
        let mut more = FileTree::default();
        more.add("LICENSE", "terms");
        let bytes = more.append_to_zip(tree().zip("").unwrap()).unwrap();
        let archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let mut names: Vec<_> = archive.file_names().map(Result::unwrap).collect();
        names.sort_unstable();
        assert_eq!(names, ["LICENSE", "a", "bin/b"]);
    }
}
