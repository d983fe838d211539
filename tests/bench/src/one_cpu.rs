//! Everything on one processor.
//!
//! On a small virtual machine, waking another processor takes longer than a whole call. Where
//! client and server take turns, or a thread of the engine is woken, the scheduler's placement then
//! decides what is measured. On one processor only the work itself counts.

use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};

/// This thread, and what it starts from here on, on one processor, until this is dropped.
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

/// Lets the main thread, which measures, run there alone.
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
