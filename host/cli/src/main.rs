//! `cofferdam`: runs tools of WebAssembly plugins, each call in a sandbox of its own.
//!
//! This crate is the only place that reads the environment, the working directory and the command
//! line, that prints, and that wires the other crates together. Results go to standard output,
//! everything else to standard error.

mod args;
mod ask;
mod commands;
mod exit;
mod file_changes;
mod host;
mod lines;
mod memory;
mod print;
mod rebuild;
mod terminal;

use std::time::Duration;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::exit::Exit;

/// Every call allocates a hundred times, on all cores.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // Before any thread exists: the child that compiles limits itself and must not share its memory
    // limit with a runtime.
    cofferdam::init();
    let cli = Cli::parse();
    limit_process();
    start_log(&cli.command);
    if cli.global.no_input {
        ask::refuse_all();
    }
    let ended = run(cli);
    cofferdam_terminal::restore();
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            print::error(&error);
            exit::of(&error).into()
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<Exit> {
    let mut runtime = match &cli.command {
        // Many clients at once.
        Command::Serve(args) if args.http.is_some() => tokio::runtime::Builder::new_multi_thread(),
        Command::Dev(args) if args.serve.http.is_some() => {
            tokio::runtime::Builder::new_multi_thread()
        }
        // One thread is enough for the operator or one client, and starts fastest. A call that
        // computes has threads of its own, and handing each message to another thread would cost
        // more than a small call.
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = runtime.enable_all().build()?;
    memory::watch(runtime.handle());
    let result = runtime.block_on(commands::run(cli));
    // A guest may have left a thread blocked in a file operation; the process does not wait for it.
    runtime.shutdown_timeout(Duration::from_millis(20));
    result
}

/// Limits core dumps and raises the number of open files. Where that cannot be set nothing else is
/// lost.
fn limit_process() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        // A core file would hold the secrets that were read.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        // Every connection and file of every call counts, and the usual 1024 is a default of
        // another age.
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Filter of the log without `COFFERDAM_LOG` while tools are served: calls that failed.
const SERVED_LOG: &str = "cofferdam::call=warn";

/// Filter of the log of the SDK for MCP, which logs every message and every notification at `info`.
const SDK_LOG: &str = "rmcp=warn";

/// Diagnostics of the host on standard error: `COFFERDAM_LOG=debug`, and
/// `COFFERDAM_LOG_FORMAT=json` for programs that read them.
fn start_log(command: &Command) {
    use tracing_subscriber::EnvFilter;
    let is_served = matches!(command, Command::Serve(_) | Command::Dev(_));
    let level = std::env::var("COFFERDAM_LOG").ok().filter(|level| !level.is_empty());
    let filter = match level {
        // A level is about this program; libraries say what is wrong with them.
        Some(level) if level.parse::<tracing::Level>().is_ok() => {
            EnvFilter::new(format!("warn,cofferdam={level}"))
        }
        // One that is named in the filter comes later, and counts.
        Some(filter) => match format!("{SDK_LOG},{filter}").parse() {
            Ok(filter) => filter,
            Err(error) => {
                print::note(&format!("warning: COFFERDAM_LOG is ignored: {error}"));
                return;
            }
        },
        None if is_served => EnvFilter::new(SERVED_LOG),
        None => return,
    };
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::env::var("COFFERDAM_LOG_FORMAT").is_ok_and(|format| format == "json") {
        log.json().flatten_event(true).init();
    } else {
        log.with_ansi(false).init();
    }
}
