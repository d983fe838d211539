//! Runs the programs of a toolchain.

use std::io::{ErrorKind, Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::BuildError;

/// Maximum bytes that are stored of each output of a program; the rest is dropped. In longer output
/// the first messages matter most.
const OUTPUT_BYTES_MAX: usize = 8 << 20;
/// Maximum number of lines of warnings that are reported for one program.
const WARNING_LINES_MAX: usize = 200;

/// Receives progress reports of a build.
pub trait StepObserver {
    /// A step that can take a while begins.
    fn begin(&self, step: &str);
    /// The step is done.
    fn end(&self, step: &str, took: Duration);
    /// Reports a message for the user.
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
    /// Creates a runner that reports to `report`. With `is_verbose`, standard error of programs is
    /// shown while they run; otherwise their output is reported if one fails, and their warnings
    /// if it succeeds.
    #[must_use]
    pub fn new(report: &'a dyn StepObserver, is_verbose: bool) -> Self {
        Self { report, is_verbose }
    }

    /// Reports a message for the user.
    pub fn note(&self, text: &str) {
        self.report.note(text);
    }

    /// Reports the warnings of a program that succeeded, unless they were shown while it ran.
    pub(crate) fn warn(&self, warnings: &str) {
        let warnings = warnings.trim();
        if !self.is_verbose && !warnings.is_empty() {
            self.report.note(&shortened(warnings));
        }
    }

    /// Runs a program without standard input and returns its output.
    ///
    /// # Errors
    /// [`BuildError`] if the program cannot be started or exits with a status other than 0.
    pub fn run(&self, step: &str, command: &mut Command) -> Result<ProgramOutput, BuildError> {
        self.time(step, || run(step, command, self.is_verbose))
    }

    /// Reports a step that runs in this process.
    pub(crate) fn time<T>(
        &self,
        step: &str,
        run: impl FnOnce() -> Result<T, BuildError>,
    ) -> Result<T, BuildError> {
        self.report.begin(step);
        let started = Instant::now();
        let finished = run()?;
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

/// Returns the first lines of warnings, and the number of those that are left out.
fn shortened(warnings: &str) -> String {
    let left_out = warnings.lines().count().saturating_sub(WARNING_LINES_MAX);
    let mut lines: Vec<_> = warnings.lines().take(WARNING_LINES_MAX).collect();
    let more =
        format!("… {left_out} more lines of warnings; `cofferdam build --verbose` shows all");
    if left_out > 0 {
        lines.push(&more);
    }
    lines.join("\n")
}

fn run(step: &str, command: &mut Command, is_shown: bool) -> Result<ProgramOutput, BuildError> {
    let started =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let program = || command.get_program().to_string_lossy().into_owned();
    let mut child = started.map_err(|error| BuildError::Start { program: program(), error })?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // Both pipes are read at the same time: the program blocks when one of them is full.
    let stderr =
        thread::spawn(move || stderr.map_or_else(String::new, |pipe| text(pipe, is_shown)));
    // Standard output is not shown: it can be for this crate only, such as the messages of cargo.
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

/// Reads a pipe to its end. Shows the bytes on standard error, because standard output belongs to
/// the result of the build.
fn text(mut pipe: impl Read, is_shown: bool) -> String {
    let mut output = Vec::new();
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
        if output.len() < OUTPUT_BYTES_MAX {
            output.extend_from_slice(read);
        }
    }
    String::from_utf8_lossy(&output).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_shortened() {
        let warnings = |lines: usize| vec!["warning: w"; lines].join("\n");
        assert_eq!(shortened(&warnings(WARNING_LINES_MAX)), warnings(WARNING_LINES_MAX));
        let short = shortened(&warnings(WARNING_LINES_MAX + 3));
        assert!(
            short.ends_with("\n… 3 more lines of warnings; `cofferdam build --verbose` shows all")
        );
        assert_eq!(short.lines().count(), WARNING_LINES_MAX + 1);
    }
}
