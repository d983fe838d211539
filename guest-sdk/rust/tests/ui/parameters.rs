#![allow(unused_variables)]

use cofferdam_sdk::tool;

/// Parameters.
#[tool]
fn parameters(
    /// A pattern.
    (first, second): (u32, u32),
    /// A slice.
    text: &str,
    /// Deeper.
    list: Option<Vec<&'static [u8]>>,
    value: impl std::fmt::Display,
    #[tool(default = None)] nullable: Option<String>,
    #[tool(min = 1)] least: u32,
    #[tool(default = 1)]
    #[tool(default = 2)]
    twice: u32,
    #[tool(default = 1, default = 2)] again: u32,
    #[doc = concat!("a", "b")] computed: u32,
) -> u32 {
    first
}

fn main() {}
