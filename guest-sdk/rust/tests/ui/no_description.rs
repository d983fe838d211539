use cofferdam::tool;

#[tool]
fn count(
    /// The text.
    text: String,
) -> usize {
    text.len()
}

fn main() {}
