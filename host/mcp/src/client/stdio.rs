//! Server that runs as a process on this machine.
//!
//! Its environment consists of the configured variables only and inherits nothing from the host. It
//! runs in a process group, on Windows in a job object, that ends with the connection: the server
//! and the processes that it has started are killed when the transport is dropped, even if the
//! server never answered. A process that has left its group is not tracked; no process can leave
//! the job. Standard error of the server goes to the log, in short lines.

mod group;
mod input;

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{ChildStdout, Command};

use super::limits::FRAME_BYTES_MAX;
use super::raw;
use super::running::ActiveRequests;
use super::unread::unread_answer;
use group::ProcessGroup;
use input::ServerInput;
pub(super) use input::Unread;

/// Host variables that a server may receive without explicit configuration, because programs need
/// them to find and start other programs. The code that reads the environment passes them in
/// [`StdioCommand::env`].
#[cfg(not(windows))]
pub const INHERITED: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR",
    "TZ",
];
/// Host variables that a server may receive without explicit configuration, because programs need
/// them to find and start other programs, and libraries of the system to work at all. The code that
/// reads the environment passes them in [`StdioCommand::env`].
#[cfg(windows)]
pub const INHERITED: &[&str] = &[
    "PATH",
    "PATHEXT",
    "COMSPEC",
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "TEMP",
    "TMP",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
    "USERNAME",
    "HOMEDRIVE",
    "HOMEPATH",
    "PROCESSOR_ARCHITECTURE",
];
/// Maximum length of a logged line of standard error, in bytes. Longer lines are logged in pieces.
const LOG_LINE_BYTES_MAX: u64 = 4096;
/// Maximum number of lines that are logged; further lines are read and discarded.
const LOG_LINES_MAX: usize = 10_000;
/// Time for a server to exit on its own after its input is closed.
const END_WAIT: Duration = Duration::from_secs(2);

/// Command that starts a server.
#[derive(Clone, Default)]
pub struct StdioCommand {
    /// Program: an absolute path, or a name that is looked up in the `PATH` of
    /// [`StdioCommand::env`].
    pub program: String,
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Complete environment. Values may be secrets and are never shown.
    pub env: Vec<(String, String)>,
    /// Working directory; the host's if absent.
    pub directory: Option<PathBuf>,
}

impl std::fmt::Debug for StdioCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("StdioCommand")
            .field("program", &self.program)
            .field("env", &names)
            .finish_non_exhaustive()
    }
}

/// Transport to a running server.
pub(crate) struct StdioTransport {
    input: ServerInput,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    group: ProcessGroup,
    running: Arc<ActiveRequests>,
}

impl StdioTransport {
    /// Starts the server, for a connection with these unanswered requests.
    pub(crate) fn start(
        command: &StdioCommand,
        name: &str,
        running: Arc<ActiveRequests>,
    ) -> io::Result<Self> {
        let mut process = Command::new(group::program_ambient(command));
        process
            .args(&command.arguments)
            .env_clear()
            .envs(command.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(directory) = &command.directory {
            process.current_dir(directory);
        }
        let (group, pipes) = ProcessGroup::start(process)?;
        let missing = || io::Error::other("a standard stream is missing");
        let input = pipes.input.ok_or_else(missing)?;
        let output = pipes.output.ok_or_else(missing)?;
        if let Some(errors) = pipes.errors {
            tokio::spawn(log(errors, name.to_owned()));
        }
        let input = ServerInput::new(input, name);
        Ok(Self { input, output: BufReader::new(output), line: Vec::new(), group, running })
    }

    /// Returns the next line, or `None` at the end of the output or if a line is too long.
    async fn next_line(&mut self) -> Option<&[u8]> {
        // A partially read line is retained when the future is dropped.
        if self.line.last() == Some(&b'\n') {
            self.line.clear();
        }
        let bytes_max = u64::try_from(FRAME_BYTES_MAX).unwrap_or(u64::MAX);
        let left = bytes_max.saturating_sub(u64::try_from(self.line.len()).unwrap_or(u64::MAX));
        let mut limited = (&mut self.output).take(left);
        limited.read_until(b'\n', &mut self.line).await.ok()?;
        (self.line.last() == Some(&b'\n')).then_some(self.line.as_slice())
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        self.input.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let running = Arc::clone(&self.running);
        loop {
            let line = self.next_line().await?;
            // Some servers print lines that are not messages to standard output; they are skipped.
            let read = serde_json::from_slice::<Value>(line)
                .and_then(|read| raw::message(read, line.len()));
            match read {
                // A server that cannot read a request does not know its id either.
                Ok(JsonRpcMessage::Error(error)) if error.id.is_none() => {
                    return Some(JsonRpcMessage::error(error.error, running.only()));
                }
                Ok(message) => return Some(message),
                Err(error) => {
                    tracing::debug!(%error, "a line of a server is not a message");
                    if let Some(answer) = unread_answer(line, || running.only()) {
                        return Some(answer);
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.input.close().await;
        // Closing its input tells the server to exit; the group is killed in any case.
        let _ = tokio::time::timeout(END_WAIT, self.group.wait()).await;
        self.group.kill();
        Ok(())
    }
}

/// Logs standard error until its end.
async fn log(errors: impl AsyncRead + Unpin, server: String) {
    let (mut errors, mut line, mut lines) = (BufReader::new(errors), Vec::new(), 0_usize);
    loop {
        line.clear();
        match (&mut errors).take(LOG_LINE_BYTES_MAX).read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        lines = lines.saturating_add(1);
        if lines <= LOG_LINES_MAX {
            let text = String::from_utf8_lossy(&line);
            tracing::info!(server, stderr = %text.trim_end().escape_debug(), "a server printed");
        } else if lines == LOG_LINES_MAX.saturating_add(1) {
            tracing::info!(server, "further lines of the server are left out");
        }
    }
}
