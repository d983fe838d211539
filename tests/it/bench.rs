//! Runs every benchmark once, briefly. The figures are ignored.

use std::process::Command;

use cofferdam_tests::binary;

/// Benchmarks that are quick without optimization. `extism`, the comparison with Python and `cluster`
/// are left out where what they need is not installed.
const CHEAP: [&str; 13] = [
    "memory",
    "call-floor",
    "payload",
    "store",
    "guards",
    "callers",
    "extism",
    "mcp",
    "start",
    "cluster",
    "agent-loop",
    "decode",
    "noisy-neighbour",
];

#[test]
fn every_benchmark_that_is_cheap_still_works() {
    let mut command = Command::new(binary().with_file_name("cofferdam-bench"));
    command.args(["--quick", "--json"]);
    for name in CHEAP {
        command.args(["--only", name]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows = String::from_utf8(output.stdout).unwrap();
    let has_server = std::env::var_os("COFFERDAM_NATS_SERVER").is_some();
    let is_there = |name: &&str| *name != "extism" && (*name != "cluster" || has_server);
    for name in CHEAP.into_iter().filter(is_there) {
        assert!(rows.contains(&format!(r#"{{"name":"{name}"#)), "{name} says nothing:\n{rows}");
    }
}
