//! Spins while it lists its tools.

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        loop {
            std::hint::black_box(())
        }
    }

    fn call_tool(_name: String, _arguments: String) -> Result<Vec<Content>, Failure> {
        Ok(vec![])
    }
}

export!(Program);
