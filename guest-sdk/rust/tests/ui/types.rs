#![allow(unused_variables)]

use cofferdam_sdk::tool;

struct Opaque;

/// Cannot be decoded.
#[tool]
fn parameter(value: Opaque) {}

/// Cannot be written.
#[tool]
fn output() -> Option<Opaque> {
    None
}

/// No failure.
#[tool]
fn error() -> Result<u32, String> {
    Ok(1)
}

/// Wrong default.
#[tool]
fn default(#[tool(default = "one")] count: u32) {}

fn main() {}
