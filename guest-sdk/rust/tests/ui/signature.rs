#![allow(unused_variables)]

use cofferdam_sdk::tool;

/// Asynchronous.
#[tool]
async fn asynchronous() {}

/// Unsafe.
#[tool]
unsafe fn not_safe() {}

/// Generic.
#[tool]
fn generic<T>(value: T) -> u8 {
    let _ = value;
    0
}

struct Counter;

impl Counter {
    /// A method.
    #[tool]
    fn method(&self, text: String) {}
}

fn main() {}
