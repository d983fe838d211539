use cofferdam_sdk::tool;

/// Counts.
#[tool]
struct Counter {
    count: u32,
}

fn main() {}
