//! The pages over HTTP: their content, and requests that are not from them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests, which are not test functions themselves"
)]

mod approvals;
mod attacks;
mod content;
mod grants;
mod hostile;
mod live;
mod replays;
#[path = "../served/mod.rs"]
mod served;
mod size;
mod trials;
mod workflows;
