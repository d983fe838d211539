//! Runs every benchmark once, briefly. The figures are ignored.

use std::process::Command;

use cofferdam_tests::binary;

/// Benchmarks that are quick without optimization. `extism` and the comparison with Python are left
/// out where they are not built.
const CHEAP: [&str; 12] = [
    "memory",
    "call-floor",
    "payload",
    "store",
    "guards",
    "callers",
    "extism",
    "mcp",
    "start",
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
    for name in CHEAP.into_iter().filter(|name| *name != "extism") {
        assert!(rows.contains(&format!(r#"{{"name":"{name}"#)), "{name} says nothing:\n{rows}");
    }
}
