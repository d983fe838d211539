//! Parts of the engine that differ between operating systems, one module per concern.
//!
//! A module has one signature on every system. Where a system has nothing of the kind, its
//! function says so in its result, and the caller decides: limits are required, confinement has
//! levels, and everything else is optional. `docs/platforms.md` lists what holds where.
//!
//! `unsafe` code is only in `windows` and `macos`, which wrap calls of those systems.

pub(crate) mod confine;
pub(crate) mod limits;
#[cfg(target_os = "macos")]
mod macos;
pub mod permissions;
pub mod resources;
#[cfg(windows)]
mod windows;
