//! Crates that a binary is built of, as cargo resolves them for its platform and features.
//!
//! `cargo tree` says which crates the package needs with its own features; `cargo metadata` says
//! everything else about them, but for the features of the whole workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::platform::Platform;
use crate::run::{command, root};

/// Package with the binary.
pub(super) const ROOT_PACKAGE: &str = "cofferdam-cli";

/// Crate that a binary is built of.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct LinkedCrate {
    id: String,
    pub(super) name: String,
    pub(super) version: String,
    /// Expression of SPDX.
    pub(super) license: Option<String>,
    /// Registry, or `None` for the crates of this repository.
    pub(super) source: Option<String>,
    pub(super) repository: Option<String>,
    pub(super) manifest_path: PathBuf,
    /// Names and versions of those of its dependencies that are in the binary.
    #[serde(skip)]
    pub(super) dependencies: BTreeSet<(String, String)>,
}

#[derive(Deserialize)]
struct WorkspaceMetadata {
    packages: Vec<LinkedCrate>,
    resolve: ResolvedGraph,
}

#[derive(Deserialize)]
struct ResolvedGraph {
    nodes: Vec<ResolvedNode>,
}

#[derive(Deserialize)]
struct ResolvedNode {
    id: String,
    dependencies: Vec<String>,
}

impl LinkedCrate {
    fn key(&self) -> (String, String) {
        (self.name.clone(), self.version.clone())
    }
}

/// Returns the crates whose code is in what is built of `package` for a platform, sorted by name and
/// version.
/// Procedural macros and their dependencies are among them, build scripts are not.
pub(super) fn linked(platform: &Platform, package: &str) -> anyhow::Result<Vec<LinkedCrate>> {
    let names = names(platform, package)?;
    let triple = platform.triple();
    let metadata = command(
        "cargo",
        &["metadata", "--format-version", "1", "--locked", "--filter-platform", &triple],
    );
    let metadata: WorkspaceMetadata = serde_json::from_slice(&metadata.output(&root())?)
        .context("cannot read the output of `cargo metadata`")?;
    let keys: BTreeMap<_, _> =
        metadata.packages.iter().map(|package| (package.id.clone(), package.key())).collect();
    let edges: BTreeMap<_, _> =
        metadata.resolve.nodes.into_iter().map(|node| (node.id, node.dependencies)).collect();
    let mut crates: Vec<_> =
        metadata.packages.into_iter().filter(|package| names.contains(&package.key())).collect();
    for package in &mut crates {
        let ids = edges.get(&package.id).into_iter().flatten();
        package.dependencies =
            ids.filter_map(|id| keys.get(id)).filter(|key| names.contains(*key)).cloned().collect();
    }
    if crates.len() != names.len() {
        bail!("`cargo tree` names {} crates, `cargo metadata` {}", names.len(), crates.len());
    }
    crates.sort_by_key(LinkedCrate::key);
    Ok(crates)
}

/// Returns names and versions of the crates.
fn names(platform: &Platform, package: &str) -> anyhow::Result<BTreeSet<(String, String)>> {
    let triple = platform.triple();
    let tree = command(
        "cargo",
        &[
            "tree",
            "--locked",
            "--package",
            package,
            "--edges",
            "normal",
            "--target",
            &triple,
            "--prefix",
            "none",
            "--format",
            "{p}",
        ],
    );
    let tree = String::from_utf8(tree.output(&root())?)?;
    let names = tree.lines().filter(|line| !line.is_empty()).map(|line| {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let version = words.next().and_then(|word| word.strip_prefix('v'));
        let version = version.with_context(|| format!("`cargo tree` printed `{line}`"))?;
        Ok((name.to_owned(), version.to_owned()))
    });
    names.collect()
}
