//! The package for Node: TypeScript, Biome and the tests, in a copy of the package beside the
//! packages of its lock file, because Node looks for packages in the folders above a program.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::packages::{Installed, Packages, text};
use crate::run::{command, root, section};

/// Folder of the package.
const PACKAGE: &str = "host/clients/node";
/// Folders of the package that are copied, besides the files beside them.
const SOURCES: [&str; 2] = ["src", "test"];
/// Checkers and the packages of the adapters. Node itself is a Python package.
const PACKAGES: Packages = Packages {
    what: "what checks the client package for Node.js",
    folder: "target/clients/node",
    python: "host/clients/node/requirements.txt",
    node: ["host/clients/node/package.json", "host/clients/node/package-lock.json"],
};

/// Installs missing packages, and checks and tests the client.
pub(super) fn run() -> anyhow::Result<()> {
    let tools = PACKAGES.install()?;
    section("clients: the package for Node.js");
    copy(&tools)?;
    node(&tools, &[text(&tools.module("typescript/bin/tsc"))?])?;
    node(&tools, &[text(&tools.module("@biomejs/biome/bin/biome"))?, "ci"])?;
    node(&tools, &["--test", "--test-reporter=dot", "test/*.test.js"])
}

/// Installs the packages if they are missing or outdated.
pub(super) fn install() -> anyhow::Result<()> {
    PACKAGES.install().map(drop)
}

/// Returns whether an earlier run has installed the packages of the lock file.
pub(super) fn is_installed() -> anyhow::Result<bool> {
    Ok(PACKAGES.installed()?.is_some())
}

/// Copies the package, without files of an earlier copy.
fn copy(tools: &Installed) -> anyhow::Result<()> {
    let (from, to) = (root().join(PACKAGE), folder(tools));
    for folder in SOURCES {
        if to.join(folder).exists() {
            fs::remove_dir_all(to.join(folder))?;
        }
        copy_folder(&from.join(folder), &to.join(folder))?;
    }
    copy_files(&from, &to)
}

fn copy_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    copy_files(from, to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn copy_files(from: &Path, to: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Returns the folder of the copy.
fn folder(tools: &Installed) -> PathBuf {
    tools.folder.join("npm")
}

/// Runs a program of Node in the copy.
fn node(tools: &Installed, arguments: &[&str]) -> anyhow::Result<()> {
    let path = |relative: &str| root().join(relative).display().to_string();
    command(text(&tools.node)?, arguments)
        .env("COFFERDAM", &path("target/debug/cofferdam"))
        .env("COFFERDAM_CACHE_DIR", &path("target/test-cache"))
        .env("COFFERDAM_PLUGINS", &path("target/plugins"))
        .env("COFFERDAM_PAGE", &path("docs/node.md"))
        .run(&folder(tools))
}
