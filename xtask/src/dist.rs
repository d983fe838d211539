//! Makes the packages of a release from binaries, without publishing anything.
//!
//! Each package is made from the same files, is the same for the same input, and contains the
//! licences of everything that the binary is built of. `--check` installs each package that this
//! machine can run into an empty directory, calls a tool, and uninstalls it.

mod archive;
mod bundle;
mod check;
mod container;
mod contents;
mod crates;
mod deb;
mod dependencies;
mod files;
mod licenses;
mod linkage;
mod module;
mod npm;
mod platform;
mod sbom;
mod sums;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::packages::text;
use crate::run::{cargo, command, root, section, target_folder};
use contents::Contents;
pub(crate) use crates::published;
use linkage::Linkage;
use platform::Platform;

/// Version of the release, which all crates of the workspace share.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Sentence that describes the program in packages.
const SUMMARY: &str = "Run tools for AI models in WebAssembly sandboxes";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Package this binary instead of building one for this machine; repeatable
    #[arg(long = "binary", value_name = "TARGET=PATH", value_parser = parse_binary)]
    binaries: Vec<(Platform, PathBuf)>,
    /// Package this build of `cofferdam-python` too, the module for the host in the process of
    /// Python; repeatable
    #[arg(long = "module", value_name = "TARGET=PATH", value_parser = parse_binary)]
    modules: Vec<(Platform, PathBuf)>,
    /// Install each package that this machine can run, call a tool and uninstall it
    #[arg(long)]
    check: bool,
    /// Pack the crates of this repository into target/package instead, and compile some of them
    /// from there
    #[arg(long, conflicts_with_all = ["binaries", "modules", "check"])]
    crates: bool,
}

/// Binary of a release.
struct Binary {
    platform: Platform,
    linkage: Linkage,
    bytes: Vec<u8>,
    path: PathBuf,
}

/// Package of a release.
struct Artifact {
    kind: ArtifactKind,
    platform: Platform,
    path: PathBuf,
}

/// Kind of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArtifactKind {
    Archive,
    Bundle,
    Deb,
    ModuleWheel,
    /// The launcher, which is the same for all platforms.
    NpmMain,
    NpmPlatform,
    Sbom,
    Wheel,
}

/// Makes all packages.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    if options.crates {
        return crates::pack();
    }
    let binaries = read_binaries(&options.binaries)?;
    let generator = binaries.iter().find(|binary| binary.platform.runs_here());
    let generator = generator.context(
        "none of the binaries runs on this machine, and one must write completions and manual \
         pages; add one with --binary",
    )?;
    let folder = root().join("target/dist");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot empty {}", show(&folder)))?;
    }
    fs::create_dir_all(&folder)?;
    let mut artifacts = Vec::new();
    for binary in &binaries {
        section(&format!("packages for {}", binary.platform.triple()));
        let contents = Contents::new(binary, &generator.path)?;
        artifacts.push(archive::write(&folder, binary, &contents)?);
        artifacts.push(wheel::write(&folder, binary, &contents)?);
        artifacts.push(npm::write_platform(&folder, binary, &contents)?);
        if binary.platform.has_deb(binaries.iter().map(|binary| &binary.platform)) {
            artifacts.push(deb::write(&folder, binary, &contents)?);
        }
        if binary.platform.runs_here() {
            artifacts.push(bundle::write(&folder, binary, &contents)?);
        }
        container::write(&folder, binary, &contents)?;
        artifacts.push(sbom::write(&folder, binary)?);
    }
    for (platform, path) in &options.modules {
        artifacts.push(module::write(&folder, platform, path)?);
    }
    artifacts.push(npm::write_main(&folder, &binaries)?);
    sums::write(&folder, &artifacts)?;
    for artifact in &artifacts {
        let size = fs::metadata(&artifact.path)?.len();
        section(&format!("{} ({:.1} MB)", show(&artifact.path), megabytes(size)));
    }
    if options.check {
        check::run(&folder, &artifacts)?;
    }
    Ok(())
}

fn read_binaries(named: &[(Platform, PathBuf)]) -> anyhow::Result<Vec<Binary>> {
    let built;
    let named = if named.is_empty() {
        built = [build()?];
        &built[..]
    } else {
        named
    };
    named.iter().map(|(platform, path)| Binary::read(platform.clone(), path)).collect()
}

/// Builds the binary for this machine.
fn build() -> anyhow::Result<(Platform, PathBuf)> {
    section("building the binary of the release");
    cargo(&["build", "--locked", "--profile", "dist", "--package", "cofferdam-cli"])?;
    let platform = Platform::of_this_machine()?;
    let path = target_folder().join("dist").join(platform.executable());
    Ok((platform, path))
}

impl Binary {
    fn read(platform: Platform, path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", show(&path)))?;
        let linkage = match platform.is_linux() {
            true => Linkage::read(&bytes).with_context(|| show(&path))?,
            false => Linkage::default(),
        };
        if platform.is_static() && !linkage.is_static() {
            bail!(
                "{} asks for {}; a binary for {} links nothing",
                show(&path),
                linkage.libraries.join(", "),
                platform.triple()
            );
        }
        if platform.is_linux() && !linkage.is_position_independent {
            section(&format!(
                "warning: {} is not position independent, so its addresses are not random",
                show(&path)
            ));
        }
        Ok(Self { platform, linkage, bytes, path })
    }
}

fn parse_binary(argument: &str) -> Result<(Platform, PathBuf), String> {
    let (triple, path) = argument
        .split_once('=')
        .ok_or("expected TARGET=PATH, such as x86_64-unknown-linux-gnu=target/release/cofferdam")?;
    Ok((triple.parse()?, PathBuf::from(path)))
}

/// Runs the binary and returns its standard output.
fn output_of(program: &Path, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    command(text(program)?, arguments).output(&root())
}

/// Returns a path for messages, relative to the repository if it is in it.
fn show(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
