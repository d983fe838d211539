//! Archive of a bundle: a zip file whose bytes depend only on its contents.

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::manifest::PROGRAM;

/// Packs all files, ordered by name.
pub(super) fn zip(
    manifest: &str,
    program: &[u8],
    files: &BTreeMap<String, Vec<u8>>,
) -> zip::result::ZipResult<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |name: &str, mode: u32, contents: &[u8]| -> zip::result::ZipResult<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            // Earliest time that the format supports, for reproducible bytes.
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        archive.start_file(name, options)?;
        archive.write_all(contents)?;
        Ok(())
    };
    add("manifest.json", 0o644, manifest.as_bytes())?;
    add(PROGRAM, 0o755, program)?;
    for (name, contents) in files {
        add(name, 0o644, contents)?;
    }
    Ok(archive.finish()?.into_inner())
}
