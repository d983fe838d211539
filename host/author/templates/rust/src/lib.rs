use cofferdam_sdk::{ToolFailure, tool};

/// Greets a person by name, once or several times.
#[tool(read_only, idempotent)]
pub fn greet(
    /// Name of the person to greet.
    name: String,
    /// Number of greetings; at most 10.
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
    fn a_greeting_has_the_name() {
        let greeting = testing::call::<greet>(json!({"name": "Ada"}));
        assert_eq!(greeting.unwrap(), "Hello, Ada!");
    }
}
