//! The tools.

pub mod blame;
pub mod diff;
pub mod grep;
pub mod log;
pub mod read_file;
pub mod references;
pub mod show;
