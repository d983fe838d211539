//! Builds the guests of other languages than Rust, each with the toolchain that its programmers use.
//!
//! A toolchain that is missing is installed in CI. Anywhere else that is said in a line, the component is not there, and the
//! tests that need it say so too. Nothing is built again that was built from the same sources by the same recipe.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;

use crate::guests::{copy_if_changed, plugins};
use crate::run::{Step, command, is_ci, root, section};

/// The newest compiler with packages of its parts for WebAssembly. Its name pins the version.
const CLANG: &str = "clang-19";
/// What the C guest is built with. The linker is rustc's, which makes components.
const C_PACKAGES: [&str; 3] = [CLANG, "libclang-rt-19-dev-wasm32", "wasi-libc"];
/// Where Debian has the C library of WASI.
const C_LIBRARY: &str = "/usr/lib/wasm32-wasi/libc.a";

/// Turns Python modules into components; it holds the interpreter.
const COMPONENTIZE_PY: &str = "componentize-py==0.25.1";
/// Where it is installed.
const VENV: &str = "target/languages/venv";

/// What all of them export.
const WIT: &str = "tests/languages/files.wit";

/// A guest of one language.
struct Language {
    /// As in `target/plugins/<name>.wasm`.
    name: &'static str,
    /// What it is made of besides the interface. A change of one of them builds it again.
    sources: &'static [&'static str],
    /// Versions and options. A change of them builds it again.
    recipe: &'static [&'static str],
    /// What a person types to get the toolchain.
    advice: &'static str,
    is_there: fn() -> bool,
    install: fn() -> anyhow::Result<()>,
    /// Writes the component to the path.
    build: fn(&Path) -> anyhow::Result<()>,
}

const LANGUAGES: [Language; 2] = [
    Language {
        name: "files_c",
        sources: &["tests/languages/c/files.c", "tests/languages/c/component.h"],
        recipe: &C_OPTIONS,
        advice: "apt-get install clang-19 libclang-rt-19-dev-wasm32 wasi-libc",
        is_there: has_c,
        install: install_c,
        build: build_c,
    },
    Language {
        name: "files_python",
        sources: &["tests/languages/python/files.py"],
        recipe: &[COMPONENTIZE_PY],
        advice: "python3 -m venv target/languages/venv && target/languages/venv/bin/pip install componentize-py==0.25.1",
        is_there: has_python,
        install: install_python,
        build: build_python,
    },
];

/// Builds those whose toolchain is there.
pub(crate) fn build() -> anyhow::Result<()> {
    for language in &LANGUAGES {
        let component = plugins()?.join(format!("{}.wasm", language.name));
        let stamp = folder()?.join(format!("{}.stamp", language.name));
        let inputs = inputs(language)?;
        if component.is_file() && fs::read_to_string(&stamp).is_ok_and(|built| built == inputs) {
            continue;
        }
        // What was built from something else is worse than nothing.
        remove(&component)?;
        if !(language.is_there)() {
            if !is_ci() {
                section(&format!("{} is not built: {}", language.name, language.advice));
                continue;
            }
            section(&format!("installing the toolchain of {}", language.name));
            (language.install)()?;
        }
        section(&format!("building {}", language.name));
        let built = folder()?.join(format!("{}.wasm", language.name));
        (language.build)(&built)?;
        copy_if_changed(&built, &component)?;
        fs::write(&stamp, inputs).with_context(|| format!("cannot write {}", stamp.display()))?;
    }
    Ok(())
}

/// Everything that makes a component another one, as text.
fn inputs(language: &Language) -> anyhow::Result<String> {
    let mut text = language.recipe.join("\n");
    for source in language.sources.iter().chain([&WIT]) {
        text.push_str(
            &fs::read_to_string(root().join(source)).with_context(|| format!("cannot read {source}"))?,
        );
    }
    Ok(text)
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

fn folder() -> anyhow::Result<PathBuf> {
    let folder = root().join("target/languages");
    fs::create_dir_all(&folder).context("cannot create target/languages")?;
    Ok(folder)
}

/// Whether a program runs and is content.
fn succeeds(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn text_of(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("the path of this repository is not UTF-8")
}

fn apt_get(arguments: &[&str]) -> Step {
    command("apt-get", arguments).env("DEBIAN_FRONTEND", "noninteractive")
}

fn apt_install(packages: &[&str]) -> anyhow::Result<()> {
    apt_get(&["update", "--quiet"]).run(&root())?;
    let install = ["install", "--quiet", "--yes", "--no-install-recommends"];
    apt_get(&[&install, packages].concat()).run(&root())
}

// C

const C_OPTIONS: [&str; 7] =
    ["--target=wasm32-wasi", "-mexec-model=reactor", "-std=gnu17", "-Os", "-Wall", "-Wextra", "-Werror"];

fn has_c() -> bool {
    let builtins = Command::new(CLANG).args(["--target=wasm32-wasi", "--print-libgcc-file-name"]).output();
    let builtins = builtins.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    Path::new(C_LIBRARY).is_file() && builtins.is_ok_and(|path| Path::new(&path).is_file())
}

fn install_c() -> anyhow::Result<()> {
    apt_install(&C_PACKAGES)
}

/// The C library speaks the first preview of WASI; rustc's linker brings the adapter to the second.
fn build_c(to: &Path) -> anyhow::Result<()> {
    let tools = rust_tools()?;
    let tools = text_of(&tools)?;
    // Clang looks there for the linker that the first one runs.
    let search = format!("-B{tools}/gcc-ld");
    let linker = format!("-fuse-ld={tools}/wasm-component-ld");
    let linker_options = format!("-Wl,--wasi-adapter,reactor,--component-type,{WIT},--strip-all");
    let files = [&search, &linker, &linker_options, "-o", text_of(to)?, "tests/languages/c/files.c"];
    command(CLANG, &[&C_OPTIONS[..], &files].concat()).run(&root())
}

/// Where rustc has the programs that it runs itself.
fn rust_tools() -> anyhow::Result<PathBuf> {
    let said = Command::new("rustc")
        .args(["--print", "target-libdir"])
        .current_dir(root())
        .output()
        .context("cannot run rustc")?;
    let libraries = PathBuf::from(String::from_utf8(said.stdout)?.trim());
    Ok(libraries.parent().context("rustc names no folder of its libraries")?.join("bin"))
}

// Python

fn componentize_py() -> PathBuf {
    root().join(VENV).join("bin/componentize-py")
}

/// Whether it is there in its version.
fn has_python() -> bool {
    let said = Command::new(componentize_py()).arg("--version").output();
    let version = COMPONENTIZE_PY.replace("==", " ");
    said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).trim() == version)
}

fn install_python() -> anyhow::Result<()> {
    if !succeeds("python3", &["-c", "import ensurepip, venv"]) {
        apt_install(&["python3", "python3-venv"])?;
    }
    command("python3", &["-m", "venv", VENV]).run(&root())?;
    let pip = root().join(VENV).join("bin/pip");
    command(text_of(&pip)?, &["install", "--quiet", "--disable-pip-version-check", COMPONENTIZE_PY])
        .run(&root())
}

fn build_python(to: &Path) -> anyhow::Result<()> {
    // It leaves caches beside what it reads.
    let folder = folder()?.join("python");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    copy_if_changed(&root().join("tests/languages/python/files.py"), &folder.join("files.py"))?;
    let componentize_py = componentize_py();
    let arguments = [
        "--quiet",
        "--wit-path",
        WIT,
        "--world",
        "plugin",
        "componentize",
        "files",
        "--python-path",
        text_of(&folder)?,
        "--output",
        text_of(to)?,
    ];
    command(text_of(&componentize_py)?, &arguments).run(&root())
}
