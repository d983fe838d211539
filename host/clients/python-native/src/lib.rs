//! `cofferdam_native`: the host in the process of a Python program, for calls that take
//! microseconds. The package `cofferdam` is its only user and has the documentation.
//!
//! The module has the messages of `cofferdam pipe` as Python objects, and never calls the program:
//! the package takes each message and answers it. A call that blocks its thread runs on that
//! thread, without the interpreter's lock, until it needs the program. From then on it runs on the
//! runtime, of which a process has one.
//!
//! Plugins are compiled in a child process, which is the program `cofferdam`: this module never
//! compiles. Unlike over a pipe, a crash of the host takes the program along, and a forked process
//! cannot start a host anymore, because it has none of the threads.

mod call;
mod flags;
mod host;
mod router;
mod runtime;
mod value;

use pyo3::prelude::*;

/// Version of what this module and the package expect of each other.
const INTERFACE: u64 = 1;

#[pymodule]
fn cofferdam_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("INTERFACE", INTERFACE)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<host::NativeHost>()?;
    module.add_class::<call::NativeCall>()
}
