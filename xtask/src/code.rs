//! Builds the interpreters of code mode into `target/code/<language>.wasm`.

mod javascript;

use std::fs;
use std::path::PathBuf;

use anyhow::Context;

use crate::run::root;

/// Builds the interpreter of JavaScript. That of Python is a project, which `projects` builds. The
/// host must be built.
pub(crate) fn build() -> anyhow::Result<()> {
    javascript::build()
}

/// Checks format and code of the interpreter in Rust.
pub(crate) fn lint() -> anyhow::Result<()> {
    javascript::lint()
}

/// Runs the native tests of the interpreter in Rust.
pub(crate) fn test() -> anyhow::Result<()> {
    javascript::test()
}

/// Returns the path of an interpreter.
pub(crate) fn component(language: &str) -> anyhow::Result<PathBuf> {
    let folder = root().join("target/code");
    fs::create_dir_all(&folder).context("cannot create target/code")?;
    Ok(folder.join(format!("{language}.wasm")))
}
