//! The toolchains, one module for each.

pub(crate) mod c;
pub(crate) mod go;
pub(crate) mod javascript;
pub(crate) mod python;
pub(crate) mod rust;
pub(crate) mod zig;
