//! Tools of the tests' workers. Each start is a line of a file, which survives the worker.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::ask::{LogLevel, Question, QuestionKind};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::invoke::Progress;
use cofferdam_tool::{Annotations, Functions, Toolset};
use serde_json::json;

const MS: &str = r#"{"type":"object","properties":{"ms":{"type":"integer","default":0}}}"#;

pub(crate) struct Starts(PathBuf);

impl Starts {
    pub(crate) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    fn add(&self, id: &str) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.0).unwrap();
        file.write_all(format!("{id}\n").as_bytes()).unwrap();
    }

    /// Returns the number of times that a call was started.
    pub(crate) fn of(&self, id: &str) -> usize {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().filter(|line| *line == id).count()
    }
}

/// Notes that a call was dropped.
struct Canceled(PathBuf, String);

impl Drop for Canceled {
    fn drop(&mut self) {
        Starts::at(&self.0).add(&format!("canceled {}", self.1));
    }
}

/// Returns the tools: `write` and `read` note their start and wait; `echo` returns a string of
/// `bytes`; `fail` fails; `report` reports progress and waits until it is canceled; `once` ends only
/// if it was started before with this idempotency key; `ask` asks with a text of `bytes` more and
/// returns the answer of its client.
pub(crate) fn toolset(starts: &Path) -> Toolset {
    let mut functions = Functions::new("tests");
    for (name, read_only) in [("write", None), ("read", Some(true))] {
        let annotations = Annotations { read_only, ..Annotations::default() };
        let declaration =
            Declaration { annotations, ..Declaration::new(name, "Notes its start.", MS) };
        let path = starts.to_owned();
        let function = move |arguments: cofferdam_tool::Arguments,
                             context: cofferdam_tool::CallContext| {
            Starts::at(&path).add(&context.call_id);
            async move {
                let ms = arguments.value()["ms"].as_u64().unwrap_or_default();
                tokio::time::sleep(Duration::from_millis(ms)).await;
                Ok(json!({"pid": std::process::id()}))
            }
        };
        functions = functions.with(declaration, function).unwrap();
    }
    let schema = r#"{"type":"object","properties":{"text":{"type":"string","default":""},
                     "bytes":{"type":"integer","default":0}}}"#;
    let echo = Declaration::new("echo", "Repeats.", schema);
    let fail = Declaration::new("fail", "Fails.", "{}");
    let report = Declaration::new("report", "Reports.", "{}");
    let once = Declaration::new("once", "Ends at the second start.", "{}");
    let ask = Declaration::new("ask", "Asks.", schema);
    let (path, once_path, ask_path) = (starts.to_owned(), starts.to_owned(), starts.to_owned());
    let functions = functions
        .with(echo, async |arguments, _| {
            let bytes = arguments.value()["bytes"].as_u64().unwrap_or_default();
            let text = arguments.value()["text"].as_str().unwrap_or_default();
            Ok(json!(text.to_owned() + &"x".repeat(usize::try_from(bytes).unwrap_or_default())))
        })
        .unwrap()
        .with(fail, async |_, _| Err(FunctionEnd::failure("no such order")))
        .unwrap()
        .with(report, move |_, context| {
            let path = path.clone();
            async move {
                let progress = Progress { done: 1.0, total: Some(2.0), message: Some("a".into()) };
                context.progress.as_ref().unwrap().report(&context.call_id, progress);
                context.log.as_ref().unwrap().log(&context.call_id, LogLevel::Notice, "hello");
                // A canceled function is dropped.
                let _canceled = Canceled(path, context.call_id);
                std::future::pending().await
            }
        })
        .unwrap()
        .with(once, move |_, context| {
            let path = once_path.clone();
            async move {
                let starts = Starts::at(&path);
                let key = context.idempotency_key.unwrap_or_default();
                let is_first = starts.of(&key) == 0;
                starts.add(&key);
                if is_first {
                    std::future::pending::<()>().await;
                }
                Ok(json!("ended"))
            }
        })
        .unwrap()
        .with(ask, move |arguments, context| {
            let bytes = arguments.value()["bytes"].as_u64().unwrap_or_default();
            let text = arguments.value()["text"].as_str().unwrap_or_default().to_owned()
                + &"x".repeat(usize::try_from(bytes).unwrap_or_default());
            let path = ask_path.clone();
            async move {
                let _canceled = Canceled(path, context.call_id);
                let Some(asker) = &context.asker else { return Ok(json!("no client")) };
                let kinds = QuestionKind::ALL.map(|kind| asker.can_ask(kind));
                let answers = asker.ask(vec![Question::approval("q", text)]).await;
                let answers = answers.map_err(|error| FunctionEnd::failure(error.to_string()))?;
                Ok(json!([kinds, answers]))
            }
        })
        .unwrap();
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions)).unwrap();
    toolset
}
