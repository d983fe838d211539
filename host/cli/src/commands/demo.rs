//! `cofferdam demo`: calls the tools of a plugin that is part of this program, as a user would.

use anyhow::Context as _;
use clap::Parser as _;

use crate::args::{Cli, Global};
use crate::exit::{self, Exit};
use crate::{ask, print};

/// Component built from `sample-tools/rust/tour`.
pub(super) static PLUGIN: &[u8] = include_bytes!("demo/tour.wasm");
const NOTES: &str = "# Plan\n\n## Today\n\nWrite a tool.\n";

/// Explanations, and the commands that follow them.
const STEPS: [(&str, &[&str]); 5] = [
    (
        "A tool from a WebAssembly component. Each call gets a fresh sandbox.",
        &["call", "count_words", "text=to be or not to be", "--plugin", "tour.wasm"],
    ),
    (
        "A tool has no files until you grant them. A call that lacks a grant names it.",
        &["call", "headings", "file=/notes/plan.md", "--plugin", "tour.wasm"],
    ),
    (
        "The same call with that grant.",
        &[
            "call",
            "headings",
            "file=/notes/plan.md",
            "--plugin",
            "tour.wasm",
            "--mount",
            "notes=notes:ro",
        ],
    ),
    (
        "A crash ends the sandbox of one call, and nothing else.",
        &[
            "call",
            "divide",
            "dividend:=1",
            "divisor:=0",
            "--plugin",
            "tour.wasm",
            "--mount",
            "notes=notes:ro",
        ],
    ),
    (
        "A tool that never ends is stopped.",
        &[
            "call",
            "count_forever",
            "--plugin",
            "tour.wasm",
            "--mount",
            "notes=notes:ro",
            "--timeout",
            "1s",
        ],
    ),
];

pub(crate) async fn run(global: &Global) -> anyhow::Result<Exit> {
    let global = Global {
        cache_dir: global.cache_dir.as_deref().map(std::path::absolute).transpose()?,
        ..global.clone()
    };
    let folder = tempfile::tempdir().context("no temporary directory can be created")?;
    let unwritable = || format!("{} cannot be written", folder.path().display());
    std::fs::write(folder.path().join("tour.wasm"), PLUGIN).with_context(unwritable)?;
    std::fs::create_dir(folder.path().join("notes")).with_context(unwritable)?;
    std::fs::write(folder.path().join("notes/plan.md"), NOTES).with_context(unwritable)?;
    let before = std::env::current_dir();
    std::env::set_current_dir(folder.path()).with_context(unwritable)?;
    ask::be_unattended();
    for (explanation, command) in STEPS {
        print::note(&format!("\n{explanation}"));
        print::note(&format!("$ cofferdam {}", quoted(command)));
        if call(&global, command).await? == Exit::Interrupted {
            return Ok(Exit::Interrupted);
        }
    }
    // The folder is removed afterwards; the program must not be in it.
    if let Ok(before) = before {
        std::env::set_current_dir(before)?;
    }
    print::note(
        "\nNext: `cofferdam new NAME --lang rust` creates a tool, `cofferdam config init --plugin \
         FILE` loads someone else's, and `cofferdam serve --help` serves them to MCP clients.",
    );
    Ok(Exit::Ok)
}

/// Runs a command, and prints its exit code.
async fn call(global: &Global, command: &[&str]) -> anyhow::Result<Exit> {
    let mut cli = Cli::try_parse_from(std::iter::once(&"cofferdam").chain(command))?;
    cli.global = global.clone();
    let exit = match Box::pin(super::run(cli)).await {
        Ok(exit) => exit,
        Err(error) => {
            print::error(&error);
            exit::of(&error)
        }
    };
    print::aside(&format!("exit code {}", exit as i32));
    Ok(exit)
}

/// Returns a command line with quotes around arguments with spaces.
fn quoted(command: &[&str]) -> String {
    let quoted = command.iter().map(|word| match word.split_once('=') {
        Some((key, value)) if value.contains(' ') => format!("{key}='{value}'"),
        _ => (*word).to_owned(),
    });
    quoted.collect::<Vec<_>>().join(" ")
}
