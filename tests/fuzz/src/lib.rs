//! Fuzz targets: functions that take any bytes and panic if a rule is broken.
//!
//! `cargo xtask fuzz` lets libFuzzer search for such bytes; `tests/it/fuzz.rs` replays the seeds in
//! `tests/fuzz/seeds` in every test run. Add an input that has broken a rule to the seeds of its
//! target once the bug is fixed.
#![expect(
    clippy::panic,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a panic is how a target reports a finding"
)]

mod targets;

use targets::{
    arguments, cluster, component, declaration, manifest, mcp_client, mcp_server, paths,
    permissions,
};
use targets::{registry, skill, stores, workflow};

/// A fuzz target.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name on the command line, and of the folder of seeds.
    pub name: &'static str,
    /// Checks one input.
    pub check: fn(&[u8]),
}

/// Every target.
pub const TARGETS: &[Target] = &[
    Target { name: "arguments", check: arguments::check },
    Target { name: "cluster", check: cluster::check },
    Target { name: "component", check: component::check },
    Target { name: "declaration", check: declaration::check },
    Target { name: "manifest", check: manifest::check },
    Target { name: "mcp-client", check: mcp_client::check },
    Target { name: "mcp-server", check: mcp_server::check },
    Target { name: "paths", check: paths::check },
    Target { name: "permissions", check: permissions::check },
    Target { name: "registry", check: registry::check },
    Target { name: "skill", check: skill::check },
    Target { name: "stores", check: stores::check },
    Target { name: "workflow", check: workflow::check },
];

/// Environment variable that selects the target of the program.
pub const TARGET_VARIABLE: &str = "COFFERDAM_FUZZ_TARGET";

/// Returns the target of a name.
pub fn find(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
