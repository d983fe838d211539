//! Moves many bytes and many files with the standard library, for the benchmarks. The arguments are
//! the operation `do`, the path `at`, and the sizes `amount` and `step`.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};

use cofferdam_test_programs::*;

struct Program;

const DIRECTORIES: u64 = 10;
const SMALL_BYTES: usize = 1024;

/// Writes a file of `bytes` in pieces of `step`.
fn write(path: &str, bytes: u64, step: u64) -> io::Result<u64> {
    let (mut file, piece) = (File::create(path)?, vec![7; step as usize]);
    for _ in 0..bytes / step {
        file.write_all(&piece)?;
    }
    Ok(bytes)
}

fn read(path: &str, step: u64) -> io::Result<u64> {
    let (mut file, mut piece, mut bytes) = (File::open(path)?, vec![0; step as usize], 0);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(bytes),
            read => bytes += read as u64,
        }
    }
}

/// Creates `count` files in a few directories, which it creates too.
fn create_many(at: &str, count: u64) -> io::Result<u64> {
    let content = vec![7; SMALL_BYTES];
    for directory in 0..DIRECTORIES {
        fs::create_dir(format!("{at}/{directory}"))?;
    }
    for number in 0..count {
        fs::write(format!("{at}/{}/{number}", number % DIRECTORIES), &content)?;
    }
    Ok(count)
}

fn read_many(at: &str, count: u64) -> io::Result<u64> {
    let mut bytes = 0;
    for number in 0..count {
        bytes += fs::read(format!("{at}/{}/{number}", number % DIRECTORIES))?.len() as u64;
    }
    Ok(bytes)
}

/// Lists everything below `at`, with the kind and length of each entry.
fn list(at: &str) -> io::Result<u64> {
    let mut entries = 0;
    for entry in fs::read_dir(at)? {
        let entry = entry?;
        entries += 1;
        if entry.file_type()?.is_dir() {
            entries += list(&format!("{at}/{}", entry.file_name().to_string_lossy()))?;
        }
    }
    Ok(entries)
}

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        let property = |name: &str, kind: &str| format!(r#""{name}":{{"type":"{kind}"}}"#);
        let properties = [
            property("do", "string"),
            property("at", "string"),
            property("amount", "integer"),
            property("step", "integer"),
        ];
        vec![with_schema(
            "bulk_files",
            &format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(",")),
        )]
    }

    fn call_tool(_: String, arguments: String) -> Result<Vec<Content>, Failure> {
        let value = |key: &str| {
            let after = arguments.split(&format!("\"{key}\":")).nth(1).unwrap_or("");
            after.split([',', '}']).next().unwrap_or("").trim_matches('"').to_owned()
        };
        let number = |key: &str| value(key).parse().unwrap_or(0);
        let (at, amount, step) = (value("at"), number("amount"), number("step"));
        let done = match value("do").as_str() {
            "write" => write(&at, amount, step),
            "read" => read(&at, step),
            "create_many" => create_many(&at, amount),
            "read_many" => read_many(&at, amount),
            "list" => list(&at),
            other => panic!("not something to do: {other}"),
        };
        match done {
            Ok(done) => Ok(vec![Content::Text(done.to_string())]),
            Err(error) => Err(Failure {
                message: error.to_string(),
                suggestion: None,
                transient: None,
                value: None,
            }),
        }
    }
}

export!(Program);
