//! Rows of `sessions.jsonl`: sessions as JSON, history files, and state that is stored between
//! runs.

mod runs;

use cofferdam_files::session_stem;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use cofferdam_agent::history::{FileHistory, FileHistoryOptions, HistoryError, HistoryFlags};
use cofferdam_agent::{Message, MessageContent, Role, Session};
use serde_json::{Map, Value, json};

use super::agent::block_on;
use super::{Row, expect_same, same};

/// Session of the rows about files.
const SESSION: &str = "s1";
const FILE: &str = "s1.jsonl";

pub(crate) fn run(row: &Row) -> Result<(), String> {
    match row.op.as_str() {
        "stem" => {
            let id = row.get("session_id").map(text).transpose()?;
            expect_same("stem", &row.expect, &json!(session_stem(id)))
        }
        "different_stems" => different_stems(row),
        "new" => new(row),
        "to_json" => expect_part(row, &form(&given_session(row)?)?),
        "from_json" => from_json(row),
        "round_trip" => round_trip(row),
        "save" => save(row),
        "file" => file(row),
        "not_regular" => not_regular(row),
        "concurrent_appends" => concurrent_appends(row),
        "default" => default(row),
        "flags" => runs::flags(row),
        "providers" => runs::providers(row),
        "instructions" => runs::instructions(row),
        "remembering" => runs::remembering(row),
        other => Err(format!("unknown operation `{other}`")),
    }
}

/// Waits for file work.
fn wait<T>(work: impl Future<Output = Result<T, HistoryError>>) -> Result<T, HistoryError> {
    let waited = block_on(async { Ok(work.await) });
    waited.unwrap_or_else(|late| panic!("{late}"))
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("{value} is not a text"))
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn number(row: &Row, name: &str) -> Result<usize, String> {
    let number = row.required(name)?.as_u64().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| format!("`{name}` is not a number"))
}

/// Compares only the keys that a row expects; an expected key that is missing is an error.
fn expect_part(row: &Row, got: &Value) -> Result<(), String> {
    let Some(expected) = row.expect.as_object() else {
        return expect_same(&row.op, &row.expect, got);
    };
    expected.iter().try_for_each(|(name, value)| {
        let got = got.get(name).ok_or_else(|| format!("expected `{name}`, got {got}"))?;
        expect_same(name, value, got)
    })
}

/// Compares the stems of different ids (`SES-12`). Identical ids are not different: a letter that
/// only looked like another one was lost in the row, and nothing remains to compare.
fn different_stems(row: &Row) -> Result<(), String> {
    let ids: BTreeSet<_> = texts(row.required("ids")?).into_iter().collect();
    // A file system that ignores case treats these as equal.
    let stems: BTreeSet<_> = ids.iter().map(|id| session_stem(Some(id)).to_lowercase()).collect();
    expect_same("different", &row.expect, &json!(stems.len() == ids.len()))
}

fn form(session: &Session) -> Result<Value, String> {
    serde_json::to_value(session).map_err(|error| error.to_string())
}

fn new(row: &Row) -> Result<(), String> {
    let session = match row.get("session_id") {
        Some(id) => Session::with_id(text(id)?),
        None => Session::new(),
    };
    let mut got = form(&session)?;
    if row.expect["session_id"] == "<uuid>" {
        let is_uuid = |id: &str| {
            let parts: Vec<_> = id.split('-').map(str::len).collect();
            parts == [8, 4, 4, 4, 12] && id.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
        };
        if !is_uuid(session.id()) || session.id() == Session::new().id() {
            return Err(format!("`{}` is not a random UUID", session.id()));
        }
        got["session_id"] = "<uuid>".into();
    }
    expect_part(row, &got)
}

/// Returns a session from the fields of a row, or from an object in it.
fn given_session(row: &Row) -> Result<Session, String> {
    let object = row.get("session").or_else(|| row.get("json")).and_then(Value::as_object);
    let get = |name| {
        object
            .map_or_else(|| row.get(name), |object| object.get(name))
            .filter(|value| !value.is_null())
    };
    let session = match get("session_id") {
        Some(id) => Session::with_id(text(id)?),
        None => Session::new(),
    };
    session.set_service_id(get("service_session_id").map(text).transpose()?.map(str::to_owned));
    if let Some(state) = get("state") {
        for (source, part) in state.as_object().ok_or("`state` is not an object")? {
            session.set_part(source, part.clone());
        }
    }
    Ok(session)
}

fn from_json(row: &Row) -> Result<(), String> {
    let read = serde_json::from_value::<Session>(row.required("json")?.clone());
    let mut got = match &read {
        Ok(session) => form(session)?,
        Err(_) => json!({}),
    };
    got["refused"] = read.is_err().into();
    expect_part(row, &got)
}

fn round_trip(row: &Row) -> Result<(), String> {
    let session: Session =
        serde_json::from_value(row.required("json")?.clone()).map_err(|error| error.to_string())?;
    let again: Session =
        serde_json::from_str(&form(&session)?.to_string()).map_err(|error| error.to_string())?;
    if again != session {
        return Err(format!("{again:?} is not {session:?}"));
    }
    expect_same("JSON form", &row.expect, &form(&again)?)
}

fn histories(directory: &Path) -> Result<FileHistory, String> {
    FileHistory::open_ambient(directory, FileHistoryOptions::default())
        .map_err(|error| error.to_string())
}

/// Parses a message of a row: a record, or a role and one content.
fn message(value: &Value) -> Result<Arc<Message>, String> {
    if value.get("contents").is_some() {
        return serde_json::from_value(value.clone())
            .map(Arc::new)
            .map_err(|error| error.to_string());
    }
    let object = value.as_object().ok_or("a message is not an object")?;
    let role: Role =
        serde_json::from_value(value["role"].clone()).map_err(|error| error.to_string())?;
    let mut contents = Vec::new();
    for (name, part) in object.iter().filter(|(name, _)| *name != "role") {
        let kind = match name.as_str() {
            "text" => {
                contents.push(MessageContent::text(text(part)?));
                continue;
            }
            "call" => "function_call",
            "result" => "function_result",
            other => return Err(format!("unknown content `{other}`")),
        };
        let mut part =
            part.as_object().cloned().ok_or_else(|| format!("`{name}` is not an object"))?;
        part.insert("type".into(), kind.into());
        contents
            .push(serde_json::from_value(Value::Object(part)).map_err(|error| error.to_string())?);
    }
    Ok(Arc::new(Message::new(role, contents)))
}

fn save(row: &Row) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let files = histories(directory.path())?;
    let messages = row.required("messages")?.as_array().ok_or("`messages` is not a list")?;
    let messages = messages.iter().map(message).collect::<Result<Vec<_>, _>>()?;
    wait(files.append(SESSION, &messages)).map_err(|error| error.to_string())?;
    let Ok(written) = fs::read_to_string(directory.path().join(FILE)) else {
        return expect_part(row, &json!({"file_created": false, "lines": 0}));
    };
    let read = wait(files.read(SESSION)).map_err(|error| error.to_string())?;
    if read.iter().ne(messages.iter().map(AsRef::as_ref)) {
        return Err(format!("saved {messages:?}, read {read:?}"));
    }
    let records: Vec<Value> =
        written.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect();
    let texts: Vec<_> = read.iter().map(Message::text).collect();
    let is_beyond_ascii = texts.iter().any(|text| !text.is_ascii());
    expect_part(
        row,
        &json!({
            "file_created": true,
            "lines": written.matches('\n').count(),
            "ends_with_lf": written.ends_with('\n'),
            "has_cr": written.contains('\r'),
            "non_ascii_escaped": is_beyond_ascii && written.is_ascii(),
            "content": written,
            "record": records.first(),
            "records": records,
            "texts": texts,
        }),
    )
}

/// Runs steps on a file: `read`, `append <text>`. Returns the result of the last step, or the first
/// error.
fn work(files: &FileHistory, steps: &str) -> Result<Value, String> {
    let mut got = json!({});
    for step in steps.split(',').map(str::trim) {
        let done = match step.split_once(' ').unwrap_or((step, "b")) {
            ("read", _) => wait(files.read(SESSION)).map(|messages| {
                let texts: Vec<_> = messages.iter().map(Message::text).collect();
                got = json!({"texts": texts, "count": messages.len(), "records": messages});
            }),
            ("write", "back") => {
                let messages = wait(files.read(SESSION));
                messages.and_then(|messages| {
                    let messages: Vec<_> = messages.into_iter().map(Arc::new).collect();
                    wait(files.append(SESSION, &messages))
                })
            }
            ("append", text) => wait(files.append(SESSION, &[Arc::new(Message::user(text))])),
            _ => return Err(format!("unknown step `{step}`")),
        };
        if let Err(error) = done {
            return Ok(json!({"error": error.to_string()}));
        }
    }
    Ok(got)
}

fn file(row: &Row) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = directory.path().join(FILE);
    let before = match (row.get("before"), row.get("before_hex")) {
        (Some(before), _) => Some(text(before)?.as_bytes().to_vec()),
        (None, Some(hex)) => Some(bytes(text(hex)?)?),
        (None, None) => None,
    };
    if let Some(before) = &before {
        fs::write(&path, before).map_err(|error| error.to_string())?;
    }
    let mut got = work(&histories(directory.path())?, row.text("do")?)?;
    let after = fs::read(&path).ok();
    // The previous content is still there.
    if !after.as_deref().unwrap_or_default().starts_with(before.as_deref().unwrap_or_default()) {
        return Err(format!("the file was {before:?} and is {after:?}"));
    }
    got["file_created"] = (before.is_none() && after.is_some()).into();
    got["file_exists"] = after.is_some().into();
    got["content"] = json!(after.map(|after| String::from_utf8_lossy(&after).into_owned()));
    let records: Vec<Value> = got["content"]
        .as_str()
        .unwrap_or_default()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_default())
        .collect();
    let is_repeated = records.len() == 2 && records[0] == records[1];
    got["unknown_fields_kept"] = (is_repeated && !records[0].is_null()).into();
    got["lines"] = json!(got["content"].as_str().map(|content| content.matches('\n').count()));
    expect_part(row, &got)
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap_or_default());
    pairs.map(|pair| u8::from_str_radix(pair, 16).map_err(|error| error.to_string())).collect()
}

#[cfg(unix)]
fn not_regular(row: &Row) -> Result<(), String> {
    use std::os::unix::fs::symlink;
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let storage = directory.path().join("storage");
    let (path, outside) = (storage.join(FILE), directory.path().join("outside.jsonl"));
    let files = histories(&storage)?;
    let record = |text: &str| serde_json::to_string(&Message::user(text)).unwrap_or_default();
    fs::write(&outside, record("outside")).map_err(|error| error.to_string())?;
    fs::write(storage.join("other.jsonl"), record("other")).map_err(|error| error.to_string())?;
    let kind = row.text("kind")?;
    let has = |word: &str| kind.contains(word);
    let mut held = None;
    let made = if has("link") {
        let target = match () {
            () if has("nowhere")
                || has("dangling")
                || has("broken")
                || has("missing")
                || has("nothing") =>
            {
                "nowhere"
            }
            () if has("itself") || has("loop") => FILE,
            () if has("directory") && !has("outside") && !has("inside") => ".",
            () if has("inside") || has("same") || has("within") => "other.jsonl",
            () => "../outside.jsonl",
        };
        symlink(target, &path)
    } else if has("directory") || has("folder") {
        fs::create_dir(&path)
    } else if has("fifo") || has("pipe") {
        std::process::Command::new("mkfifo").arg(&path).status().map(drop)
    } else if has("socket") {
        std::os::unix::net::UnixListener::bind(&path).map(|listener| held = Some(listener))
    } else {
        return Err(format!("unknown kind `{kind}`"));
    };
    made.map_err(|error| error.to_string())?;
    let got = work(&files, row.text("do")?)?;
    drop(held);
    // Nothing was written or created at the target of a link.
    let untouched = [(outside, "outside"), (storage.join("other.jsonl"), "other")];
    for (path, text) in untouched {
        expect_same(
            "file",
            &json!(record(text)),
            &json!(fs::read_to_string(path).unwrap_or_default()),
        )?;
    }
    if storage.join("nowhere").exists() {
        return Err("a file was made where the link leads".into());
    }
    expect_part(row, &got)
}

#[cfg(not(unix))]
fn not_regular(_: &Row) -> Result<(), String> {
    Err("there are no such files here".into())
}

/// Runs concurrent writers: tasks that share a store, and stores of their own.
fn concurrent_appends(row: &Row) -> Result<(), String> {
    if row.get("processes").is_some() {
        return appends_of_processes(row);
    }
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (writers, each) = (number(row, "writers")?, number(row, "each")?);
    let shared = histories(directory.path())?;
    block_on(async {
        let tasks = (0..writers).map(|writer| {
            let files =
                if writer % 2 == 0 { Ok(shared.clone()) } else { histories(directory.path()) };
            tokio::spawn(async move {
                let files = files?;
                for number in 0..each {
                    let message =
                        Arc::new(Message::user(format!("{writer} {number} {}", "x".repeat(300))));
                    files.append(SESSION, &[message]).await.map_err(|error| error.to_string())?;
                }
                Ok::<_, String>(())
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.map_err(|error| error.to_string())??;
        }
        Ok::<_, String>(())
    })?;
    let written =
        fs::read_to_string(directory.path().join(FILE)).map_err(|error| error.to_string())?;
    let read = wait(shared.read(SESSION)).map_err(|error| error.to_string())?;
    let all: BTreeSet<_> = read.iter().map(Message::text).collect();
    let lines: Vec<_> = written.lines().collect();
    let parse = |line: &&str| serde_json::from_str::<Map<String, Value>>(line).is_ok();
    expect_part(
        row,
        &json!({
            "lines": lines.len(),
            "all_parse": lines.iter().all(parse) && all.len() == lines.len(),
            "ends_with_lf": written.ends_with('\n'),
        }),
    )
}

const CHILD_DIRECTORY: &str = "COFFERDAM_ROW_DIRECTORY";
const CHILD_APPENDS: &str = "COFFERDAM_ROW_APPENDS";

/// Work of a child process of `appends_of_processes`, which runs only this test. Without its
/// variables it does nothing.
#[test]
fn append_in_a_child_process() {
    let (Some(directory), Ok(each)) =
        (std::env::var_os(CHILD_DIRECTORY), std::env::var(CHILD_APPENDS))
    else {
        return;
    };
    let files = histories(Path::new(&directory)).unwrap();
    for number in 0..each.parse::<usize>().unwrap() {
        let text = format!("{} {number} {}", std::process::id(), "x".repeat(300));
        wait(files.append(SESSION, &[Arc::new(Message::user(text))])).unwrap();
    }
}

/// Runs several processes, each with a store of its own.
fn appends_of_processes(row: &Row) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (processes, each) = (number(row, "processes")?, number(row, "each")?);
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let start = |_| {
        std::process::Command::new(&program)
            .args(["--exact", "conformance::sessions::append_in_a_child_process"])
            .env(CHILD_DIRECTORY, directory.path())
            .env(CHILD_APPENDS, each.to_string())
            .stdout(std::process::Stdio::null())
            .spawn()
    };
    let children: Vec<_> =
        (0..processes).map(start).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    for mut child in children {
        let ended = child.wait().map_err(|error| error.to_string())?;
        if !ended.success() {
            return Err(format!("a process that appends ended with {ended}"));
        }
    }
    let written =
        fs::read_to_string(directory.path().join(FILE)).map_err(|error| error.to_string())?;
    let lines: Vec<_> = written.lines().collect();
    let parse = |line: &&str| serde_json::from_str::<Message>(line).is_ok();
    let all: BTreeSet<_> = lines.iter().collect();
    let all_parse = lines.iter().all(parse) && all.len() == lines.len();
    expect_part(row, &json!({"lines": lines.len(), "all_parse": all_parse}))
}

fn default(row: &Row) -> Result<(), String> {
    let (flags, options) = (HistoryFlags::default(), FileHistoryOptions::default());
    let got = match row.text("setting")? {
        "sync" => options.sync,
        "load_messages" => flags.load_messages,
        "store_inputs" => flags.store_inputs,
        "store_outputs" => flags.store_outputs,
        "store_context_messages" => flags.store_context_messages,
        other => return Err(format!("unknown setting `{other}`")),
    };
    if same(&row.expect, &got.into()) {
        Ok(())
    } else {
        Err(format!("expected {}, got {got}", row.expect))
    }
}
