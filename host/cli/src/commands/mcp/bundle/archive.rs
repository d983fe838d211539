//! The file itself: a zip archive whose bytes depend on its contents alone.
//!
//! Of the format only what a bundle needs: regular files with a mode, deflated, below 4 GiB, all of one fixed time.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Context;
use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::manifest::PROGRAM;

/// Midnight of the first day that the format knows, 1980-01-01: time in the lower half, date in the upper.
const TIME: u32 = 0x0021_0000;
/// The version of the format that knows deflate.
const VERSION: u16 = 20;
/// The same, on Unix: only then is the mode of a file believed.
const VERSION_ON_UNIX: u16 = 3 << 8 | VERSION;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
const DEFLATED: u16 = 8;
const REGULAR_FILE: u32 = 0o100_000;

/// Packs everything, in the order of the names.
pub(super) fn zip(
    manifest: &str,
    program: &[u8],
    files: &BTreeMap<String, Vec<u8>>,
) -> anyhow::Result<Vec<u8>> {
    let mut archive = Archive::default();
    archive.add("manifest.json", 0o644, manifest.as_bytes())?;
    archive.add(PROGRAM, 0o755, program)?;
    for (name, bytes) in files {
        archive.add(name, 0o644, bytes)?;
    }
    archive.finish()
}

/// The archive so far, and the directory that will stand at its end.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    files: u16,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, contents: &[u8]) -> anyhow::Result<()> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(contents)?;
        let deflated = encoder.finish()?;
        let offset = size(self.bytes.len())?;

        // The part that both records of a file share.
        let mut shared = Vec::new();
        for number in [FLAGS, DEFLATED] {
            shared.extend(number.to_le_bytes());
        }
        for number in [TIME, crc32fast::hash(contents), size(deflated.len())?, size(contents.len())?] {
            shared.extend(number.to_le_bytes());
        }
        let name_bytes = u16::try_from(name.len()).context("a name is too long for an archive")?;
        shared.extend(name_bytes.to_le_bytes());
        shared.extend([0; 2]); // no extra field

        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(VERSION.to_le_bytes());
        self.bytes.extend(&shared);
        self.bytes.extend(name.as_bytes());
        self.bytes.extend(&deflated);

        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(VERSION_ON_UNIX.to_le_bytes());
        self.directory.extend(VERSION.to_le_bytes());
        self.directory.extend(&shared);
        self.directory.extend([0; 6]); // no comment, the first disk, no attributes of the inside
        self.directory.extend(((REGULAR_FILE | mode) << 16).to_le_bytes());
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.files = self.files.checked_add(1).context("too many files for an archive")?;
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<Vec<u8>> {
        let (offset, length) = (size(self.bytes.len())?, size(self.directory.len())?);
        self.bytes.append(&mut self.directory);
        self.bytes.extend(b"PK\x05\x06");
        self.bytes.extend([0; 4]); // one disk
        self.bytes.extend(self.files.to_le_bytes());
        self.bytes.extend(self.files.to_le_bytes());
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(offset.to_le_bytes());
        self.bytes.extend([0; 2]); // no comment
        Ok(self.bytes)
    }
}

fn size(bytes: usize) -> anyhow::Result<u32> {
    u32::try_from(bytes).context("a bundle is smaller than 4 GiB")
}
