//! The runtime of the process, and waiting for it.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

/// Interval in which a waiting thread runs Python's signal handlers, such as that of Ctrl-C.
const SIGNALS_INTERVAL: Duration = Duration::from_millis(50);

/// Runtime, and the process that has started it.
static RUNTIME: OnceLock<(Runtime, u32)> = OnceLock::new();

/// Starts the runtime, unless it runs already.
///
/// # Errors
/// Returns an error if a thread cannot be started.
pub(crate) fn start() -> io::Result<&'static Runtime> {
    if let Some((runtime, _)) = RUNTIME.get() {
        return Ok(runtime);
    }
    let runtime = Builder::new_multi_thread().thread_name("cofferdam").enable_all().build()?;
    Ok(&RUNTIME.get_or_init(|| (runtime, std::process::id())).0)
}

/// Returns whether this process was forked from one whose runtime runs. No thread of it is here, so
/// that waiting for one would never end.
pub(crate) fn is_forked() -> bool {
    RUNTIME.get().is_some_and(|(_, process)| *process != std::process::id())
}

/// Returns the running runtime.
///
/// # Errors
/// Returns an error in a forked process.
pub(crate) fn get() -> PyResult<&'static Runtime> {
    match RUNTIME.get() {
        Some((runtime, process)) if *process == std::process::id() => Ok(runtime),
        _ => Err(PyRuntimeError::new_err(
            "this process was forked from one that runs a host in process, and has none of its \
             threads: start the process with `spawn`, or a host without `in_process`",
        )),
    }
}

/// Waits for `future` without the interpreter's lock, and runs Python's signal handlers meanwhile.
///
/// # Errors
/// Returns the exception of a signal handler, in a forked process an error.
pub(crate) fn wait<F>(py: Python<'_>, mut future: F) -> PyResult<F::Output>
where
    F: Future + Send + Unpin,
    F::Output: Send,
{
    let runtime = get()?;
    loop {
        let ended = py.detach(|| {
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    output = &mut future => Some(output),
                    () = tokio::time::sleep(SIGNALS_INTERVAL) => None,
                }
            })
        });
        match ended {
            Some(output) => return Ok(output),
            None => py.check_signals()?,
        }
    }
}
