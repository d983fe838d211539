//! Container images: the `Containerfile` and, for static programs, the folder to build from.
//! Building images is left to the tools of the machine that publishes them.

use std::path::Path;

use super::Binary;
use super::contents::Contents;
use super::files::FileTree;

/// Text of the `Containerfile`.
pub(super) const CONTAINERFILE: &str = include_str!("Containerfile");

/// Adds a static program to the folder of the image.
pub(super) fn write(folder: &Path, binary: &Binary, contents: &Contents) -> anyhow::Result<()> {
    if !binary.platform.is_static() {
        return Ok(());
    }
    let mut files: FileTree = contents.legal();
    files.add("Containerfile", CONTAINERFILE);
    let name = format!("{}/cofferdam", binary.platform.debian_arch());
    files.add_program(name, &*binary.bytes);
    files.write(&folder.join("container"))
}
