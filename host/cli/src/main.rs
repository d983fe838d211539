//! `cofferdam`: runs tools of WebAssembly plugins, each call in its own sandbox.
//!
//! Only this crate reads the environment, the working directory and the command line, prints, and
//! wires the other crates together. Results go to standard output, everything else to standard
//! error.

mod args;
mod arguments;
mod ask;
mod commands;
mod exit;
mod explain;
mod file_changes;
mod host;
mod inspector;
mod lines;
mod memory;
mod pager;
mod print;
mod progress;
mod rebuild;
mod signals;
mod terminal;

use std::time::Duration;

use clap::Parser;
use cofferdam_mcp::client::RemoteServer;

use crate::args::{Cli, Command};
use crate::exit::Exit;

/// Global allocator. Every call makes about a hundred allocations, on all cores.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    // Runs before any thread exists: the child process that compiles limits its own memory, and
    // must not share that limit with a runtime.
    cofferdam::init();
    let is_json = std::env::args_os().any(|argument| argument == "--json");
    let is_pipe = std::env::args_os().nth(1).is_some_and(|command| command == "pipe");
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if error.use_stderr() {
                report_usage_error(&error.to_string(), is_json, is_pipe);
            }
            error.exit()
        }
    };
    print::set_color(cli.global.color);
    limit_process();
    start_log(&cli.command);
    if cli.global.no_input {
        ask::refuse_all();
    }
    let ended = commands::trust::find_config(&mut cli).and_then(|()| run(cli));
    cofferdam_terminal::restore();
    match ended {
        Ok(exit) => exit.into(),
        Err(error) => {
            let exit = exit::of(&error);
            if is_json {
                print::json_error(exit, &format!("{error:#}"));
            }
            print::error(&error);
            exit.into()
        }
    }
}

/// Prints an error in the command line for a program that reads standard output.
fn report_usage_error(error: &str, is_json: bool, is_pipe: bool) {
    let message = error.strip_prefix("error: ").unwrap_or(error).trim_end();
    if is_json {
        print::json_error(Exit::Usage, message);
    } else if is_pipe {
        // The rest is how to use the command, which the program has not called by hand.
        let problem = message.split("\n\n").next().unwrap_or(message);
        print::pipe_failure(Exit::Usage, problem);
    }
}

/// Maximum time to wait, at the end, for tokens that a server has been asked for.
const TOKENS_WAIT_MAX: Duration = Duration::from_secs(10);

fn run(cli: Cli) -> anyhow::Result<Exit> {
    let mut runtime = match &cli.command {
        // Serves many clients at once.
        Command::Serve(args) if args.http.is_some() => tokio::runtime::Builder::new_multi_thread(),
        Command::Dev(args) if args.serve.http.is_some() => {
            tokio::runtime::Builder::new_multi_thread()
        }
        // One thread is enough for an operator or one client, and starts fastest. Calls that
        // compute have their own threads, and passing each message to another thread would cost
        // more than a small call.
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = runtime.enable_all().build()?;
    memory::watch(runtime.handle());
    let handles_termination = commands::handles_termination(&cli.command);
    let command = commands::run(cli);
    let result = match handles_termination {
        true => runtime.block_on(command),
        false => runtime.block_on(signals::until_terminated(command)),
    };
    // A refresh that the process does not wait for has used its token up.
    runtime.block_on(RemoteServer::tokens_stored(TOKENS_WAIT_MAX));
    // A guest can leave a thread blocked in a file operation. The process does not wait for it.
    runtime.shutdown_timeout(Duration::from_millis(20));
    result
}

/// Disables core dumps and raises the limit of open files. Errors are ignored, because the program
/// works without either.
fn limit_process() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        // A core file would contain the secrets that the process has read.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        // Connections and open files of all calls count against the limit, and the usual default of
        // 1024 is too low.
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Log filter while tools are served and `COFFERDAM_LOG` is not set: calls that failed.
const SERVED_LOG: &str = "cofferdam::call=warn";

/// Log filter for the MCP SDK, which logs every message and notification at `info`.
const SDK_LOG: &str = "rmcp=warn";

/// Starts the host's log on standard error. `COFFERDAM_LOG` sets its filter, as in
/// `COFFERDAM_LOG=debug`; `COFFERDAM_LOG_FORMAT=json` sets a format for programs.
fn start_log(command: &Command) {
    use tracing_subscriber::EnvFilter;
    let is_served = matches!(command, Command::Serve(_) | Command::Dev(_));
    let level = std::env::var("COFFERDAM_LOG").ok().filter(|level| !level.is_empty());
    let filter = match level {
        // A plain level applies to this program only; libraries log warnings.
        Some(level) if level.parse::<tracing::Level>().is_ok() => {
            EnvFilter::new(format!("warn,cofferdam={level}"))
        }
        // A directive for `rmcp` in the operator's filter comes later and overrides this one.
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
