//! `cofferdam inspect --web`: pages about recorded calls.

use std::io::{BufRead, IsTerminal};
use std::net::SocketAddr;

use cofferdam::config::ConfigFile;
use cofferdam::inspector::{self, Inspector};

use crate::args::InspectArgs;
use crate::exit::{Exit, UsageError};
use crate::{commands, print};

/// Serves pages until Ctrl-C.
pub(super) async fn serve(address: SocketAddr, args: &InspectArgs) -> anyhow::Result<Exit> {
    let config = args.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
    let options = inspector::options_ambient(config.as_ref(), args.directory.clone())?;
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
            // If standard output is closed, there is no other place to print to.
            let _ = print::result(&address);
        }
    }
}
