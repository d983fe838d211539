use cofferdam_sdk::{ToolFailure, tool};

/// Greets somebody by name, as often as is wanted.
#[tool(read_only, idempotent)]
pub fn greet(
    /// Whom to greet.
    name: String,
    /// How often; at most 10 times.
    #[tool(default = 1)]
    times: usize,
) -> Result<String, ToolFailure> {
    if times > 10 {
        return Err(ToolFailure::new(format!("{times} times is too often")).suggestion("pass 10 or less"));
    }
    Ok(vec![format!("Hello, {name}!"); times].join(" "))
}

cofferdam_sdk::plugin!(greet);

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{json, testing};

    use super::greet;

    #[test]
    fn somebody_is_greeted() {
        let greeting = testing::call::<greet>(json!({"name": "Ada"}));
        assert_eq!(greeting.unwrap(), "Hello, Ada!");
    }
}
