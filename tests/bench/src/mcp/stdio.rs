//! A server on standard input and output, and the pipes to it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::Called;
use super::request::{call, is_answer};

/// Server process, which ends with its input.
pub(crate) struct Server {
    /// Its command line, for error messages.
    command: String,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start(mut command: Command) -> anyhow::Result<Self> {
        let started = format!("{command:?}");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Self { command: started, child, input, output })
    }

    fn send(&mut self, lines: &str) -> anyhow::Result<()> {
        Ok(self.input.as_mut().context("a pipe")?.write_all(lines.as_bytes())?)
    }

    fn next(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "the server has ended: {}", self.command);
        Ok(line)
    }

    /// Sends a message and returns the answer.
    pub(crate) fn ask(&mut self, message: &Value) -> anyhow::Result<Value> {
        self.send(&format!("{message}\n"))?;
        Ok(serde_json::from_str(&self.next()?)?)
    }
}

impl Called for Server {
    fn calls(&mut self, calls: usize, at_once: usize) -> anyhow::Result<Duration> {
        let lines: Vec<_> = (0..calls.max(at_once)).map(|id| format!("{}\n", call(id))).collect();
        let started = Instant::now();
        for batch in lines.chunks(at_once) {
            self.send(&batch.concat())?;
            for _ in batch {
                let line = self.next()?;
                ensure!(is_answer(&line), "not an echo: {line}");
            }
        }
        Ok(started.elapsed() / u32::try_from(lines.len())?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ended = self.child.wait();
    }
}
