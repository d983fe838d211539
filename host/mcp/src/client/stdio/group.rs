//! Process of a server, with the processes that it starts.

use std::io;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};

/// Process with its descendants: a process group of Unix, or a job object of Windows. Killed when
/// it is dropped.
pub(super) struct ProcessGroup {
    #[cfg(not(windows))]
    child: tokio::process::Child,
    #[cfg(not(windows))]
    id: Option<rustix::process::Pid>,
    #[cfg(windows)]
    job: Box<dyn process_wrap::tokio::ChildWrapper>,
}

/// Standard streams of a process.
pub(super) struct StandardPipes {
    pub(super) input: Option<ChildStdin>,
    pub(super) output: Option<ChildStdout>,
    pub(super) errors: Option<ChildStderr>,
}

#[cfg(not(windows))]
impl ProcessGroup {
    /// Starts a process as the leader of a new group.
    pub(super) fn start(mut command: Command) -> io::Result<(Self, StandardPipes)> {
        let mut child = command.process_group(0).spawn()?;
        let pipes = StandardPipes {
            input: child.stdin.take(),
            output: child.stdout.take(),
            errors: child.stderr.take(),
        };
        let id = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(rustix::process::Pid::from_raw);
        Ok((Self { child, id }, pipes))
    }

    /// Waits for the process to end.
    pub(super) async fn wait(&mut self) -> io::Result<()> {
        self.child.wait().await.map(drop)
    }

    /// Kills the rest of the group, once: its id may be reused later.
    pub(super) fn kill(&mut self) {
        if let Some(group) = self.id.take() {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.start_kill();
    }
}

#[cfg(windows)]
impl ProcessGroup {
    /// Starts a process in a new job, before it can start others. The system ends the job with this
    /// process, even if it is killed.
    pub(super) fn start(command: Command) -> io::Result<(Self, StandardPipes)> {
        use process_wrap::tokio::{CommandWrap, JobObject, KillOnDrop};
        let mut job = CommandWrap::from(command).wrap(KillOnDrop).wrap(JobObject).spawn()?;
        let pipes = StandardPipes {
            input: job.stdin().take(),
            output: job.stdout().take(),
            errors: job.stderr().take(),
        };
        Ok((Self { job }, pipes))
    }

    /// Waits for all processes of the job to end.
    pub(super) async fn wait(&mut self) -> io::Result<()> {
        self.job.wait().await.map(drop)
    }

    /// Kills the rest of the job.
    pub(super) fn kill(&mut self) {
        let _ = self.job.start_kill();
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the program of a command. The system finds it.
#[cfg(not(windows))]
pub(super) fn program_ambient(command: &super::StdioCommand) -> std::path::PathBuf {
    (&command.program).into()
}

/// Returns the program of a command. For a name without an ending, the system finds only `.exe`
/// files, and many servers are started by scripts such as `npx.cmd`: the first file in `PATH` with
/// an ending of `PATHEXT` is the program.
#[cfg(windows)]
pub(super) fn program_ambient(command: &super::StdioCommand) -> std::path::PathBuf {
    let name = std::path::Path::new(&command.program);
    let is_bare = name.components().count() == 1 && name.extension().is_none();
    let found = is_bare.then(|| {
        let value = |wanted: &str| {
            let mut pairs = command.env.iter();
            pairs.find(|(key, _)| key.eq_ignore_ascii_case(wanted)).map(|(_, value)| value.as_str())
        };
        let endings: Vec<_> = value("PATHEXT").unwrap_or(ENDINGS).split(';').collect();
        let folders = std::env::split_paths(value("PATH").unwrap_or_default());
        folders
            .flat_map(|folder| endings.iter().map(move |ending| (folder.clone(), *ending)))
            .map(|(folder, ending)| folder.join(format!("{}{ending}", command.program)))
            .find(|path| path.is_file())
    });
    found.flatten().unwrap_or_else(|| name.to_owned())
}

/// Endings of programs, if `PATHEXT` is not set.
#[cfg(windows)]
const ENDINGS: &str = ".COM;.EXE;.BAT;.CMD";
