//! Conformance rows that need a connection.

use serde_json::Value;

use crate::client::testing::play;

/// Returns true if the result contains everything that a row expects of it.
fn agrees(expected: &Value, got: &Value) -> bool {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => expected.iter().all(|(name, value)| {
            let got = got.get(name).unwrap_or(&Value::Null);
            value == got || value.is_number() && value.as_f64() == got.as_f64()
        }),
        _ => expected == got,
    }
}

#[test]
fn every_row_with_a_connection_passes() {
    let rows = include_str!("../../../../../tests/conformance/mcp.jsonl");
    let mut played = 0;
    for line in rows.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        if !matches!(row["op"].as_str(), Some("result" | "plain_call" | "task_call" | "sampling")) {
            continue;
        }
        let got = play(&row).unwrap_or_else(|error| panic!("{}: {error}", row["id"]));
        assert!(
            agrees(&row["expect"], &got),
            "{}: expected {}, got {got}",
            row["id"],
            row["expect"]
        );
        played += 1;
    }
    assert!(played >= 30, "only {played} rows were played");
}
