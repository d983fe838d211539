//! Opens a network connection that is not granted, and handles the refusal.

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        vec![tool("connects")]
    }

    fn call_tool(_name: String, _arguments: String) -> Result<Vec<Content>, Failure> {
        let connected = std::net::TcpStream::connect("127.0.0.1:9");
        let answer = match connected {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => "ok".to_owned(),
            other => format!("{other:?}"),
        };
        Ok(vec![Content::Text(answer)])
    }
}

export!(Program);
