//! Limits on CPU time and memory of the process that compiles.
//!
//! Linux applies all of them to a process that sets them for itself. Windows applies them to a job
//! object, into which the parent puts the child before it sends the first byte. macOS applies those
//! on CPU time and does not limit memory, so the parent measures the child and kills it.

use std::io;
use std::process::ExitStatus;

use tokio::process::Child;

/// Limits of one process.
pub(crate) struct ProcessLimits {
    /// Maximum CPU time in seconds.
    pub(crate) cpu_seconds: u64,
    /// Maximum memory in bytes: address space on Linux, committed memory on Windows, the footprint
    /// on macOS.
    pub(crate) memory_bytes: u64,
}

/// Part of the limits that the parent applies, for as long as this exists.
pub(crate) struct ParentLimits {
    #[cfg(windows)]
    _job: super::windows::JobObject,
    #[cfg(target_os = "macos")]
    memory: MemoryWatch,
}

impl ParentLimits {
    /// Applies the limits to a child that has not received any input yet.
    ///
    /// # Errors
    /// If the system refuses them. The child must not get any input then.
    #[cfg(windows)]
    pub(crate) fn apply(child: &Child, limits: &ProcessLimits) -> io::Result<Self> {
        let job = super::windows::JobObject::for_one_process(limits)?;
        job.assign(child)?;
        Ok(Self { _job: job })
    }

    #[cfg(target_os = "macos")]
    pub(crate) fn apply(child: &Child, limits: &ProcessLimits) -> io::Result<Self> {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let process = id.ok_or_else(|| io::Error::other("the compiler process has ended"))?;
        super::macos::footprint_bytes(process)?;
        Ok(Self { memory: MemoryWatch { process, bytes_max: limits.memory_bytes } })
    }

    #[cfg(not(any(windows, target_os = "macos")))]
    #[expect(clippy::unnecessary_wraps, reason = "other systems can refuse")]
    pub(crate) fn apply(_: &Child, _: &ProcessLimits) -> io::Result<Self> {
        Ok(Self {})
    }

    /// Returns once the child has exceeded a limit that only the parent can check, otherwise never.
    pub(crate) async fn exceeded(&self) {
        #[cfg(target_os = "macos")]
        self.memory.exceeded().await;
        #[cfg(not(target_os = "macos"))]
        std::future::pending::<()>().await;
    }
}

/// Measures the memory of a child, for a system that does not limit it.
#[cfg(target_os = "macos")]
struct MemoryWatch {
    process: i32,
    bytes_max: u64,
}

#[cfg(target_os = "macos")]
impl MemoryWatch {
    /// Time between two measurements. A process can write a few hundred MiB in that time.
    const PERIOD: std::time::Duration = std::time::Duration::from_millis(20);

    async fn exceeded(&self) {
        loop {
            tokio::time::sleep(Self::PERIOD).await;
            // A process that has ended has no footprint; the caller notices its end.
            if super::macos::footprint_bytes(self.process).unwrap_or(0) > self.bytes_max {
                return;
            }
        }
    }
}

/// Sets the limits that a process applies to itself, and checks that the parent has applied its
/// part, where the system can tell.
///
/// # Errors
/// If the system refuses them. Nothing may be compiled then.
#[cfg(unix)]
pub(crate) fn limit_this_process(limits: &ProcessLimits) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let exactly = |n: u64| Rlimit { current: Some(n), maximum: Some(n) };
    setrlimit(Resource::Cpu, exactly(limits.cpu_seconds))?;
    // macOS accepts this limit and does not apply it.
    #[cfg(not(target_os = "macos"))]
    setrlimit(Resource::As, exactly(limits.memory_bytes))?;
    setrlimit(Resource::Core, exactly(0))?;
    setrlimit(Resource::Fsize, exactly(0))?;
    Ok(())
}

#[cfg(windows)]
pub(crate) fn limit_this_process(_: &ProcessLimits) -> io::Result<()> {
    if super::windows::is_in_job()? {
        return Ok(());
    }
    Err(io::Error::other("the host has not put the compiler process into a job object"))
}

/// Returns whether a process ended because its CPU time was used up.
#[cfg(unix)]
pub(crate) fn ended_by_cpu_limit(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt as _;

    use rustix::process::Signal;
    // The kill signal follows at the hard limit, which is the same.
    let signals = [Signal::XCPU.as_raw(), Signal::KILL.as_raw()];
    status.signal().is_some_and(|signal| signals.contains(&signal))
}

#[cfg(windows)]
pub(crate) fn ended_by_cpu_limit(status: ExitStatus) -> bool {
    super::windows::is_quota_exit(status)
}
