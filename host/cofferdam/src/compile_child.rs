//! The child process that compiles plugins.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use cofferdam_engine::Compiler;

use crate::error::Context as _;
use crate::{Error, Result};

/// First argument of the child process.
const ARGUMENT: &str = "cofferdam-compile-child";

/// True after [`init`] was called. Without it, this program started again would not act as a
/// compiler.
static IS_INITIALIZED: AtomicBool = AtomicBool::new(false);

/// Prepares the program for compiling plugins. Call it first in `main`. Threads may exist, such as
/// those of `#[tokio::main]`, but must not have begun any work.
///
/// Plugins are compiled in a child process, which is this program started again with a special
/// first argument. In that child, this function confines all threads, compiles one plugin and
/// exits. Otherwise it returns immediately.
pub fn init() {
    if std::env::args_os().nth(1).as_deref() == Some(OsStr::new(ARGUMENT)) {
        let is_compiled = cofferdam_engine::compile_child().is_ok();
        std::process::exit(if is_compiled { 0 } else { 1 });
    }
    IS_INITIALIZED.store(true, Ordering::Release);
}

/// Returns the compiler that starts `program`, which calls [`init`]: for libraries in programs of
/// others, such as interpreters. It must be of the same version as this library.
#[must_use]
pub fn compiler_program(program: PathBuf) -> Compiler {
    Compiler::Child { program, arguments: vec![ARGUMENT.into()] }
}

/// Returns the compiler that starts this program again.
pub(crate) fn compiler() -> Result<Compiler> {
    if !IS_INITIALIZED.load(Ordering::Acquire) {
        return Err(Error::NotInitialized);
    }
    let program = std::env::current_exe()
        .context("the path of this program, which compiles plugins, is not known")?;
    Ok(compiler_program(program))
}
