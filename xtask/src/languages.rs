//! Builds guests of other languages than Rust that use no SDK: typed exports over the file API of
//! the language.
//!
//! A toolchain that is missing is installed in CI. Anywhere else that is said in a line, the
//! component is not there, and the tests that need it say so too. Nothing is built again that was
//! built from the same sources by the same recipe.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::guests::{copy_if_changed, plugins};
use crate::run::{command, root, section};
use crate::toolchains::{CLANG, COMPONENTIZE_PY, Toolchain, in_venv};

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
    toolchain: Toolchain,
    /// Writes the component to the path.
    build: fn(&Path) -> anyhow::Result<()>,
}

const LANGUAGES: [Language; 2] = [
    Language {
        name: "files_c",
        sources: &["tests/languages/c/files.c", "tests/languages/c/component.h"],
        recipe: &C_OPTIONS,
        toolchain: Toolchain::Clang,
        build: build_c,
    },
    Language {
        name: "files_python",
        sources: &["tests/languages/python/files.py"],
        recipe: &[COMPONENTIZE_PY],
        toolchain: Toolchain::Python,
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
        if !language.toolchain.is_ready()? {
            continue;
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
            &fs::read_to_string(root().join(source))
                .with_context(|| format!("cannot read {source}"))?,
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

fn text_of(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("the path of this repository is not UTF-8")
}

// C

const C_OPTIONS: [&str; 7] = [
    "--target=wasm32-wasi",
    "-mexec-model=reactor",
    "-std=gnu17",
    "-Os",
    "-Wall",
    "-Wextra",
    "-Werror",
];

/// The C library speaks the first preview of WASI; rustc's linker brings the adapter to the second.
fn build_c(to: &Path) -> anyhow::Result<()> {
    let tools = rust_tools()?;
    let tools = text_of(&tools)?;
    // Clang looks there for the linker that the first one runs.
    let search = format!("-B{tools}/gcc-ld");
    let linker = format!("-fuse-ld={tools}/wasm-component-ld");
    let linker_options = format!("-Wl,--wasi-adapter,reactor,--component-type,{WIT},--strip-all");
    let files =
        [&search, &linker, &linker_options, "-o", text_of(to)?, "tests/languages/c/files.c"];
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

fn build_python(to: &Path) -> anyhow::Result<()> {
    // It leaves caches beside what it reads.
    let folder = folder()?.join("python");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    copy_if_changed(&root().join("tests/languages/python/files.py"), &folder.join("files.py"))?;
    let componentize_py = in_venv("componentize-py");
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
