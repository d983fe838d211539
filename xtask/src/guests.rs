//! Builds guests: the sample tools in Rust, the misbehaving test programs, and the components with
//! typed exports.
//!
//! The components are copied to `target/plugins/<name>.wasm`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::packages::text;
use crate::run::{command, root, section};

/// Target that guests are compiled for.
pub(crate) const TARGET: &str = "wasm32-wasip2";
/// Build directory of all guests. Their workspaces share dependencies.
pub(crate) const BUILD_DIR: &str = "target/guests";

/// Workspace of guests with its own lock file.
pub(crate) struct Workspace {
    pub(crate) folder: &'static str,
    /// Cargo targets to build.
    targets: Targets,
    /// True if its crates have tests that run natively.
    has_native_tests: bool,
}

#[derive(Clone, Copy)]
enum Targets {
    Libraries,
    Examples,
}

impl Targets {
    fn flag(self) -> &'static str {
        match self {
            Self::Libraries => "--lib",
            Self::Examples => "--examples",
        }
    }

    /// Returns the folder into which cargo writes these targets.
    fn folder(self) -> &'static str {
        match self {
            Self::Libraries => "release",
            Self::Examples => "release/examples",
        }
    }
}

const SAMPLES: &str = "sample-tools/rust";

/// All workspaces of guests.
pub(crate) const WORKSPACES: &[Workspace] = &[
    Workspace { folder: SAMPLES, targets: Targets::Libraries, has_native_tests: true },
    Workspace { folder: "tests/programs", targets: Targets::Examples, has_native_tests: false },
    Workspace { folder: "tests/mcp/plugin", targets: Targets::Libraries, has_native_tests: false },
    Workspace { folder: "tests/typed", targets: Targets::Examples, has_native_tests: false },
];

/// Builds all guests and collects their components.
pub(crate) fn build() -> anyhow::Result<()> {
    add_target()?;
    WORKSPACES.iter().try_for_each(Workspace::build)
}

/// Builds the sample tools in Rust.
pub(crate) fn build_samples() -> anyhow::Result<()> {
    add_target()?;
    WORKSPACES.iter().filter(|workspace| workspace.folder == SAMPLES).try_for_each(Workspace::build)
}

/// Component that `cofferdam demo` calls, and the sample tool that it is built from.
const TOUR: &str = "host/cli/src/commands/demo/tour.wasm";

/// Builds the component of `cofferdam demo`. It holds no paths of this machine.
pub(crate) fn build_tour() -> anyhow::Result<()> {
    add_target()?;
    let home = std::env::var("CARGO_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cargo")))?;
    let here = text(&root())?.to_owned();
    let mut flags = format!("--remap-path-prefix={here}=. --remap-path-prefix={home}=cargo");
    // Folders of registries are named after their hosts.
    for registry in fs::read_dir(Path::new(&home).join("registry/src")).into_iter().flatten() {
        flags.push_str(&format!(" --remap-path-prefix={}=cargo", registry?.path().display()));
    }
    let target = root().join("target/tour");
    command("cargo", &["build", "--release", "--package", "tour", "--target", TARGET, "--lib"])
        .env("CARGO_TARGET_DIR", text(&target)?)
        .env("RUSTFLAGS", &flags)
        .run(&root().join(SAMPLES))?;
    copy_if_changed(&target.join(TARGET).join("release/tour.wasm"), &root().join(TOUR))
}

/// Checks all guests with clippy. Uses the release profile, like the build, so that procedural
/// macros are compiled only once.
pub(crate) fn lint() -> anyhow::Result<()> {
    add_target()?;
    for workspace in WORKSPACES {
        workspace.cargo(&[
            "clippy",
            "--workspace",
            "--release",
            "--target",
            TARGET,
            "--",
            "--deny",
            "warnings",
        ])?;
    }
    Ok(())
}

/// Runs the native tests of guests.
pub(crate) fn test() -> anyhow::Result<()> {
    for workspace in WORKSPACES.iter().filter(|workspace| workspace.has_native_tests) {
        workspace.cargo(&["test", "--quiet", "--workspace"])?;
    }
    Ok(())
}

impl Workspace {
    /// Builds the workspace and collects its components.
    fn build(&self) -> anyhow::Result<()> {
        section(&format!("building the guests in {}", self.folder));
        self.cargo(&[
            "build",
            "--workspace",
            "--release",
            "--target",
            TARGET,
            self.targets.flag(),
        ])?;
        collect(&root().join(BUILD_DIR).join(TARGET).join(self.targets.folder()), &plugins()?)
    }

    /// Runs cargo in the workspace.
    fn cargo(&self, arguments: &[&str]) -> anyhow::Result<()> {
        // An environment variable, because `arguments` may end with arguments of another program.
        command("cargo", arguments)
            .env("CARGO_TARGET_DIR", text(&root().join(BUILD_DIR))?)
            .run(&root().join(self.folder))
    }
}

/// Returns the folder of components.
pub(crate) fn plugins() -> anyhow::Result<PathBuf> {
    let plugins = root().join("target/plugins");
    fs::create_dir_all(&plugins).context("cannot create target/plugins")?;
    Ok(plugins)
}

fn collect(from: &Path, to: &Path) -> anyhow::Result<()> {
    let entries =
        fs::read_dir(from).with_context(|| format!("nothing was built in {}", from.display()))?;
    for entry in entries {
        let path = entry?.path();
        // Cargo also writes a copy of each example with a dash and a hash in its name.
        if path.extension().is_some_and(|extension| extension == "wasm")
            && let Some(name) = path.file_name()
            && !name.to_string_lossy().contains('-')
        {
            copy_if_changed(&path, &to.join(name))?;
        }
    }
    Ok(())
}

/// Copies a file unless the content is the same. A needless copy would change the time of the file,
/// and tests that depend on it would run again.
pub(crate) fn copy_if_changed(from: &Path, to: &Path) -> anyhow::Result<()> {
    let built = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|there| there == built) {
        return Ok(());
    }
    fs::write(to, built).with_context(|| format!("cannot write {}", to.display()))
}

/// Installs the target of guests unless it is installed.
pub(crate) fn add_target() -> anyhow::Result<()> {
    let installed = Command::new("rustup")
        .args(["target", "list", "--installed"])
        .current_dir(root())
        .output()
        .context(
            "cannot run rustup; install it, or add the target wasm32-wasip2 to your toolchain",
        )?;
    if String::from_utf8_lossy(&installed.stdout).lines().any(|line| line == TARGET) {
        return Ok(());
    }
    section(&format!("adding the Rust target {TARGET}"));
    command("rustup", &["target", "add", TARGET]).run(&root())
}
