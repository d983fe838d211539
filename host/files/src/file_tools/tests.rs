//! Tests of the tools beyond the conformance rows.

use std::sync::Arc;

use cofferdam_tool::{CallContext, FileAccess, Outcome, Toolset};
use serde_json::{Value, json};

use super::*;
use crate::{
    BucketStore, DirectoryOptions, DirectoryStore, MemoryStore, Quota, ReadOnly, StorePath,
    WriteMode,
};

fn toolset(store: Arc<dyn FileStore>, options: FileAccessOptions) -> Toolset {
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(FileAccessTools::new("workspace", store, options).unwrap())).unwrap();
    toolset
}

async fn call(toolset: &Toolset, tool: &str, arguments: Value) -> Completion {
    let arguments = arguments.to_string();
    toolset.call(tool, Some(arguments.as_bytes()), &CallContext::new("c")).await.unwrap()
}

async fn text(toolset: &Toolset, tool: &str, arguments: Value) -> String {
    call(toolset, tool, arguments).await.outcome.shown().unwrap().text()
}

fn memory() -> Arc<dyn FileStore> {
    Arc::new(MemoryStore::new(Quota::default()))
}

async fn put(store: &dyn FileStore, path: &str, content: impl Into<Vec<u8>>) {
    store.write(&StorePath::file(path).unwrap(), content.into(), WriteMode::Replace).await.unwrap();
}

#[tokio::test]
async fn every_tool_has_a_declaration_that_is_taken() {
    let tools = FileAccessTools::new("w", memory(), FileAccessOptions::default()).unwrap();
    assert_eq!(tools.definitions().len(), 9);
    assert!(tools.definitions().iter().all(|tool| tool.annotations.read_only.is_some()));
}

#[tokio::test]
async fn a_read_only_store_has_the_tools_of_the_read_only_mode() {
    let tools =
        FileAccessTools::new("w", Arc::new(ReadOnly::new(memory())), FileAccessOptions::default())
            .unwrap();
    let names: Vec<_> = tools.definitions().iter().map(|tool| tool.name.to_string()).collect();
    let read_only = ["read_file", "list_files", "search_files", "read_lines"]
        .map(|name| format!("file_access_{name}"));
    assert_eq!(names, read_only);
}

/// Number of concurrent edits of one file.
const EDITS: usize = 64;
const ROUNDS: usize = 10;

/// Makes [`EDITS`] concurrent edits of one file, [`ROUNDS`] times, through two toolsets. Every
/// second edit is called with a request for diffs, so that it is made in a transaction. `disturb`
/// makes the changes of a plugin or another process at the same time.
async fn make_all_edits(stores: [Arc<dyn FileStore>; 2], disturb: impl AsyncFn(usize)) {
    let toolsets =
        stores.clone().map(|store| Arc::new(toolset(store, FileAccessOptions::default())));
    for round in 0..ROUNDS {
        put(&*stores[0], "a", "0\n".repeat(EDITS)).await;
        let edits = (1..=EDITS).map(|line| {
            let toolset = Arc::clone(&toolsets[line % 2]);
            tokio::spawn(async move {
                let edit =
                    json!({"line_number": line, "new_line": format!("{line}\n"), "expected_line": "0"});
                let arguments = json!({"file_name": "a", "edits": [edit]}).to_string();
                let mut context = CallContext::new("c");
                context.file_effects.shows_diffs = line % 4 < 2;
                let called = toolset.call("file_access_replace_lines", Some(arguments.as_bytes()), &context);
                called.await.unwrap().outcome.shown().unwrap().text()
            })
        });
        let edits: Vec<_> = edits.collect();
        disturb(round).await;
        for edit in edits {
            assert_eq!(edit.await.unwrap(), "Replaced 1 line(s) in 'a'.");
        }
        let content = stores[0].read(&StorePath::file("a").unwrap(), 9999).await.unwrap();
        let expected: String = (1..=EDITS).map(|line| format!("{line}\n")).collect();
        assert_eq!(String::from_utf8(content).unwrap().replace('x', ""), expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_edits_at_a_time_all_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let options = DirectoryOptions { is_durable: false, ..DirectoryOptions::default() };
    // For edits, the same directory opened twice is one store.
    let directories = [(); 2].map(|()| {
        Arc::new(DirectoryStore::open_ambient(folder.path(), options).unwrap()) as Arc<_>
    });
    make_all_edits(directories, async |_| {}).await;
    let bucket: Arc<dyn FileStore> = Arc::new(BucketStore::in_memory(Quota::default()));
    make_all_edits([Arc::clone(&bucket), bucket], async |_| {}).await;
    let memory = memory();
    make_all_edits([Arc::clone(&memory), memory], async |_| {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn edits_are_made_in_what_a_plugin_commits_meanwhile() {
    let store = memory();
    let plugin = Arc::clone(&store);
    make_all_edits([Arc::clone(&store), store], async |_| {
        for _ in 0..20 {
            let call = Transaction::new(Budget::new(1 << 20));
            let view = call.view("plugin", &plugin, FileAccess::ReadWrite);
            let path = StorePath::file("a").unwrap();
            let content = view.read(&path, 9999).await.unwrap();
            view.write(&path, [&content, &b"x"[..]].concat(), WriteMode::Replace).await.unwrap();
            // A plugin may fail because of an edit, but an edit must not fail because of the
            // plugin.
            let _ = call.finish(FileEffects::default()).await;
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_file_that_is_too_long_to_read_is_read_in_lines() {
    let quota = Quota { file_bytes_max: u64::MAX, bytes_max: u64::MAX, ..Quota::default() };
    let store: Arc<dyn FileStore> = Arc::new(MemoryStore::new(quota));
    put(&*store, "long", "x".repeat(999).into_bytes().repeat(1)).await;
    put(&*store, "large", "é is line\n".repeat(1_000_000)).await;
    let toolset =
        toolset(store, FileAccessOptions { read_bytes_max: 500, ..FileAccessOptions::default() });
    assert_eq!(
        text(&toolset, "file_access_read_file", json!({"file_name": "long"})).await,
        "Could not read file 'long': it is 999 bytes long; one read returns at most 500 bytes. \
         Use file_access_read_lines."
    );
    let lines = json!({"file_name": "large", "start_line": 999_999, "end_line": 2_000_000});
    assert_eq!(
        text(&toolset, "file_access_read_lines", lines).await,
        "999999\té is line\n1000000\té is line\n1000001\t"
    );
    let all =
        text(&toolset, "file_access_read_lines", json!({"file_name": "large", "start_line": 1}))
            .await;
    assert!(all.contains("longer than 500 bytes together"), "{all}");
}

#[tokio::test]
async fn an_edit_that_would_blow_a_file_up_is_refused_before_it_is_made() {
    let quota = Quota { file_bytes_max: u64::MAX, bytes_max: u64::MAX, ..Quota::default() };
    let store: Arc<dyn FileStore> = Arc::new(MemoryStore::new(quota));
    put(&*store, "a", "x".repeat(8_000_000)).await;
    let toolset = toolset(store, FileAccessOptions::default());
    let blow_up = json!({"file_name": "a", "old_string": "x", "new_string": "y".repeat(100_000), "replace_all": true});
    assert_eq!(
        text(&toolset, "file_access_replace", blow_up).await,
        "Could not replace in file 'a': the file would be larger than the limit of 67108864 bytes."
    );
}

#[tokio::test]
async fn line_numbers_of_any_size_are_answered() {
    let store = memory();
    put(&*store, "a", "one").await;
    let toolset = toolset(store, FileAccessOptions::default());
    for (line, reason) in [
        (json!(u64::MAX), "start_line 18446744073709551615 is out of range (file has 1 lines)."),
        (json!(i64::MIN), "start_line must be a positive integer, got -9223372036854775808."),
    ] {
        let arguments = json!({"file_name": "a", "start_line": line});
        let answer = text(&toolset, "file_access_read_lines", arguments).await;
        assert_eq!(answer, format!("Could not read lines from file 'a': {reason}"));
        let edits = json!({"file_name": "a", "edits": [{"line_number": line, "new_line": ""}]});
        let answer = text(&toolset, "file_access_replace_lines", edits).await;
        assert_eq!(
            answer,
            format!(
                "Could not edit file 'a': line_number {line} is out of range (file has 1 lines)."
            )
        );
    }
}

#[tokio::test]
async fn the_record_says_what_was_changed() {
    let toolset = toolset(memory(), FileAccessOptions::default());
    let save = json!({"file_name": "d/a", "content": "12345", "overwrite": true});
    let steps = [
        ("file_access_save_file", save.clone(), "created d/a 5"),
        ("file_access_save_file", save, "changed d/a 5"),
        ("file_access_create_directory", json!({"directory": "e"}), "created e/ 0"),
        (
            "file_access_replace",
            json!({"file_name": "d/a", "old_string": "1", "new_string": ""}),
            "changed d/a 4",
        ),
        ("file_access_delete_file", json!({"file_name": "d/a"}), "deleted d/a 0"),
    ];
    for (tool, arguments, expected) in steps {
        let completion = call(&toolset, tool, arguments).await;
        let files: Vec<_> = completion
            .record
            .files
            .iter()
            .map(|file| {
                format!("{} {} {}", json!(file.what).as_str().unwrap(), file.path, file.bytes)
            })
            .collect();
        assert_eq!(files, [expected]);
        assert!(completion.record.files.iter().all(|file| file.mount == "workspace"));
    }
}

#[tokio::test]
async fn a_listing_is_capped_after_the_glob() {
    let store = memory();
    for number in 0..20 {
        put(&*store, &format!("{number}.{}", if number % 2 == 0 { "a" } else { "b" }), "").await;
    }
    let options = FileAccessOptions { entries_max: 10, ..FileAccessOptions::default() };
    let toolset = toolset(store, options);
    let listed = async |arguments| {
        let Outcome::Ok(Output::Value(Value::Array(entries))) =
            call(&toolset, "file_access_list_files", arguments).await.outcome
        else {
            panic!("no array")
        };
        entries
    };
    assert_eq!(listed(json!({"glob_pattern": "*.a"})).await.len(), 10);
    let all = listed(json!({})).await;
    assert_eq!(
        (all.len(), all.last()),
        (11, Some(&json!({"truncated": true, "reason": "entries"})))
    );
}

#[tokio::test]
async fn a_dry_run_shows_what_would_change_and_changes_nothing() {
    let store = memory();
    put(&*store, "a", "one\ntwo\n").await;
    let toolset = toolset(Arc::clone(&store), FileAccessOptions::default());
    let arguments = json!({"file_name": "a", "old_string": "two", "new_string": "2"}).to_string();
    for is_dry_run in [true, false] {
        let file_effects = FileEffects { is_dry_run, shows_diffs: true };
        let context = CallContext { file_effects, ..CallContext::new("c") };
        let called = toolset
            .call("file_access_replace", Some(arguments.as_bytes()), &context)
            .await
            .unwrap();
        assert_eq!(called.outcome.shown().unwrap().text(), "Replaced 1 occurrence(s) in 'a'.");
        let diff = called.record.files[0].diff.as_deref().unwrap();
        assert_eq!(diff, "--- workspace/a\n+++ workspace/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
        let content = store.read(&StorePath::file("a").unwrap(), 99).await.unwrap();
        assert_eq!(content, if is_dry_run { &b"one\ntwo\n"[..] } else { b"one\n2\n" });
    }
}

#[tokio::test]
async fn rules_decide_about_approval_by_tool_and_path() {
    let rules = json!([
        {"tools": ["file_access_delete_file"], "paths": ["drafts"], "needs-approval": false},
        {"paths": ["secret/**"], "needs-approval": true},
    ]);
    let options = FileAccessOptions {
        approvals: serde_json::from_value(rules).unwrap(),
        ..FileAccessOptions::default()
    };
    let toolset = toolset(memory(), options);
    let needs = |tool: &str, arguments: Value| {
        toolset.needs_approval_for(
            &format!("file_access_{tool}"),
            Some(arguments.to_string().as_bytes()),
        )
    };
    assert!(!needs("delete_file", json!({"file_name": "drafts/a"})));
    assert!(
        needs("delete_file", json!({"file_name": "drafts"}))
            == needs("delete_file", json!({"file_name": "drafts/b"}))
    );
    assert!(needs("delete_file", json!({"file_name": "a"})));
    assert!(needs("save_file", json!({"file_name": "\\ secret/a", "content": ""})), "no path");
    assert!(needs("save_file", json!({"file_name": " SECRET\\\\a", "content": ""})));
    assert!(
        needs("save_file", json!({"file_name": "a", "content": 5, "extra": 1})),
        "it does not decode"
    );
    assert!(!needs("save_file", json!({"file_name": "a", "content": ""})));
    assert!(needs("search_files", json!({"regex_pattern": "x"})), "it may come to any path");
    assert!(
        serde_json::from_value::<ApprovalRule>(json!({"tools": ["nope"], "needs-approval": true}))
            .is_err()
    );
}

#[tokio::test]
async fn what_is_hidden_by_default_is_valid_and_hidden() {
    let options = FileAccessOptions::default();
    for path in [".git/config", "a/.env", ".env.local", "sub/.git"] {
        assert!(options.hidden.matches(path), "{path}");
    }
    assert!(!options.hidden.matches(".gitignore") && !options.hidden.matches("env"));
}
