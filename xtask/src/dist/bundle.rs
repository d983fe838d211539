//! Bundles for MCP clients: the program with its file tools. The client asks the user who installs
//! one for the directory. `cofferdam mcp bundle` writes it; licences are added.

use std::fs;
use std::path::Path;

use super::contents::Contents;
use super::{Artifact, ArtifactKind, Binary, VERSION, output_of};
use crate::packages::text;

/// Writes the bundle of a platform that this machine can run.
pub(super) fn write(
    folder: &Path,
    binary: &Binary,
    contents: &Contents,
) -> anyhow::Result<Artifact> {
    let work = tempfile::tempdir()?;
    let directory = work.path().join("workspace");
    fs::create_dir(&directory)?;
    let packed = work.path().join("files.mcpb");
    let arguments = [
        "mcp",
        "bundle",
        text(&packed)?,
        "--files",
        &format!("workspace={}", text(&directory)?),
        "--name",
        "cofferdam-files",
        "--release",
        VERSION,
        "--author",
        "The Cofferdam authors",
        "--description",
        "Reads, writes and searches the files of a directory that you choose",
        "--no-cache",
    ];
    output_of(&binary.path, &arguments)?;
    let bytes = contents.legal().append_to_zip(fs::read(&packed)?)?;
    let name = format!("cofferdam-files-{VERSION}-{}.mcpb", binary.platform.triple());
    let path = folder.join(name);
    fs::write(&path, bytes)?;
    Ok(Artifact { kind: ArtifactKind::Bundle, platform: binary.platform.clone(), path })
}
