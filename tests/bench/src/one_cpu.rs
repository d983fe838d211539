//! Runs everything on one processor.
//!
//! On a small virtual machine, waking another processor takes longer than a complete call. If
//! client and server alternate, or a thread of the engine is woken, placement by the scheduler
//! dominates the measurement. On one processor only the work counts.

use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// Pins this thread and the processes that it starts to one processor, until it is dropped.
pub(crate) struct OneCpu {
    before: String,
}

impl OneCpu {
    pub(crate) fn take() -> anyhow::Result<Self> {
        let status = std::fs::read_to_string("/proc/self/status")
            .context("this is measured on Linux alone")?;
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let before = allowed.context("no list of processors")?.trim().to_owned();
        let first: String = before.chars().take_while(char::is_ascii_digit).collect();
        allow(&first)?;
        Ok(Self { before })
    }
}

impl Drop for OneCpu {
    fn drop(&mut self) {
        let _restored = allow(&self.before);
    }
}

/// Sets the processors of the main thread, which measures.
fn allow(processors: &str) -> anyhow::Result<()> {
    let process = std::process::id().to_string();
    let mut taskset = Command::new("taskset");
    taskset.args(["--cpu-list", "--pid", processors, &process]).stdout(Stdio::null());
    ensure!(
        taskset.status().context("cannot run taskset (of util-linux)")?.success(),
        "taskset has failed"
    );
    Ok(())
}
