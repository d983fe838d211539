//! The sample tools as a model uses them.

use std::sync::Arc;

use cofferdam_engine::Mount;
use cofferdam_files::{DirectoryOptions, DirectoryStore};
use cofferdam_tests::Host;
use cofferdam_tool::{FileAccess, MountName, ToolName};
use serde_json::{Value, json};

/// Calls a tool of a plugin with a folder mounted read-only as `/data`.
async fn call(plugin: &str, tool: &str, arguments: Value, folder: &std::path::Path) -> Value {
    let options = DirectoryOptions { is_read_only: true, ..DirectoryOptions::default() };
    let store = Arc::new(DirectoryStore::open_ambient(folder, options).unwrap());
    let mut host = Host::new();
    host.grants.mounts =
        vec![Mount::new(MountName::new("data").unwrap(), store, FileAccess::ReadOnly)];
    host.load(plugin).await;
    let completion = host.call(tool, &arguments.to_string()).await;
    assert_eq!(
        completion.record.outcome, "ok",
        "{tool}: {:?} {:?}",
        completion.outcome, completion.record
    );
    let text = completion.outcome.shown().unwrap().text();
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

async fn call_text(tool: &str, arguments: Value) -> Value {
    let nowhere = tempfile::tempdir().unwrap();
    call("text", tool, arguments, nowhere.path()).await
}

#[tokio::test]
async fn text_tools() {
    let counted =
        call_text("word_count", json!({"text": "to be or not to be", "min_length": 3})).await;
    assert!(counted.to_string().contains('1'), "{counted}");
    let lines =
        call_text("lines_matching", json!({"text": "one\ntwo\nthree", "pattern": "^t"})).await;
    assert!(lines.to_string().contains("three"), "{lines}");
    let diff = call_text("diff", json!({"before": "a\nb\n", "after": "a\nc\n"})).await;
    assert!(diff.as_str().unwrap().contains("-b"), "{diff}");
}

#[tokio::test]
async fn csv_tools_on_a_mounted_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("sales.csv"), "city,amount\nUlm,1.5\nBonn,2\nUlm,4\n")
        .unwrap();
    let schema = call("csv", "schema", json!({"file": "/data/sales.csv"}), folder.path()).await;
    assert!(schema.to_string().contains("amount"), "{schema}");
    let groups = call(
        "csv",
        "group_by",
        json!({"file": "/data/sales.csv", "by": ["city"], "aggregates": [{"function": "sum", "column": "amount"}]}),
        folder.path(),
    )
    .await;
    assert!(groups.to_string().contains("5.5"), "{groups}");
}

#[tokio::test]
async fn markdown_tools_on_text() {
    let folder = tempfile::tempdir().unwrap();
    let html = call("markdown", "to_html", json!({"text": "# Hi *there*"}), folder.path()).await;
    assert_eq!(html.as_str().unwrap().trim(), "<h1>Hi <em>there</em></h1>");
}

#[tokio::test]
async fn remarks_are_collected_with_a_tool_of_another_plugin() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("src")).unwrap();
    std::fs::write(folder.path().join("src/a.rs"), "fn a() {}\n// TODO: name it\n").unwrap();
    std::fs::write(folder.path().join("b.md"), "Nothing. FIXME later\n").unwrap();
    let options = DirectoryOptions { is_durable: false, ..DirectoryOptions::default() };
    let store = Arc::new(DirectoryStore::open_ambient(folder.path(), options).unwrap());
    let mut host = Host::new();
    host.load("text").await;
    let name = MountName::new("work").unwrap();
    host.grants.mounts = vec![Mount::new(name, store, FileAccess::ReadWrite)];
    host.grants.tools = [ToolName::new("word_count").unwrap()].into();
    host.load("remarks").await;
    let listed = host.call("collect_remarks", r#"{"store":"work","glob":"*.rs"}"#).await;
    let expected = json!([{"file": "src/a.rs", "line": 2, "text": "// TODO: name it"}]);
    assert_eq!(listed.outcome.shown().unwrap().text(), expected.to_string());
    let reported = host.call("report_remarks", r#"{"store":"work","file":"d/r.md"}"#).await;
    assert_eq!(reported.outcome.shown().unwrap().text(), "2 remarks, 11 words, are in d/r.md");
    assert_eq!(reported.record.inner.len(), 1);
    let report = std::fs::read_to_string(folder.path().join("d/r.md")).unwrap();
    assert_eq!(report, "- b.md:1 Nothing. FIXME later\n- src/a.rs:2 // TODO: name it\n");
    let unknown = host.call("collect_remarks", r#"{"store":"other"}"#).await;
    assert!(unknown.outcome.shown().unwrap().text().contains("there is work"));
}
