//! Gateways and workers on real NATS servers. `cargo xtask nats` installs a server and runs these
//! tests; without `COFFERDAM_NATS_SERVER` they report that they are skipped.
//!
//! Each test starts a server of its own. Workers that are killed or stopped are processes: the test
//! binary runs itself.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says on standard output when it is skipped"
)]

mod calls;
mod connection;
mod credentials;
mod hostile;
mod jetstream;
mod keys;
mod kills;
mod partition;
mod process;
mod questions;
mod server;
mod successors;
mod tools;
