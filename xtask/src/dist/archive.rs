//! Archives: everything in one folder, as tar for Unix and zip for Windows.

use std::fs;
use std::path::Path;

use super::contents::Contents;
use super::{Artifact, ArtifactKind, Binary, VERSION};

/// Writes the archive of a platform.
pub(super) fn write(
    folder: &Path,
    binary: &Binary,
    contents: &Contents,
) -> anyhow::Result<Artifact> {
    let name = name(binary);
    let mut files = contents.documents();
    files.add_program(binary.platform.executable(), &*binary.bytes);
    for (shell, script) in &contents.completions {
        files.add(format!("completions/{}", shell.file_name()), &**script);
    }
    for (page, text) in &contents.manual {
        files.add(format!("man/man1/{page}"), &**text);
    }
    let prefix = format!("{name}/");
    let (ending, bytes) = match binary.platform.is_windows() {
        true => ("zip", files.zip(&prefix)?),
        false => ("tar.gz", files.tar_gz(&prefix)?),
    };
    let path = folder.join(format!("{name}.{ending}"));
    fs::write(&path, bytes)?;
    Ok(Artifact { kind: ArtifactKind::Archive, platform: binary.platform.clone(), path })
}

/// Returns the name of the archive and of the folder in it.
fn name(binary: &Binary) -> String {
    format!("cofferdam-{VERSION}-{}", binary.platform.triple())
}
