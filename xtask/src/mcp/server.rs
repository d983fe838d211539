//! A server over HTTP that runs until it is dropped.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, bail};

use super::binary;
use crate::run::root;

/// How long a server may take to start, on a busy machine that compiles plugins first.
const START_MAX: Duration = Duration::from_secs(120);

pub(super) struct Server {
    child: Child,
    pub(super) url: String,
}

impl Server {
    /// Starts `cofferdam serve` with arguments, on a free port.
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
        let said = said(&mut child)?;
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

    /// Refuses a server that has ended by itself.
    pub(super) fn check_runs(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the server has ended with {status}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// What the server says, line by line. It is read to the end, or the server would wait for a
/// reader.
fn said(child: &mut Child) -> anyhow::Result<Receiver<String>> {
    let stderr = child.stderr.take().context("standard error is a pipe")?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // Nobody listens any more once it has started.
            let _heard = sender.send(line);
        }
    });
    Ok(receiver)
}
