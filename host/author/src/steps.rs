//! Running the programs of a toolchain.

use std::io::{ErrorKind, Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::BuildError;

/// Output that is kept of one program; what comes later is dropped. A compiler that says more has
/// said it before.
const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// Is told what happens.
pub trait StepObserver {
    /// Something that takes a while begins.
    fn begin(&self, step: &str);
    /// It is done.
    fn end(&self, step: &str, took: Duration);
    /// Something that the user should know.
    fn note(&self, text: &str);
}

/// Runs programs and reports them.
#[derive(Clone, Copy)]
pub struct Steps<'a> {
    report: &'a dyn StepObserver,
    is_verbose: bool,
}

/// Output of a program that succeeded.
#[derive(Debug)]
pub struct ProgramOutput {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl<'a> Steps<'a> {
    /// With `is_verbose` the programs print what they print; otherwise it is shown when one fails.
    #[must_use]
    pub fn new(report: &'a dyn StepObserver, is_verbose: bool) -> Self {
        Self { report, is_verbose }
    }

    /// Says something that the user should know.
    pub fn note(&self, text: &str) {
        self.report.note(text);
    }

    /// Runs a program that has no standard input and keeps what it prints; with `--verbose` that is
    /// shown as well while it runs.
    ///
    /// # Errors
    ///
    /// When it cannot be started or does not end with 0.
    pub fn run(&self, step: &str, command: &mut Command) -> Result<ProgramOutput, BuildError> {
        self.report.begin(step);
        let started = Instant::now();
        let finished = run(step, command, self.is_verbose)?;
        self.report.end(step, started.elapsed());
        Ok(finished)
    }
}

impl std::fmt::Debug for Steps<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Steps")
            .field("is_verbose", &self.is_verbose)
            .finish_non_exhaustive()
    }
}

fn run(step: &str, command: &mut Command, is_shown: bool) -> Result<ProgramOutput, BuildError> {
    let started =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let program = || command.get_program().to_string_lossy().into_owned();
    let mut child = started.map_err(|error| BuildError::Start { program: program(), error })?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // Both at once: a program that waits for one pipe to be read may fill the other.
    let stderr =
        thread::spawn(move || stderr.map_or_else(String::new, |pipe| text(pipe, is_shown)));
    // Standard output may be for us alone, such as the messages of cargo.
    let stdout = stdout.map_or_else(String::new, |pipe| text(pipe, false));
    let stderr = stderr.join().unwrap_or_default();
    let status = child.wait().map_err(|error| BuildError::Start { program: program(), error })?;
    if !status.success() {
        let output = if is_shown { stdout } else { [stdout.trim(), stderr.trim()].join("\n") };
        let output = output.trim().to_owned();
        return Err(BuildError::Failed { step: step.to_owned(), status, output });
    }
    Ok(ProgramOutput { stdout, stderr })
}

/// Reads a pipe to its end. Output goes to standard error: standard output belongs to the result of
/// the build.
fn text(mut pipe: impl Read, is_shown: bool) -> String {
    let mut kept = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = match pipe.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => piece.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        if is_shown {
            let _ = std::io::stderr().write_all(read);
        }
        if kept.len() < OUTPUT_BYTES_MAX {
            kept.extend_from_slice(read);
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}
