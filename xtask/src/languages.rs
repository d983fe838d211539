//! Builds guests in other languages that use no SDK: typed exports that use the file API of the
//! language.
//!
//! If a toolchain is missing, CI installs it. Other machines print a note and do not build the
//! component, and the tests that need it print a note too. A component is built again only if its
//! sources or its recipe have changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::guests::{copy_if_changed, plugins};
use crate::run::{command, root, section};
use crate::toolchains::{CLANG, COMPONENTIZE_PY, Toolchain, in_venv};

/// Interface that all of these guests export.
const WIT: &str = "tests/languages/files.wit";

/// A guest of one language.
struct Language {
    /// Name of the component, as in `target/plugins/<name>.wasm`.
    name: &'static str,
    /// Source files besides the interface. A change of one rebuilds the component.
    sources: &'static [&'static str],
    /// Options and versions of the build. A change rebuilds the component.
    recipe: &'static [&'static str],
    toolchain: Toolchain,
    /// Writes the component to a path.
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

/// Builds the guests whose toolchain is installed.
pub(crate) fn build() -> anyhow::Result<()> {
    for language in &LANGUAGES {
        let component = plugins()?.join(format!("{}.wasm", language.name));
        let stamp = folder()?.join(format!("{}.stamp", language.name));
        let inputs = inputs(language)?;
        if component.is_file() && fs::read_to_string(&stamp).is_ok_and(|built| built == inputs) {
            continue;
        }
        // Removes the outdated component, so that no test uses it if the build fails.
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

/// Returns everything that determines the content of the component, as a string.
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

const C_OPTIONS: [&str; 7] = [
    "--target=wasm32-wasi",
    "-mexec-model=reactor",
    "-std=gnu17",
    "-Os",
    "-Wall",
    "-Wextra",
    "-Werror",
];

/// Builds a guest in C. wasi-libc targets WASI preview 1; the linker of rustc contains the adapter
/// to preview 2.
fn build_c(to: &Path) -> anyhow::Result<()> {
    let tools = rust_tools()?;
    let tools = text_of(&tools)?;
    // Folder in which clang finds the linker that `wasm-component-ld` runs.
    let search = format!("-B{tools}/gcc-ld");
    let linker = format!("-fuse-ld={tools}/wasm-component-ld");
    let linker_options = format!("-Wl,--wasi-adapter,reactor,--component-type,{WIT},--strip-all");
    let files =
        [&search, &linker, &linker_options, "-o", text_of(to)?, "tests/languages/c/files.c"];
    command(CLANG, &[&C_OPTIONS[..], &files].concat()).run(&root())
}

/// Returns the folder with rustc's own programs.
fn rust_tools() -> anyhow::Result<PathBuf> {
    let said = Command::new("rustc")
        .args(["--print", "target-libdir"])
        .current_dir(root())
        .output()
        .context("cannot run rustc")?;
    let libraries = PathBuf::from(String::from_utf8(said.stdout)?.trim());
    Ok(libraries.parent().context("rustc names no folder of its libraries")?.join("bin"))
}

fn build_python(to: &Path) -> anyhow::Result<()> {
    // Python writes caches next to sources, so the build uses a copy.
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
