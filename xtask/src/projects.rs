//! Builds plugins with `cofferdam build`, like an author: those of `guest-sdk/conformance`, the
//! sample tools in other languages than Rust, and the interpreter of programs in Python.
//!
//! The components are written to `target/plugins/<name>.wasm`, that of the interpreter to
//! `target/code`. A component is built again only if a
//! file that it depends on has changed.

use std::collections::HashMap;
use std::collections::hash_map::{DefaultHasher, Entry};
use std::fs;
use std::hash::{Hash, Hasher};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

use anyhow::Context;
use serde::Deserialize;

use crate::guests::{copy_if_changed, plugins};
use crate::run::{command, root, section};
use crate::toolchains::{Toolchain, path};

/// Names of folders that builds write, which are not sources.
const WRITTEN: [&str; 7] =
    ["dist", "target", "node_modules", "__pycache__", ".cofferdam", ".venv", "vendor"];

/// Folder that `cofferdam build` turns into a component.
struct Project {
    /// Path relative to the root.
    folder: PathBuf,
    /// Name of the component, as in `target/plugins/<name>.wasm`.
    name: String,
    /// Name of the SDK's folder.
    sdk: &'static str,
    /// Toolchain of the language. `None` for Rust, which is always installed.
    toolchain: Option<Toolchain>,
    /// Whether it is an interpreter of code mode.
    is_interpreter: bool,
}

/// Builds the projects whose toolchain is installed. The host must be built.
pub(crate) fn build() -> anyhow::Result<()> {
    build_all(projects()?)
}

/// Builds the interpreters of code mode. The host must be built.
pub(crate) fn build_interpreters() -> anyhow::Result<()> {
    build_all(projects()?.into_iter().filter(|project| project.is_interpreter))
}

/// Builds the projects that have changed, as many at a time as there are cores: most compilers of
/// other languages use one.
fn build_all(projects: impl IntoIterator<Item = Project>) -> anyhow::Result<()> {
    let queue = Mutex::new(outdated(projects)?.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let build = || {
        let built = std::iter::from_fn(next).try_for_each(|outdated| outdated.build());
        // The others begin no further build after an error.
        if built.is_err() {
            std::iter::from_fn(next).for_each(drop);
        }
        built
    };
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        let builders: Vec<_> = (0..cores).map(|_| scope.spawn(build)).collect();
        let join = |builder: ScopedJoinHandle<'_, _>| {
            builder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // Waits for all of them, also after an error.
        let ended: Vec<_> = builders.into_iter().map(join).collect();
        ended.into_iter().collect()
    })
}

/// Project whose component has to be built.
struct OutdatedProject {
    project: Project,
    component: PathBuf,
    stamp: PathBuf,
    digest: String,
}

impl OutdatedProject {
    fn build(&self) -> anyhow::Result<()> {
        let Self { project, component, stamp, digest } = self;
        project.build(component)?;
        fs::create_dir_all(root().join("target/languages"))?;
        fs::write(stamp, digest).with_context(|| format!("cannot write {}", stamp.display()))
    }
}

/// Returns the projects that have changed and whose toolchain is installed, and removes their
/// components, so that no test uses them if a build fails.
fn outdated(projects: impl IntoIterator<Item = Project>) -> anyhow::Result<Vec<OutdatedProject>> {
    // Each toolchain is checked once, so that a missing one causes only one note.
    let mut ready: HashMap<Toolchain, bool> = HashMap::new();
    let mut outdated = Vec::new();
    for project in projects {
        let component = project.component()?;
        let stamp = root().join("target/languages").join(format!("{}.stamp", project.name));
        let digest = project.digest()?;
        if component.is_file() && fs::read_to_string(&stamp).is_ok_and(|built| built == digest) {
            continue;
        }
        let is_ready = match project.toolchain {
            None => true,
            Some(toolchain) => match ready.entry(toolchain) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(toolchain.is_ready()?),
            },
        };
        if component.is_file() {
            fs::remove_file(&component)
                .with_context(|| format!("cannot remove {}", component.display()))?;
        }
        if is_ready {
            outdated.push(OutdatedProject { project, component, stamp, digest });
        }
    }
    Ok(outdated)
}

/// Returns all projects: folders with a `plugin.toml`.
fn projects() -> anyhow::Result<Vec<Project>> {
    let mut projects = Vec::new();
    for folder in folders("guest-sdk/conformance")? {
        let language = name_of(&folder);
        let name = format!("conformance_{language}");
        projects.push(Project::new(folder, name, &language)?);
    }
    for language in ["python", "javascript", "go", "c", "cpp"] {
        for folder in folders(&format!("sample-tools/{language}"))? {
            let name = name_of(&folder);
            projects.push(Project::new(folder, name, language)?);
        }
    }
    let interpreter = Path::new("guest-sdk/code/python").to_owned();
    let project = Project::new(interpreter, "code_python".to_owned(), "python")?;
    projects.push(Project { is_interpreter: true, ..project });
    Ok(projects)
}

fn folders(parent: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in
        fs::read_dir(root().join(parent)).with_context(|| format!("cannot read {parent}"))?
    {
        let entry = entry?;
        if entry.path().join("plugin.toml").is_file() {
            folders.push(Path::new(parent).join(entry.file_name()));
        }
    }
    folders.sort();
    Ok(folders)
}

fn name_of(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl Project {
    fn new(folder: PathBuf, name: String, language: &str) -> anyhow::Result<Self> {
        let (sdk, toolchain) = match language {
            "rust" => ("rust", None),
            "python" => ("python", Some(Toolchain::Python)),
            "javascript" | "typescript" => ("javascript", Some(Toolchain::Node)),
            "go" => ("go", Some(Toolchain::Go)),
            "c" | "cpp" => ("c", Some(Toolchain::Clang)),
            "zig" => ("zig", Some(Toolchain::Zig)),
            other => anyhow::bail!("{}: no toolchain is known for {other}", folder.display()),
        };
        Ok(Self { folder, name, sdk, toolchain, is_interpreter: false })
    }

    /// Returns the path of the component.
    fn component(&self) -> anyhow::Result<PathBuf> {
        match self.is_interpreter {
            true => crate::code::component("python"),
            false => Ok(plugins()?.join(format!("{}.wasm", self.name))),
        }
    }

    fn build(&self, component: &Path) -> anyhow::Result<()> {
        section(&format!("building {}", self.folder.display()));
        let folder = root().join(&self.folder);
        let path = path();
        let path = path.to_str().context("the PATH is not UTF-8")?;
        if fs::read_to_string(folder.join("package.json"))
            .is_ok_and(|text| text.contains("\"dependencies\""))
        {
            // Not `npm ci`: some lock files lack packages for other platforms, because publishers
            // left them out.
            let install = ["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"];
            command("npm", &install).env("PATH", path).run(&folder)?;
        }
        if folder.join("amalgamation/Cargo.toml").is_file() {
            vendor(&folder)?;
        }
        let program = root().join("target/debug/cofferdam");
        let text = |path: &Path| {
            path.to_str().map(str::to_owned).context("the path of this repository is not UTF-8")
        };
        let (program, component) = (text(&program)?, text(component)?);
        command(&program, &["build", "--output", &component])
            .env("PATH", path)
            // Shares compiled components with the tests.
            .env("COFFERDAM_CACHE_DIR", &text(&root().join("target/test-cache"))?)
            .run(&folder)
    }

    /// Returns a hash of everything that determines the content of the component.
    fn digest(&self) -> anyhow::Result<String> {
        let mut hasher = DefaultHasher::new();
        let sdk = Path::new("guest-sdk").join(self.sdk);
        for tree in [&*self.folder, &sdk, Path::new("wit"), Path::new("host/author/src")] {
            hash_tree(&root().join(tree), &mut hasher)?;
        }
        if self.toolchain == Some(Toolchain::Zig) {
            // The SDK is written over that of C.
            hash_tree(&root().join("guest-sdk/c"), &mut hasher)?;
        }
        Ok(format!("{:016x}", hasher.finish()))
    }
}

fn hash_tree(folder: &Path, hasher: &mut DefaultHasher) -> anyhow::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (name, path) = (entry.file_name(), entry.path());
        if name.to_str().is_some_and(|name| WRITTEN.contains(&name)) {
            continue;
        }
        name.hash(hasher);
        if path.is_dir() {
            hash_tree(&path, hasher)?;
        } else {
            fs::read(&path)
                .with_context(|| format!("cannot read {}", path.display()))?
                .hash(hasher);
        }
    }
    Ok(())
}

/// The part of cargo's metadata that is needed here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    manifest_path: PathBuf,
}

/// Copies the sources of SQLite from the crate that contains them, which `amalgamation/Cargo.lock`
/// pins. They are a quarter of a million lines of third-party code, so they are not in this
/// repository.
fn vendor(folder: &Path) -> anyhow::Result<()> {
    let manifest = folder.join("amalgamation/Cargo.toml");
    let metadata = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked", "--manifest-path"])
        .arg(&manifest)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo metadata")?;
    let metadata: Metadata = serde_json::from_slice(&metadata.stdout)
        .with_context(|| format!("cargo metadata says nothing of {}", manifest.display()))?;
    let sources = metadata
        .packages
        .iter()
        .filter_map(|package| Some(package.manifest_path.parent()?.join("sqlite3")))
        .find(|sources| sources.join("sqlite3.c").is_file())
        .context("no crate of the amalgamation has sqlite3/sqlite3.c")?;
    let vendor = folder.join("vendor");
    fs::create_dir_all(&vendor)?;
    for name in ["sqlite3.c", "sqlite3.h"] {
        copy_if_changed(&sources.join(name), &vendor.join(name))?;
    }
    Ok(())
}
