//! `SHA256SUMS`, the digests of all files of a release, for `sha256sum --check`.

use std::fs;
use std::path::Path;

use anyhow::Context;
use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};

use super::Artifact;

/// Writes the digests of all packages.
pub(super) fn write(folder: &Path, artifacts: &[Artifact]) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for artifact in artifacts {
        let name = artifact.path.file_name().and_then(|name| name.to_str());
        let name = name.context("a package has a name")?;
        lines.push(line(name, &fs::read(&artifact.path)?));
    }
    lines.sort_by(|one, other| one.get(64..).cmp(&other.get(64..)));
    fs::write(folder.join("SHA256SUMS"), lines.concat())?;
    Ok(())
}

/// Returns the line of a file.
fn line(name: &str, bytes: &[u8]) -> String {
    format!("{}  {name}\n", HEXLOWER.encode(&Sha256::digest(bytes)))
}
