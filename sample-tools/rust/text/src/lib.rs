//! Tools for texts that are passed as arguments. They read no files and change nothing.

pub mod diff;
pub mod lines_matching;
pub mod word_count;

cofferdam_sdk::plugin!(word_count::word_count, lines_matching::lines_matching, diff::diff; manifest = "plugin.toml");
