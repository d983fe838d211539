//! Runs the file operations of its arguments and returns their results.
//!
//! One operation is `do` with `from` and `to`. Several are a `script`: steps separated by `;`, each
//! an operation and its words; the answers have the same form. Files that a script opens stay open
//! until its end.

use std::ffi::{CString, c_char, c_int};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::time::Duration;

use cofferdam_test_programs::*;

struct Program;

unsafe extern "C" {
    fn symlink(from: *const c_char, to: *const c_char) -> c_int;
}

/// Creates a link. The standard library has no stable function for it on this target.
fn plant(from: &str, to: &str) -> io::Result<()> {
    let (from, to) = (CString::new(from)?, CString::new(to)?);
    // SAFETY: both strings end in a zero byte and outlive the call.
    match unsafe { symlink(from.as_ptr(), to.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn done(result: io::Result<()>) -> io::Result<String> {
    result.map(|()| "done".into())
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("not a number: {text}"))
}

/// Runs an operation with one or two words.
fn act(what: &str, from: &str, to: &str) -> io::Result<String> {
    match what {
        "read" => fs::read_to_string(from),
        "write" => done(fs::write(from, to)),
        "rename" => done(fs::rename(from, to)),
        "symlink" => done(plant(from, to)),
        "link" => done(fs::hard_link(from, to)),
        "append" => {
            done(OpenOptions::new().append(true).create(true).open(from)?.write_all(to.as_bytes()))
        }
        "create_new" => done(File::create_new(from).map(drop)),
        "size" => fs::metadata(from).map(|metadata| metadata.len().to_string()),
        "kind" => fs::symlink_metadata(from).map(|metadata| {
            (if metadata.is_dir() {
                "directory"
            } else if metadata.is_file() {
                "file"
            } else {
                "other"
            })
            .into()
        }),
        "is_new" => {
            let age = fs::metadata(from)?.modified()?.elapsed().unwrap_or_default();
            Ok((age < Duration::from_secs(60)).to_string())
        }
        "set_len" => done(OpenOptions::new().write(true).open(from)?.set_len(number(to))),
        "write_to_read_only" => done(File::open(from)?.write_all(to.as_bytes())),
        "list" => list(from),
        "create_dir" => done(fs::create_dir(from)),
        "create_dir_all" => done(fs::create_dir_all(from)),
        "remove_file" => done(fs::remove_file(from)),
        "remove_dir" => done(fs::remove_dir(from)),
        "remove_dir_all" => done(fs::remove_dir_all(from)),
        "copy" => fs::copy(from, to).map(|bytes| bytes.to_string()),
        "touch" => done(
            File::options().write(true).open(from)?.set_modified(std::time::SystemTime::UNIX_EPOCH),
        ),
        "fill" => done(fill(from, number(to))),
        "scan" => scan(from),
        "many" => many(from, number(to)),
        "deep" => deep(from, number(to)),
        "watch" => watch(from, number(to)),
        "await_change" => await_change(from),
        other => panic!("no such operation: {other}"),
    }
}

fn list(path: &str) -> io::Result<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let end = if entry.file_type()?.is_dir() { "/" } else { "" };
        names.push(format!("{}{end}", entry.file_name().to_string_lossy()));
    }
    names.sort();
    Ok(names.join(" "))
}

fn fill(path: &str, bytes: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    let block = vec![b'x'; 65536];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(65536);
        file.write_all(&block[..part as usize])?;
        left -= part;
    }
    Ok(())
}

fn scan(path: &str) -> io::Result<String> {
    let (mut file, mut block, mut bytes) = (File::open(path)?, vec![0; 65536], 0);
    loop {
        match file.read(&mut block)? {
            0 => return Ok(format!("{bytes}")),
            read => bytes += read,
        }
    }
}

/// Creates up to `count` files of one byte, stops at the first error, and returns their number.
fn many(directory: &str, count: u64) -> io::Result<String> {
    for number in 0..count {
        if let Err(error) = fs::write(format!("{directory}/{number}"), "x") {
            return Ok(format!("{number} {:?}", error.kind()));
        }
    }
    Ok(count.to_string())
}

fn deep(directory: &str, count: u64) -> io::Result<String> {
    let mut path = directory.to_owned();
    for number in 0..count {
        path.push_str("/d");
        if let Err(error) = fs::create_dir(&path) {
            return Ok(format!("{number} {:?}", error.kind()));
        }
    }
    Ok(count.to_string())
}

/// Reads a file again and again and lists every distinct content.
fn watch(path: &str, count: u64) -> io::Result<String> {
    let (mut seen, mut refused) = (Vec::new(), 0);
    for _ in 0..count {
        match fs::read_to_string(path) {
            Ok(text) if !seen.contains(&text) => seen.push(text),
            Ok(_) => {}
            Err(_) => refused += 1,
        }
    }
    seen.sort();
    Ok(format!("{} refused {refused}", seen.join(" ")))
}

/// Waits until the content of a file changes.
fn await_change(path: &str) -> io::Result<String> {
    let first = fs::read_to_string(path)?;
    while fs::read_to_string(path)? == first {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Ok("changed".into())
}

/// Runs one step of a script.
fn step(words: &[&str], open: &mut Vec<File>) -> io::Result<String> {
    let word = |at: usize| words.get(at).copied().unwrap_or("");
    let at = || usize::try_from(number(word(1))).unwrap_or(usize::MAX);
    match word(0) {
        "open" => {
            let mut options = OpenOptions::new();
            let mode = word(1);
            options.read(mode.contains('r')).write(mode.contains('w')).append(mode.contains('a'));
            options.create(mode.contains('c')).truncate(mode.contains('t'));
            open.push(options.open(word(2))?);
            Ok((open.len() - 1).to_string())
        }
        "close" => {
            open.remove(at());
            Ok("done".into())
        }
        "put" => done(open[at()].write_all(word(2).as_bytes())),
        "get" => {
            let mut text = String::new();
            open[at()].read_to_string(&mut text).map(|_| text)
        }
        "seek" => open[at()].seek(SeekFrom::Start(number(word(2)))).map(|at| at.to_string()),
        "cut" => done(open[at()].set_len(number(word(2)))),
        "length" => open[at()].metadata().map(|metadata| metadata.len().to_string()),
        "sync" => done(open[at()].sync_all()),
        "trap" => panic!("as asked"),
        "spin" => loop {
            std::hint::black_box(());
        },
        what => act(what, word(1), word(2)),
    }
}

/// Returns the library's name of an error, or the system's number if it has none.
fn told(error: &io::Error) -> String {
    match (error.kind(), error.raw_os_error()) {
        (kind, Some(number)) if format!("{kind:?}") == "Uncategorized" => {
            format!("error: os {number}")
        }
        (kind, _) => format!("error: {kind:?}"),
    }
}

/// Runs the steps; a step `fail` ends the script with a failure.
fn run(script: &str) -> Result<String, Failure> {
    let (mut open, mut answers) = (Vec::new(), Vec::new());
    for text in script.split(';') {
        let words: Vec<&str> = text.split_whitespace().collect();
        if words.first() == Some(&"fail") {
            let message = answers.join("; ");
            return Err(Failure { message, suggestion: None, transient: None, value: None });
        }
        if words.first() == Some(&"flood") {
            return Ok("x".repeat(2 * 1024 * 1024));
        }
        answers.push(step(&words, &mut open).unwrap_or_else(|error| told(&error)));
    }
    Ok(answers.join("; "))
}

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        let text = r#"{"type":"string","default":""}"#;
        let properties: Vec<_> = ["do", "from", "to", "script"]
            .iter()
            .map(|name| format!(r#""{name}":{text}"#))
            .collect();
        let schema = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","));
        // The same tool with an output schema that its answer never satisfies.
        let mut liar = with_schema("lies_about_files", &schema);
        liar.output_schema = Some(r#"{"type":"object","required":["never"]}"#.into());
        vec![with_schema("files", &schema), liar]
    }

    fn call_tool(name: String, arguments: String) -> Result<Vec<Content>, Failure> {
        let value = |key: &str| {
            let after = arguments.split(&format!("\"{key}\":\"")).nth(1).unwrap_or("");
            after.split('"').next().unwrap_or("").to_owned()
        };
        let script = value("script");
        if !script.is_empty() {
            let answer = run(&script)?;
            return Ok(vec![if name == "files" {
                Content::Text(answer)
            } else {
                Content::Json("{}".into())
            }]);
        }
        let done = act(&value("do"), &value("from"), &value("to"));
        Ok(vec![Content::Text(done.unwrap_or_else(|error| told(&error)))])
    }
}

export!(Program);
