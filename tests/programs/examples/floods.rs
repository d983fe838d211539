//! Prints a mebibyte that ends in a known line.

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        vec![tool("floods")]
    }

    fn call_tool(_name: String, _arguments: String) -> Result<Vec<Content>, Failure> {
        for _ in 0..16_384 {
            println!("{}", "x".repeat(63));
        }
        println!("the end\u{1b}[2J");
        Ok(vec![])
    }
}

export!(Program);
