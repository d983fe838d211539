use cofferdam::tool;

mod other {
    /// Counts.
    #[cofferdam::tool]
    pub fn Count() {}
}

/// Counts.
#[tool]
fn count() {}

fn plain() {}

cofferdam::plugin!(count, other::Count);

cofferdam::plugin!(plain);

cofferdam::plugin!();

fn main() {}
