//! Requests of the system or the user to end this program.

use std::time::Duration;

use cofferdam_mcp::client::RemoteServer;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;

/// Maximum time that an interrupted process waits for tokens that a server has been asked for.
const INTERRUPTED_WAIT_MAX: Duration = Duration::from_secs(1);

/// Cancels `stop` at the first request to end, and ends the process at the second: Ctrl-C or
/// SIGTERM, on Windows also Ctrl-Break, a closed console, or the end of the session.
pub(crate) fn stop_on_signals(stop: CancellationToken) -> anyhow::Result<()> {
    let mut requests = EndRequests::new()?;
    tokio::spawn(async move {
        requests.next().await;
        stop.cancel();
        requests.next().await;
        exit_interrupted().await
    });
    Ok(())
}

/// Restores the terminal and ends the process. Waits only for tokens that a server has been asked
/// for: it may no longer accept the stored ones.
pub(crate) async fn exit_interrupted() -> ! {
    cofferdam_terminal::restore();
    RemoteServer::tokens_stored(INTERRUPTED_WAIT_MAX).await;
    std::process::exit(Exit::Interrupted as i32)
}

/// Runs a command until it ends, or SIGTERM asks this program to end. The command is dropped then,
/// which ends the programs that it has started; the caller restores the terminal.
#[cfg(unix)]
pub(crate) async fn until_terminated(
    command: impl Future<Output = anyhow::Result<Exit>>,
) -> anyhow::Result<Exit> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = command => ended,
        _ = terminate.recv() => Ok(Exit::Interrupted),
    }
}

/// Runs a command until it ends. On Windows, nothing asks a program of a console to end but Ctrl-C.
#[cfg(windows)]
pub(crate) async fn until_terminated(
    command: impl Future<Output = anyhow::Result<Exit>>,
) -> anyhow::Result<Exit> {
    command.await
}

/// Signals that ask this program to end.
#[cfg(unix)]
pub(crate) struct EndRequests {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl EndRequests {
    /// Receives the signals instead of being ended by them.
    pub(crate) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Console events that ask this program to end. After the last three, Windows gives it a few
/// seconds.
#[cfg(windows)]
pub(crate) struct EndRequests {
    interrupt: tokio::signal::windows::CtrlC,
    stop: tokio::signal::windows::CtrlBreak,
    close: tokio::signal::windows::CtrlClose,
    logoff: tokio::signal::windows::CtrlLogoff,
    shutdown: tokio::signal::windows::CtrlShutdown,
}

#[cfg(windows)]
impl EndRequests {
    /// Receives the events instead of being ended by them.
    pub(crate) fn new() -> std::io::Result<Self> {
        use tokio::signal::windows;
        Ok(Self {
            interrupt: windows::ctrl_c()?,
            stop: windows::ctrl_break()?,
            close: windows::ctrl_close()?,
            logoff: windows::ctrl_logoff()?,
            shutdown: windows::ctrl_shutdown()?,
        })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.stop.recv() => {}
            _ = self.close.recv() => {}
            _ = self.logoff.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}
