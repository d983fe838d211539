//! The main job on real input: a scripted model works with sandboxed tools on this repository's own files.

use anyhow::Context;

use crate::guests;
use crate::run::{command, root, section};

/// The plugins that the model is given.
const PLUGINS: [&str; 4] = ["text", "csv", "markdown", "crash"];
const SCRIPT: &str = "sample-tools/demo/script.jsonl";

/// Builds everything and plays the script.
pub(crate) fn run() -> anyhow::Result<()> {
    guests::build()?;
    section("building the host");
    crate::build()?;

    section("a stranger's component: what does it ask for?");
    cofferdam(&["inspect", "target/plugins/markdown.wasm"])?;

    section("a scripted model works on files of this repository, mounted read-only as /docs and /data");
    let plugin_paths = PLUGINS.map(|name| format!("target/plugins/{name}.wasm"));
    let mut play =
        vec!["play", SCRIPT, "--mount", "docs=docs:ro", "--mount", "data=sample-tools/demo/data:ro"];
    for path in &plugin_paths {
        play.extend(["--plugin", path]);
    }
    cofferdam(&play)?;

    section(
        "that was it: one tool trapped on purpose, the model saw an error it can act on, and the rest went on",
    );
    Ok(())
}

fn cofferdam(arguments: &[&str]) -> anyhow::Result<()> {
    show(arguments);
    let program = root().join("target/debug/cofferdam");
    let program = program.to_str().context("the path of this repository is not UTF-8")?;
    command(program, arguments).run(&root())
}

#[expect(clippy::print_stderr, reason = "a demonstration shows what it runs")]
fn show(arguments: &[&str]) {
    eprintln!("$ cofferdam {}\n", arguments.join(" "));
}
