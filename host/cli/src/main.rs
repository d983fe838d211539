//! `cofferdam`: runs tools of WebAssembly plugins, each call in a sandbox of its own.
//!
//! This crate is the only place that reads the environment, the working directory and the command line, that prints,
//! and that wires the other crates together. Results go to standard output, everything else to standard error.

mod args;
mod commands;
mod compose;
mod config;
mod exit;
mod json;
mod print;

use std::time::Duration;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::exit::Exit;

fn main() -> std::process::ExitCode {
    let cli = Cli::parse();
    // Before any thread exists: the child limits itself and must not share its memory limit with a runtime.
    if matches!(cli.command, Command::CompileChild) {
        return match cofferdam_engine::compile_child() {
            Ok(()) => Exit::Ok.into(),
            Err(_) => Exit::Internal.into(),
        };
    }
    start_log();
    match run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => {
            print::error(&error);
            exit::of(&error).into()
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    // One thread is enough for one person's calls and starts fastest.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(commands::run(cli));
    // A guest may have left a thread blocked in a file operation; the process does not wait for it.
    runtime.shutdown_timeout(Duration::from_millis(20));
    result
}

/// Diagnostics of the host, for people who ask for them: `COFFERDAM_LOG=debug`.
fn start_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("COFFERDAM_LOG");
    if let Ok(filter) = filter {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
}
