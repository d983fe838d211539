//! Reads git repositories in a mounted directory: history, differences, origins of lines.
//!
//! Objects are read with ranged reads, so that packs may be larger than the memory of a call.

pub mod changes;
pub mod commit;
mod delta;
mod error;
mod glob;
mod history;
mod id;
mod line_diff;
mod objects;
mod output;
mod pack;
mod pack_file;
mod refs;
mod repository;
mod revision;
mod time;
mod tree;

pub mod tools;

#[cfg(test)]
mod tests;

cofferdam_sdk::plugin!(
    tools::log::git_log,
    tools::show::git_show,
    tools::diff::git_diff,
    tools::blame::git_blame,
    tools::grep::git_grep,
    tools::read_file::git_read_file,
    tools::references::git_references;
    manifest = "plugin.toml"
);
