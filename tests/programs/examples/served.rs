//! Tools for tests of an MCP server: a structured answer, a failure, progress, and work that ends
//! only when it is stopped.

use std::time::Duration;

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        let mut echo = with_schema(
            "echo",
            r#"{"type":"object","properties":{"message":{"type":"string"},"number":{"type":"integer"}},"required":["message"]}"#,
        );
        echo.output_schema = Some(
            r#"{"type":"object","properties":{"echoed":{"type":"object","properties":{"message":{"type":"string"},"number":{"type":"integer"}},"required":["message"]}},"required":["echoed"]}"#
                .to_owned(),
        );
        let count = with_schema(
            "count",
            r#"{"type":"object","properties":{"steps":{"type":"integer","minimum":1,"maximum":1000},"pause_ms":{"type":"integer","minimum":0,"maximum":1000}},"required":["steps","pause_ms"]}"#,
        );
        vec![echo, tool("refuse"), count, tool("compute")]
    }

    fn call_tool(name: String, arguments: String) -> Result<Vec<Content>, Failure> {
        match name.as_str() {
            "echo" => Ok(vec![Content::Json(format!(r#"{{"echoed":{arguments}}}"#))]),
            "refuse" => Err(Failure {
                message: "there is no such row".to_owned(),
                suggestion: Some("ask for another row".to_owned()),
                transient: Some(false),
                value: None,
            }),
            "count" => {
                let steps = number(&arguments, "steps");
                for step in 1..=steps {
                    std::thread::sleep(Duration::from_millis(number(&arguments, "pause_ms")));
                    call::progress(step as f64, Some(steps as f64), Some(&format!("step {step}")));
                }
                Ok(vec![Content::Text(format!("counted to {steps}"))])
            }
            _ => loop {
                std::hint::spin_loop();
            },
        }
    }
}

/// Returns a number of the arguments, which the host writes without spaces.
fn number(arguments: &str, name: &str) -> u64 {
    let rest = arguments.split(&format!("\"{name}\":")).nth(1).unwrap_or_default();
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or_default()
}

export!(Program);
