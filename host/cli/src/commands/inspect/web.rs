//! `cofferdam inspect --web`: pages about recorded calls.

use std::io::{BufRead, IsTerminal};
use std::net::SocketAddr;
use std::sync::Arc;

use cofferdam::config::ConfigFile;
use cofferdam::inspector::{self, EngineReplayer, Inspector};
use cofferdam::workflow_file::WorkflowFile;

use crate::args::{Global, InspectArgs};
use crate::exit::{Exit, UsageError};
use crate::{commands, host, print};

/// Serves pages until Ctrl-C.
pub(super) async fn serve(
    global: &Global,
    address: SocketAddr,
    args: &InspectArgs,
) -> anyhow::Result<Exit> {
    let config = args.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
    // The pages of a file or a directory that is missing would show nothing.
    for file in &args.workflows {
        WorkflowFile::read_ambient(file)?;
    }
    for directory in args.directory.iter().chain(&args.checkpoints) {
        if !directory.is_dir() {
            return Err(UsageError(format!("there is no directory {}", directory.display())).into());
        }
    }
    let mut options = inspector::options_ambient(config.as_ref(), args.directory.clone())?;
    let (engine, path) = (host::engine_options(global), config.map(|config| config.path));
    options.grants = path.as_deref().map(|path| inspector::grants_of_config(engine.clone(), path));
    let replayer = EngineReplayer::new(engine, path, options.directory.clone());
    options.replayer = Some(Arc::new(replayer));
    if !args.workflows.is_empty() {
        let (files, checkpoints) = (args.workflows.clone(), args.checkpoints.clone());
        options.workflows = Some(inspector::workflows_of_files(files, checkpoints, None));
    }
    let listening = Inspector::listen(options, address).await;
    let (inspector, listener) = listening.map_err(|error| UsageError(error.to_string()))?;
    print::result(&inspector.login_address()?)?;
    print::note("open this address in a browser; it works once, within five minutes");
    if std::io::stdin().is_terminal() {
        print::note("Enter prints another address, Ctrl-C ends the inspector");
        let inspector = inspector.clone();
        std::thread::spawn(move || print_addresses(&inspector));
    }
    inspector.serve(listener, commands::cancelled_by_ctrl_c()).await;
    Ok(Exit::Ok)
}

/// Prints another address for each line of standard input.
fn print_addresses(inspector: &Inspector) {
    for _ in std::io::stdin().lock().lines().map_while(Result::ok) {
        if let Ok(address) = inspector.login_address() {
            // If standard output is closed, there is nothing else to print to.
            let _ = print::result(&address);
        }
    }
}
