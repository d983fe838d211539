use cofferdam_sdk::tool;

#[tool]
fn count(
    /// The text.
    text: String,
) -> usize {
    text.len()
}

fn main() {}
