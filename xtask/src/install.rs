//! Installs the host with the interpreters of code mode, which `cargo install` leaves out.

use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use crate::packages::text;
use crate::run::{cargo, root, section};
use crate::{code, projects};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Install into this directory instead of cargo's own
    #[arg(long, value_name = "DIRECTORY")]
    root: Option<PathBuf>,
}

/// Builds and installs everything. Leaves out interpreters whose toolchains are missing, and says
/// so.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let target = match &options.root {
        Some(root) => std::path::absolute(root)?,
        None => cargo_root()?,
    };
    section("installing the host");
    cargo(&["install", "--path", "host/cli", "--locked", "--root", text(&target)?])?;
    section("building what builds the interpreters of code mode");
    cargo(&["build", "--package", "cofferdam-cli", "--package", "cofferdam-snapshot"])?;
    code::build()?;
    projects::build_interpreters()?;
    // The host looks for interpreters here.
    let folder = target.join("share/cofferdam/code");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for language in ["javascript", "python"] {
        let component = code::component(language)?;
        if !component.is_file() {
            section(&format!("no programs in {language}: their interpreter was not built"));
            continue;
        }
        let installed = folder.join(format!("{language}.wasm"));
        fs::copy(&component, &installed)
            .with_context(|| format!("cannot write {}", installed.display()))?;
        section(&format!("installed {}", installed.display()));
    }
    Ok(())
}

/// Returns the directory into which cargo installs programs.
fn cargo_root() -> anyhow::Result<PathBuf> {
    let named = ["CARGO_INSTALL_ROOT", "CARGO_HOME"].into_iter().find_map(std::env::var_os);
    let home = || std::env::home_dir().map(|home| home.join(".cargo"));
    let found = named.map(PathBuf::from).or_else(home);
    let found = found.context("the home directory is not known; name a directory with --root")?;
    Ok(root().join(found))
}
