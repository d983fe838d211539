//! Opens a network connection that nobody granted.

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        vec![tool("connects")]
    }

    fn call_tool(_name: String, _arguments: String) -> Result<Vec<Content>, Failure> {
        let connected = std::net::TcpStream::connect("127.0.0.1:9");
        Ok(vec![Content::Text(format!("{connected:?}"))])
    }
}

export!(Program);
