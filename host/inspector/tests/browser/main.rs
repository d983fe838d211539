//! The pages in Debian's chromium: views, live updates, keyboard, color schemes, attacks.
//!
//! Skipped with a note if chromium is not installed; required in CI. `cargo xtask test` installs it
//! there, and axe-core, which checks the accessibility of the pages.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests, which say on standard output when they are skipped"
)]
#![cfg(unix)]

mod approvals;
mod axe;
mod chromium;
mod forms;
mod png;
mod runs;
#[path = "../served/mod.rs"]
#[expect(dead_code, reason = "the tests without a browser use more of it")]
mod served;
mod tour;
mod views;
