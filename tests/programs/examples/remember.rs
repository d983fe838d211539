//! Counts its calls in memory.

use cofferdam_test_programs::*;

struct Program;

static CALLS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        vec![tool("remember")]
    }

    fn call_tool(_name: String, _arguments: String) -> Result<Vec<Content>, Failure> {
        let count = CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        Ok(vec![Content::Text(count.to_string())])
    }
}

export!(Program);
