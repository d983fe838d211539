//! Runs the operations of `cofferdam:plugin` in its argument, and returns the result of each.
//!
//! `script` is steps separated by `;`, each an operation and its words. The words are written in
//! hexadecimal digits, so they can hold anything. The answers are one per line in the same digits.

use cofferdam_test_programs::files::{self, EntryType, Error, Query, WriteMode};
use cofferdam_test_programs::*;

struct Program;

fn unhex(word: &str) -> String {
    let digits: Vec<_> = word.chars().map(|digit| digit.to_digit(16).unwrap_or(0) as u8).collect();
    String::from_utf8(digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect())
        .unwrap_or_default()
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn told(error: Error) -> String {
    match error {
        Error::UnknownStore => "unknown-store".into(),
        Error::NotFound => "not-found".into(),
        Error::AlreadyExists => "already-exists".into(),
        Error::WrongType(text) => format!("wrong-type: {text}"),
        Error::InvalidPath(text) => format!("invalid-path: {text}"),
        Error::ReadOnly => "read-only".into(),
        Error::Denied(text) => format!("denied: {text}"),
        Error::Limit(text) => format!("limit: {text}"),
        Error::InvalidPattern(text) => format!("invalid-pattern: {text}"),
        Error::Unavailable => "unavailable".into(),
    }
}

fn kind(kind: EntryType) -> &'static str {
    match kind {
        EntryType::File => "file",
        EntryType::Directory => "directory",
    }
}

fn step(words: &[String]) -> Result<String, Error> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let (store, path) = (word(1), word(2));
    let optional = |at: usize| Some(word(at).to_owned()).filter(|word| !word.is_empty());
    match word(0) {
        "stores" => {
            let stores = files::stores();
            let lines = stores.iter().map(|store| format!("{} {}", store.name, store.writable));
            Ok(lines.collect::<Vec<_>>().join(", "))
        }
        "stat" => {
            files::stat(store, path).map(|stat| format!("{} {}", kind(stat.type_), stat.size))
        }
        "read" => {
            let (offset, length) =
                (word(3).parse().unwrap_or(0), word(4).parse().unwrap_or(u64::MAX));
            files::read(store, path, offset, length)
                .map(|content| String::from_utf8_lossy(&content).into_owned())
        }
        "create" => {
            files::write(store, path, word(3).as_bytes(), WriteMode::Create).map(|()| "done".into())
        }
        "replace" => files::write(store, path, word(3).as_bytes(), WriteMode::Replace)
            .map(|()| "done".into()),
        "delete" => files::delete(store, path).map(|()| "done".into()),
        "create_directory" => files::create_directory(store, path).map(|()| "done".into()),
        "list" => {
            let entries = files::list(store, path, optional(3).as_deref(), word(4) == "recursive")?;
            let lines = entries.iter().map(|entry| format!("{} {}", kind(entry.type_), entry.name));
            Ok(lines.collect::<Vec<_>>().join(", "))
        }
        "search" => {
            let query = Query {
                pattern: word(3).to_owned(),
                case_sensitive: false,
                glob: optional(4),
                recursive: true,
            };
            let found = files::search(store, path, &query)?;
            let matches = found.matches.iter().map(|file| {
                let lines = file.lines.iter().map(|line| format!("{}:{}", line.number, line.text));
                format!("{} [{}]", file.path, lines.collect::<Vec<_>>().join("|"))
            });
            Ok(format!("{} {}", matches.collect::<Vec<_>>().join(", "), found.truncated))
        }
        // Through the standard library, which sees the same files.
        "std_read" => {
            Ok(std::fs::read_to_string(path).unwrap_or_else(|error| format!("{:?}", error.kind())))
        }
        "std_write" => {
            let done = std::fs::write(path, word(3));
            Ok(done.map_or_else(|error| format!("{:?}", error.kind()), |()| "done".into()))
        }
        // Calls another tool by its name, with its arguments.
        "call" => Ok(match toolbox::call_tool(word(1), word(2)) {
            Ok(contents) => contents.iter().map(shown).collect(),
            Err(error) => format!("{error:?}"),
        }),
        "tools" => {
            let names: Vec<_> = toolbox::list_tools().into_iter().map(|tool| tool.name).collect();
            Ok(names.join(" "))
        }
        // Starts a call of another tool, and returns its number.
        "start" => Ok(tool_calls::start(word(1), word(2)).to_string()),
        // Starts many calls with an argument of some length, and returns the last number.
        "start_many" => {
            let arguments = format!(r#"{{"text":"{}"}}"#, "x".repeat(word(3).parse().unwrap_or(0)));
            let count = word(2).parse().unwrap_or(0);
            let last = (0..count).map(|_| tool_calls::start(word(1), &arguments)).last();
            Ok(last.unwrap_or(0).to_string())
        }
        // Waits once.
        "wait" => Ok(ended(&tool_calls::wait_any())),
        // Waits until no call is left, and returns the number of waits and all ends.
        "wait_all" => {
            let mut all = Vec::new();
            let mut waits = 0;
            loop {
                let mut some = tool_calls::wait_any();
                if some.is_empty() {
                    break Ok(format!("{waits} {}", ended(&all)));
                }
                all.append(&mut some);
                waits += 1;
            }
        }
        // Waits until no call is left, and returns the number of ends of each kind.
        "count_ends" => {
            let mut counts = std::collections::BTreeMap::new();
            loop {
                let some = tool_calls::wait_any();
                if some.is_empty() {
                    break Ok(format!("{counts:?}"));
                }
                for call in some {
                    let kind = call.outcome.map_or_else(|error| error.kind.name(), |_| "ok");
                    *counts.entry(kind).or_insert(0) += 1;
                }
            }
        }
        // Asks the caller.
        "ask" => Ok(match client::ask(&questions(&words[1..])) {
            Ok(answers) => format!("{answers:?}"),
            Err(error) => format!("{error:?}"),
        }),
        "can_ask" => {
            let kinds = [client::Kind::Form, client::Kind::Sample, client::Kind::Roots];
            Ok(format!("{:?}", kinds.map(client::can_ask)))
        }
        "log" => {
            client::log(client::LogLevel::Warning, store);
            Ok("logged".into())
        }
        "time_left" => Ok(call::time_left_ms().to_string()),
        // Signals to the test that the call has reached this step.
        "tell" => {
            call::progress(1.0, None, Some(store));
            Ok("told".into())
        }
        // Waits until another call has committed a file.
        "await" => {
            while files::stat(store, path).is_err() {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            Ok("there".into())
        }
        "trap" => panic!("as asked"),
        "exit" => std::process::exit(3),
        "compute" => loop {
            std::hint::black_box(path);
        },
        "allocate" => {
            let mut kept = Vec::new();
            loop {
                kept.push(vec![1_u8; 1 << 24]);
                std::hint::black_box(&kept);
            }
        }
        "spin" => loop {
            std::thread::sleep(std::time::Duration::from_millis(1));
        },
        other => panic!("no such operation: {other}"),
    }
}

trait Named {
    fn name(&self) -> &'static str;
}

impl Named for tool_calls::ErrorKind {
    fn name(&self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown-tool",
            Self::InvalidArguments => "invalid-arguments",
            Self::Failed => "failed",
            Self::Ended => "ended",
            Self::Denied => "denied",
            Self::TooDeep => "too-deep",
            Self::Limit => "limit",
        }
    }
}

/// Describes calls that have ended.
fn ended(calls: &[tool_calls::EndedCall]) -> String {
    let call = |call: &tool_calls::EndedCall| {
        let outcome = match &call.outcome {
            Ok(contents) => format!("ok {}", contents.iter().map(shown).collect::<String>()),
            Err(error) => {
                let error_type = error.error_type.as_deref().unwrap_or("-");
                let mut text = format!("{} {error_type} {}", error.kind.name(), error.message);
                for (name, part) in [("suggestion", &error.suggestion), ("value", &error.value)] {
                    if let Some(part) = part {
                        text += &format!(" ({name}: {part})");
                    }
                }
                text + if error.transient { " (transient)" } else { "" }
            }
        };
        format!("{} {outcome}", call.call)
    };
    calls.iter().map(call).collect::<Vec<_>>().join("|")
}

fn shown(content: &Content) -> String {
    match content {
        Content::Text(text) | Content::Json(text) => text.clone(),
        Content::Blob(blob) => format!("{} bytes", blob.data.len()),
        other => format!("{other:?}"),
    }
}

/// Parses questions, each a kind and its words.
fn questions(words: &[String]) -> Vec<client::Question> {
    let mut words = words.iter().cloned();
    let mut questions = Vec::new();
    while let Some(kind) = words.next() {
        let (kind, name) = match kind.split_once(':') {
            Some((kind, name)) => (kind.to_owned(), Some(name.to_owned())),
            None => (kind, None),
        };
        let mut word = || words.next().unwrap_or_default();
        let request = match kind.as_str() {
            "form" => client::Request::Form(client::Form { message: word(), schema: word() }),
            "sample" => client::Request::Sample(word()),
            _ => client::Request::Roots,
        };
        questions.push(client::Question { name, request });
    }
    questions
}

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        let schema =
            r#"{"type":"object","properties":{"script":{"type":"string"}},"required":["script"]}"#;
        // The same tool with an output schema that its answer never satisfies.
        let mut liar = with_schema("lies_about_stores", schema);
        liar.output_schema = Some(r#"{"type":"object","required":["never"]}"#.into());
        vec![with_schema("stores", schema), liar]
    }

    fn call_tool(name: String, arguments: String) -> Result<Vec<Content>, Failure> {
        let script = arguments.split('"').nth(3).unwrap_or("").to_owned();
        let mut answers = Vec::new();
        for text in script.split(';') {
            let words: Vec<String> = text.split(' ').map(unhex).collect();
            if words.first().is_some_and(|word| word == "fail") {
                let message = answers.join("\n");
                return Err(Failure { message, suggestion: None, transient: None, value: None });
            }
            answers.push(hex(&step(&words).unwrap_or_else(told)));
        }
        Ok(vec![if name == "stores" {
            Content::Text(answers.join("\n"))
        } else {
            Content::Json("{}".into())
        }])
    }
}

export!(Program);
