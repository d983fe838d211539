//! A home directory for one check, and programs that see nothing else of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;
use tempfile::TempDir;

use super::plugin;
use crate::dist::VERSION;
use crate::packages::text;
use crate::run::{Step, command};

/// Empty home directory.
pub(super) struct CleanHome(TempDir);

impl CleanHome {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self(tempfile::tempdir()?))
    }

    pub(super) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Returns a step whose environment contains only the home directory and the search path.
    pub(super) fn command(&self, program: &str, arguments: &[&str]) -> Step {
        let path = std::env::var("PATH").unwrap_or_default();
        let home = self.folder().display().to_string();
        command(program, arguments).clean().env("PATH", &path).env("HOME", &home)
    }

    /// Runs the installed program: its version, and a call of a tool in the sandbox.
    pub(super) fn check_program(&self, program: &Path) -> anyhow::Result<()> {
        let program = text(program)?;
        let version = self.command(program, &["--version"]).output(self.folder())?;
        let version = String::from_utf8(version)?;
        if !version.starts_with(&format!("cofferdam {VERSION} ")) {
            bail!("{program} is {}; expected {VERSION}", version.trim());
        }
        let plugin = plugin();
        let call = ["call", "count_words", "text=to be or not to be", "--plugin", text(&plugin)?];
        let result = self.command(program, &call).output(self.folder())?;
        match String::from_utf8(result)?.trim() {
            "6" => Ok(()),
            other => bail!("the call of a tool returned `{other}`; expected `6`"),
        }
    }
}

/// Returns all files below a folder, except what Python compiles.
pub(super) fn files_below(folder: &Path) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut files = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if !path.is_dir() || path.is_symlink() {
                files.insert(path.strip_prefix(folder)?.to_owned());
            } else if !path.ends_with("__pycache__") {
                folders.push(path);
            }
        }
    }
    Ok(files)
}

/// Fails if files are left that were not there before an installation.
pub(super) fn check_leftovers(
    before: &BTreeSet<PathBuf>,
    after: &BTreeSet<PathBuf>,
) -> anyhow::Result<()> {
    let left: Vec<_> = after.difference(before).map(|path| path.display().to_string()).collect();
    match left.is_empty() {
        true => Ok(()),
        false => bail!("the uninstallation leaves {}", left.join(", ")),
    }
}
