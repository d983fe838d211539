use cofferdam_sdk::tool;

mod other {
    /// Counts.
    #[cofferdam_sdk::tool]
    pub fn Count() {}
}

/// Counts.
#[tool]
fn count() {}

fn plain() {}

cofferdam_sdk::plugin!(count, other::Count);

cofferdam_sdk::plugin!(plain);

cofferdam_sdk::plugin!();

fn main() {}
