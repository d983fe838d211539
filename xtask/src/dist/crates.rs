//! Packs the crates of this repository as a registry would get them, and compiles some of them from
//! their packages.
//!
//! Cargo packs only what lies in the folder of a crate. The license and the plugin interface are
//! therefore copied into the crates that need them, which a test compares. The SDKs, which
//! `cofferdam-author` contains, are copied only while it is packed: they are large, and folders
//! with a `Cargo.toml` would be left out.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use flate2::read::GzDecoder;
use serde::Deserialize;

use super::wheel::tracked;
use super::{VERSION, megabytes};
use crate::run::{cargo, command, root, section, target_folder};

/// Folder for files from outside of `cofferdam-author`.
const PACKED: &str = "host/author/packed";
/// Folders that `cofferdam-author` contains.
const COPIED: [&str; 7] = [
    "guest-sdk/c",
    "guest-sdk/go",
    "guest-sdk/javascript",
    "guest-sdk/python",
    "guest-sdk/rust",
    "guest-sdk/zig",
    "wit",
];
/// Crates that are compiled from their packages, with all of this repository that they need. The
/// others take wasmtime, which is compiled for minutes.
const VERIFIED: [&str; 3] = ["cofferdam-author", "cofferdam-tool", "cofferdam-tool-macros"];
/// Crates for guests, which are compiled for them.
const VERIFIED_GUESTS: [&str; 2] = ["cofferdam-sdk", "cofferdam-sdk-macros"];
/// Target of guests.
const GUEST_TARGET: &str = "wasm32-wasip2";
/// Files that crates must contain besides a license.
const REQUIRED: [(&str, &str); 4] = [
    ("cofferdam-author", "packed/guest-sdk/rust/Cargo.toml.in"),
    ("cofferdam-author", "packed/wit/world.wit"),
    ("cofferdam-engine", "wit/world.wit"),
    ("cofferdam-sdk", "wit/world.wit"),
];

#[derive(Deserialize)]
struct PackageList {
    packages: Vec<WorkspaceCrate>,
}

#[derive(Deserialize)]
struct WorkspaceCrate {
    name: String,
    /// Registries that the crate may be published in; `None` for all.
    publish: Option<Vec<String>>,
}

/// Copies that are removed when this is dropped.
struct PackedFolder(PathBuf);

/// Packs all crates that are published.
pub(super) fn pack() -> anyhow::Result<()> {
    let _copies = PackedFolder::fill()?;
    let names = published()?;
    section(&format!("packing {} crates", names.len()));
    package(&names, &["--no-verify"])?;
    let folder = target_folder().join("package");
    let mut bytes = 0;
    for name in &names {
        bytes += check_contents(name, &folder)?;
    }
    section(&format!("compiling {} from their packages", VERIFIED.join(", ")));
    package(&VERIFIED.map(str::to_owned), &[])?;
    section(&format!("compiling {} from their packages", VERIFIED_GUESTS.join(", ")));
    package(&VERIFIED_GUESTS.map(str::to_owned), &["--target", GUEST_TARGET])?;
    section(&format!("{} crates with {:.1} MB", names.len(), megabytes(bytes)));
    Ok(())
}

/// Runs `cargo package`. Cargo sorts the crates by their dependencies, and lets them stand in for
/// a registry.
fn package(names: &[String], flags: &[&str]) -> anyhow::Result<()> {
    let mut arguments = vec!["package", "--locked", "--quiet", "--allow-dirty"];
    arguments.extend(flags);
    for name in names {
        arguments.extend(["--package", name]);
    }
    cargo(&arguments)
}

/// Returns the names of the crates that are published.
pub(crate) fn published() -> anyhow::Result<Vec<String>> {
    let metadata = command("cargo", &["metadata", "--format-version", "1", "--no-deps"]);
    let list: PackageList = serde_json::from_slice(&metadata.output(&root())?)?;
    let names = list.packages.into_iter().filter(|package| package.publish.is_none());
    Ok(names.map(|package| package.name).collect())
}

/// Checks that a packed crate contains what it needs, and returns its size.
fn check_contents(name: &str, folder: &Path) -> anyhow::Result<u64> {
    let path = folder.join(format!("{name}-{VERSION}.crate"));
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut unpacked = Vec::new();
    GzDecoder::new(&*bytes).read_to_end(&mut unpacked)?;
    let mut files = Vec::new();
    for entry in tar::Archive::new(&*unpacked).entries()? {
        files.push(entry?.path()?.into_owned());
    }
    let required = REQUIRED.iter().filter(|(of, _)| *of == name).map(|(_, file)| *file);
    for file in required.chain(["LICENSE"]) {
        if !files.contains(&PathBuf::from(format!("{name}-{VERSION}/{file}"))) {
            bail!("the package of {name} does not contain {file}");
        }
    }
    Ok(u64::try_from(bytes.len())?)
}

impl PackedFolder {
    fn fill() -> anyhow::Result<Self> {
        let folder = Self(root().join(PACKED));
        folder.remove()?;
        for path in COPIED
            .iter()
            .map(|source| tracked(source))
            .collect::<anyhow::Result<Vec<_>>>()?
            .concat()
        {
            if Path::new(&path).components().any(|part| part.as_os_str() == "tests") {
                continue;
            }
            let mut target = folder.0.join(&path);
            if target.ends_with("Cargo.toml") {
                // Cargo leaves folders with a manifest out of a package.
                target.set_extension("toml.in");
            }
            fs::create_dir_all(target.parent().context("a file is in a folder")?)?;
            fs::copy(root().join(&path), &target).with_context(|| format!("cannot copy {path}"))?;
        }
        Ok(folder)
    }

    fn remove(&self) -> anyhow::Result<()> {
        if self.0.exists() {
            fs::remove_dir_all(&self.0)?;
        }
        Ok(())
    }
}

impl Drop for PackedFolder {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            section(&format!("{PACKED} cannot be removed: {error}"));
        }
    }
}
