//! Opens the connections of its arguments, and returns the results.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};

use cofferdam_test_programs::*;

struct Program;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        let text = r#"{"type":"string","default":""}"#;
        vec![with_schema(
            "sockets",
            &format!(r#"{{"type":"object","properties":{{"do":{text},"to":{text}}}}}"#),
        )]
    }

    fn call_tool(_name: String, arguments: String) -> Result<Vec<Content>, Failure> {
        let value = |key: &str| {
            let after = arguments.split(&format!("\"{key}\":\"")).nth(1).unwrap_or("");
            after.split('"').next().unwrap_or("").to_owned()
        };
        let to = value("to");
        let done = match value("do").as_str() {
            // Says hello and reads the answer.
            "tcp" => TcpStream::connect(&to).and_then(|mut stream| {
                stream.write_all(b"hello\n")?;
                let mut answer = String::new();
                stream.read_to_string(&mut answer)?;
                Ok(answer)
            }),
            "udp" => UdpSocket::bind("0.0.0.0:0").and_then(|socket| {
                socket.send_to(b"hello\n", &to)?;
                let mut answer = [0; 64];
                let (length, from) = socket.recv_from(&mut answer)?;
                Ok(format!("{} from {from}", String::from_utf8_lossy(&answer[..length])))
            }),
            "lookup" => to.to_socket_addrs().map(|found| {
                let found: Vec<_> = found.map(|address| address.to_string()).collect();
                found.join(" ")
            }),
            "listen" => TcpListener::bind(&to).map(|_| "listening".to_owned()),
            other => panic!("no such operation: {other}"),
        };
        Ok(vec![Content::Text(done.unwrap_or_else(|error| format!("error: {:?}", error.kind())))])
    }
}

export!(Program);
