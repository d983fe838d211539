//! Third-party programs of `cargo xtask lint`, which Python packages contain.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::packages::create_venv;
use crate::run::{has_python, is_ci, root, section};

const REQUIREMENTS: &str = "xtask/requirements.txt";
const FOLDER: &str = "target/tools";

/// Returns the path of a program of the requirements file. Installs the programs if they are missing
/// or outdated. Without Python, CI fails, and other machines get `None` and a note.
pub(crate) fn find(program: &str) -> anyhow::Result<Option<PathBuf>> {
    let wanted = fs::read_to_string(root().join(REQUIREMENTS))
        .with_context(|| format!("cannot read {REQUIREMENTS}"))?;
    let folder = root().join(FOLDER);
    let stamp = folder.join("installed");
    let is_installed = fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted);
    if !is_installed {
        if !has_python() {
            if is_ci() {
                bail!("{program} needs python3, which installs it");
            }
            section(&format!("{program} is skipped: python3 is missing, which installs it"));
            return Ok(None);
        }
        section(&format!("installing the programs of {REQUIREMENTS} into {FOLDER}"));
        create_venv(&format!("{FOLDER}/venv"), REQUIREMENTS)?;
        fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    }
    Ok(Some(folder.join("venv/bin").join(program)))
}
