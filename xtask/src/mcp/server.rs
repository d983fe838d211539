//! HTTP server that runs until it is dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, bail};

use super::binary;
use crate::run::root;

/// Maximum time until the server listens, on a busy machine and including the compilation of
/// plugins.
const START_MAX: Duration = Duration::from_secs(120);

pub(super) struct Server {
    child: Child,
    pub(super) url: String,
}

impl Server {
    /// Starts `cofferdam serve` with `arguments` on a free port.
    pub(super) fn start(arguments: &[String]) -> anyhow::Result<Self> {
        let mut child = Command::new(binary())
            .args(["serve", "--http", "127.0.0.1:0"])
            .args(arguments)
            .current_dir(root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run cofferdam")?;
        let said = stderr_lines(&mut child)?;
        let mut server = Self { child, url: String::new() };
        let mut lines = Vec::new();
        while let Ok(line) = said.recv_timeout(START_MAX) {
            if let Some(url) = line.strip_prefix("listening on ") {
                url.clone_into(&mut server.url);
                return Ok(server);
            }
            lines.push(line);
        }
        bail!("the server does not listen; it said:\n{}", lines.join("\n"))
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns an error if the server has exited.
    pub(super) fn check_runs(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the server has ended with {status}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if the server has exited.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Returns the lines that the server writes to standard error. A thread reads them to the end,
/// because the server would block on a full pipe.
fn stderr_lines(child: &mut Child) -> anyhow::Result<Receiver<String>> {
    let stderr = child.stderr.take().context("standard error is a pipe")?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // Fails once the receiver is dropped, after the start.
            let _heard = sender.send(line);
        }
    });
    Ok(receiver)
}
