//! Does one file operation that its arguments name, and says how that went.

use std::ffi::{CString, c_char, c_int};
use std::{fs, io};

use cofferdam_test_programs::*;

struct Program;

unsafe extern "C" {
    fn symlink(from: *const c_char, to: *const c_char) -> c_int;
}

/// The standard library has no stable way to create a link on this target.
fn plant(from: &str, to: &str) -> io::Result<()> {
    let (from, to) = (CString::new(from)?, CString::new(to)?);
    // SAFETY: both are texts that end in a zero byte and outlive the call.
    match unsafe { symlink(from.as_ptr(), to.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        let text = r#"{"type":"string","default":""}"#;
        let schema = format!(r#"{{"type":"object","properties":{{"do":{text},"from":{text},"to":{text}}}}}"#);
        vec![with_schema("files", &schema)]
    }

    fn call_tool(_name: String, arguments: String) -> Result<Vec<Content>, Failure> {
        let value = |key: &str| {
            let after = arguments.split(&format!("\"{key}\":\"")).nth(1).unwrap_or("");
            after.split('"').next().unwrap_or("").to_owned()
        };
        let (from, to) = (value("from"), value("to"));
        let done = match value("do").as_str() {
            "read" => fs::read_to_string(&from),
            "write" => fs::write(&from, &to).map(|()| String::from("done")),
            "rename" => fs::rename(&from, &to).map(|()| String::from("done")),
            "symlink" => plant(&from, &to).map(|()| String::from("done")),
            "link" => fs::hard_link(&from, &to).map(|()| String::from("done")),
            other => panic!("no such operation: {other}"),
        };
        Ok(vec![Content::Text(done.unwrap_or_else(|error| format!("error: {:?}", error.kind())))])
    }
}

export!(Program);
