//! A server that is a process of this machine.
//!
//! It gets an environment of its own making: what is configured, and nothing of the host's. It runs
//! in a process group, which ends with the connection: the whole group is killed when the transport
//! is dropped, also when the server never answered. A process that has left its group is not
//! followed. What the server prints to standard error goes to the log, in short lines.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

use super::limits::FRAME_BYTES_MAX;
use super::raw;

/// Variables of the host that a server may be given without being asked for: programs are found and
/// started by them. Whoever reads the environment passes them on as [`StdioCommand::env`].
pub const INHERITED: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TMPDIR",
    "TZ",
    "SYSTEMROOT",
];
/// A line of standard error, in bytes. What is longer is logged in pieces.
const LOG_LINE_BYTES_MAX: u64 = 4096;
/// Lines that are logged; those after them are read and forgotten.
const LOG_LINES_MAX: usize = 10_000;
/// How long a server has to end by itself after its input was closed.
const END_WAIT: Duration = Duration::from_secs(2);

/// How a server is started.
#[derive(Clone, Default)]
pub struct StdioCommand {
    /// The program, an absolute path or a name that is found by the `PATH` of
    /// [`StdioCommand::env`].
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its whole environment. Values may be secrets and are never shown.
    pub env: Vec<(String, String)>,
    /// Where it runs; where the host runs if absent.
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

/// A running server.
pub(crate) struct StdioTransport {
    input: Arc<Mutex<Option<ChildStdin>>>,
    output: BufReader<ChildStdout>,
    line: Vec<u8>,
    group: Group,
}

/// The process and its descendants.
struct Group {
    child: Child,
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

impl StdioTransport {
    /// Starts the server.
    pub(crate) fn start(command: &StdioCommand, name: &str) -> io::Result<Self> {
        let mut process = Command::new(&command.program);
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
        #[cfg(unix)]
        process.process_group(0);
        let child = process.spawn()?;
        #[cfg(unix)]
        let id = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        let mut group = Group {
            child,
            #[cfg(unix)]
            id,
        };
        let missing = || io::Error::other("a standard stream is missing");
        let input = group.child.stdin.take().ok_or_else(missing)?;
        let output = group.child.stdout.take().ok_or_else(missing)?;
        if let Some(errors) = group.child.stderr.take() {
            tokio::spawn(log(errors, name.to_owned()));
        }
        let input = Arc::new(Mutex::new(Some(input)));
        Ok(Self { input, output: BufReader::new(output), line: Vec::new(), group })
    }

    /// The next line; `None` at the end, or when a line is too long to be one.
    async fn next_line(&mut self) -> Option<&[u8]> {
        // What was read of a line stays when the future is dropped.
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
        let input = Arc::clone(&self.input);
        async move {
            let mut line = serde_json::to_vec::<ClientJsonRpcMessage>(&message)?;
            line.push(b'\n');
            let mut input = input.lock().await;
            let input = input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
            input.write_all(&line).await?;
            input.flush().await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let line = self.next_line().await?;
            // Servers print to standard output what they should not; that is passed over.
            let read = serde_json::from_slice::<Value>(line)
                .and_then(|read| raw::message(read, line.len()));
            match read {
                Ok(message) => return Some(message),
                Err(error) => tracing::debug!(%error, "a line of a server is no message"),
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.input.lock().await.take();
        // The end of its input is how a server is told; the group is killed in any case.
        let _ = tokio::time::timeout(END_WAIT, self.group.child.wait()).await;
        self.group.kill();
        Ok(())
    }
}

impl Group {
    /// Kills what is left of the group, once: its id may be another's later.
    fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.id.take() {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.start_kill();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads standard error to its end.
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
