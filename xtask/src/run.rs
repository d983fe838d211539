//! Runs other programs. Prints each step, and returns an error if a program fails.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Instant;

use anyhow::{Context, bail};

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
}

/// Prints the title of the next step on standard error, after the minutes and seconds since the
/// first one.
#[expect(clippy::print_stderr, reason = "progress of a command line tool")]
pub(crate) fn section(title: &str) {
    static FIRST: LazyLock<Instant> = LazyLock::new(Instant::now);
    let seconds = FIRST.elapsed().as_secs();
    eprintln!("\n==> [{}:{:02}] {title}", seconds / 60, seconds % 60);
}

/// Returns whether this is CI, which installs missing programs.
pub(crate) fn is_ci() -> bool {
    std::env::var_os("CI").is_some()
}

/// Returns whether Python is available, which installs other programs.
pub(crate) fn has_python() -> bool {
    let mut version = Command::new("python3");
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// Returns the path of a program that was built in release mode.
pub(crate) fn release(name: &str) -> PathBuf {
    target_folder().join("release").join(name)
}

/// Returns the folder into which cargo builds.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Runs cargo in the root of the repository.
pub(crate) fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    command("cargo", arguments).run(&root())
}

/// Runs cargo in a folder of the repository that is a separate workspace.
pub(crate) fn cargo_in(folder: &str, arguments: &[&str]) -> anyhow::Result<()> {
    command("cargo", arguments).run(&root().join(folder))
}

/// Returns a step that runs a program with arguments.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Step {
    let mut command = Command::new(program);
    command.args(arguments);
    Step { command, shown: format!("{program} {}", arguments.join(" ")) }
}

/// A program to run.
pub(crate) struct Step {
    command: Command,
    shown: String,
}

impl Step {
    /// Sets an environment variable of the program.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes an environment variable of the program.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Gives the program no environment variable but those that are set after this.
    pub(crate) fn clean(mut self) -> Self {
        self.command.env_clear();
        self
    }

    /// Sets the name of the step in errors, for a program with long arguments.
    pub(crate) fn called(mut self, name: &str) -> Self {
        name.clone_into(&mut self.shown);
        self
    }

    /// Hides what the program prints on standard output.
    pub(crate) fn quiet(mut self) -> Self {
        self.command.stdout(Stdio::null());
        self
    }

    /// Runs the program in `folder` and returns what it prints on standard output.
    ///
    /// # Errors
    /// An error if the program cannot be started or fails, with the end of its standard error.
    pub(crate) fn output(mut self, folder: &Path) -> anyhow::Result<Vec<u8>> {
        let output = self
            .command
            .current_dir(folder)
            .output()
            .with_context(|| format!("cannot run `{}`", self.shown))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("`{}` ended with {}:\n{}", self.shown, output.status, said.trim_end());
        }
        Ok(output.stdout)
    }

    /// Runs the program in `folder`.
    ///
    /// # Errors
    /// An error if the program cannot be started or fails.
    pub(crate) fn run(mut self, folder: &Path) -> anyhow::Result<()> {
        let status = self
            .command
            .current_dir(folder)
            .status()
            .with_context(|| format!("cannot run `{}`", self.shown))?;
        if !status.success() {
            bail!("`{}` in {} ended with {status}", self.shown, folder.display());
        }
        Ok(())
    }
}
