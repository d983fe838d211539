//! Calls that end with a result, which is not always valid.

use std::io::{Read as _, Write, stderr, stdin, stdout};

use cofferdam_sdk::{Content, ToolFailure, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answers `ok`.
#[tool(read_only)]
pub fn ok() -> &'static str {
    "ok"
}

/// Reports a failure with a suggestion that is not worth trying again.
#[tool(read_only)]
pub fn fail(
    /// What went wrong.
    #[tool(default = "the tool was asked to fail")]
    message: String,
) -> Result<(), ToolFailure> {
    Err(ToolFailure::new(message).suggestion("call `ok` instead").permanent())
}

/// Reports a failure that is worth trying again.
#[tool(read_only)]
pub fn fail_transiently() -> Result<(), ToolFailure> {
    Err(ToolFailure::new("the moment is bad").suggestion("try again").transient())
}

/// Answers with something that claims to be JSON and is not.
#[tool(read_only)]
pub fn invalid_json() -> Content {
    Content::Json("{not json".to_owned())
}

/// Answers with a text of a given length.
#[tool(read_only)]
pub fn huge_output(
    /// The length of the text.
    #[tool(default = 16 << 20)]
    bytes: u32,
) -> String {
    "x".repeat(bytes as usize)
}

/// Where to write.
#[derive(Debug, Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Writes to standard output or standard error, then answers `ok`.
#[tool(read_only)]
pub fn print(
    /// How many bytes to write.
    #[tool(default = 1024)]
    bytes: u32,
    #[tool(default = Stream::Stdout)] stream: Stream,
) -> Result<&'static str, std::io::Error> {
    match stream {
        Stream::Stdout => write_lines(&mut stdout(), bytes)?,
        Stream::Stderr => write_lines(&mut stderr(), bytes)?,
    }
    Ok("ok")
}

/// Writes lines of 64 bytes, the last one cut.
fn write_lines(stream: &mut impl Write, bytes: u32) -> Result<(), std::io::Error> {
    const LINE: &[u8; 64] = b"123456789 123456789 123456789 123456789 123456789 123456789 123\n";
    let mut rest = bytes as usize;
    while rest > 0 {
        let line = LINE.get(..rest).unwrap_or(LINE);
        stream.write_all(line)?;
        rest -= line.len();
    }
    stream.flush()
}

/// Reads standard input to its end and answers with it. Where a host has nothing to say, that is
/// the empty text.
#[tool(read_only)]
pub fn read_stdin() -> Result<String, std::io::Error> {
    let mut text = String::new();
    stdin().read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{Content, json, testing};

    use super::{fail, fail_transiently, huge_output, invalid_json, ok, write_lines};

    #[test]
    fn answer_or_fail() {
        assert_eq!(testing::call::<ok>(json!({})), Ok(json!("ok")));
        let failure = testing::call::<fail>(json!({"message": "no"})).unwrap_err();
        assert_eq!(failure.to_string(), "no; call `ok` instead");
        assert_eq!(failure.is_transient(), Some(false));
        let failure = testing::call::<fail_transiently>(json!({})).unwrap_err();
        assert_eq!(failure.is_transient(), Some(true));
    }

    #[test]
    fn answer_oddly() {
        assert_eq!(
            testing::contents::<invalid_json>(json!({})),
            Ok(vec![Content::Json("{not json".into())])
        );
        let text = testing::call::<huge_output>(json!({"bytes": 100})).unwrap();
        assert_eq!(text.as_str().map(str::len), Some(100));
    }

    #[test]
    fn print_as_many_bytes_as_asked() {
        for bytes in [0, 1, 64, 65, 1000] {
            let mut written = Vec::new();
            write_lines(&mut written, bytes).unwrap();
            assert_eq!(written.len(), bytes as usize);
        }
    }
}
