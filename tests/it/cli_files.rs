//! The binary and files: the file-access tools over a store, dry runs and diffs.

use std::path::Path;
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use crate::script;

/// Runs the binary with `arguments` in `folder`: exit code, standard output, standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null()).current_dir(folder);
    let output = command.args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("work")).unwrap();
    std::fs::write(folder.path().join("work/notes.md"), "one\ntwo\n").unwrap();
    folder
}

#[test]
fn the_file_access_tools_work_on_a_directory() {
    let folder = folder();
    let call = |tool: &str, arguments: Value| {
        run(folder.path(), &["call", tool, &arguments.to_string(), "--files", "work"])
    };
    let (code, stdout, stderr) = call("file_access_read_file", json!({"file_name": "notes.md"}));
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "one\ntwo\n\n", ""));
    let save = json!({"file_name": "d/new.txt", "content": "x"});
    assert_eq!(call("file_access_save_file", save).1, "File 'd/new.txt' saved.\n");
    assert_eq!(std::fs::read_to_string(folder.path().join("work/d/new.txt")).unwrap(), "x");
    let escape = json!({"file_name": "../out.txt", "content": "x"});
    assert!(call("file_access_save_file", escape).1.contains("must not contain '.' or '..' segments"));
    assert!(!folder.path().join("out.txt").exists());
}

#[test]
fn a_store_that_is_only_read_has_no_tools_that_write() {
    let folder = folder();
    let (code, stdout, _) = run(folder.path(), &["list", "--files", "work:ro", "--json"]);
    let tools: Value = serde_json::from_str(&stdout).unwrap();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!((code, names.len()), (0, 4), "{names:?}");
    let save = json!({"file_name": "a", "content": "x"}).to_string();
    let (code, _, stderr) =
        run(folder.path(), &["call", "file_access_save_file", &save, "--files", "work:ro"]);
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn a_dry_run_shows_the_changes_of_a_plugin_and_makes_none() {
    let folder = folder();
    let script =
        json!({"script": "write /data/notes.md new; write /data/b x; create_dir /data/e"}).to_string();
    let files = guest("files").display().to_string();
    let arguments = ["call", "files", &script, "--plugin", &files, "--mount", "data=work"];
    let (code, stdout, stderr) = run(folder.path(), &[&arguments[..], &["--dry-run"]].concat());
    assert_eq!((code, stdout.as_str()), (0, "done; done; done\n"));
    let expected = "\
dry run: these changes were not made
  created data/b (1 B)
  created data/e/
  changed data/notes.md (3 B)
--- /dev/null
+++ data/b
@@ -0,0 +1 @@
+x
\\ No newline at end of file
--- data/notes.md
+++ data/notes.md
@@ -1,2 +1 @@
-one
-two
+new
\\ No newline at end of file
";
    assert_eq!(stderr, expected);
    assert_eq!(std::fs::read_to_string(folder.path().join("work/notes.md")).unwrap(), "one\ntwo\n");
    assert!(!folder.path().join("work/b").exists());

    let (_, stdout, _) = run(folder.path(), &[&arguments[..], &["--diff", "--json"]].concat());
    let record = &serde_json::from_str::<Value>(&stdout).unwrap()["record"];
    assert_eq!(record["files"].as_array().unwrap().len(), 3);
    assert!(record["files"][2]["diff"].as_str().unwrap().contains("-two\n+new"), "{record}");
    assert_eq!(std::fs::read_to_string(folder.path().join("work/notes.md")).unwrap(), "new");
}

#[test]
fn a_model_cannot_be_given_the_files_that_decide_about_grants() {
    let folder = folder();
    std::fs::write(folder.path().join("work/cofferdam.toml"), "").unwrap();
    let arguments = ["list", "--config", "work/cofferdam.toml", "--files"];
    let (code, _, stderr) = run(folder.path(), &[&arguments[..], &["work"]].concat());
    assert_eq!(code, 2);
    assert!(stderr.contains("decides what a plugin may do"), "{stderr}");
    assert_eq!(run(folder.path(), &[&arguments[..], &["work:ro"]].concat()).0, 0);
}

#[test]
fn what_names_no_store_is_refused_with_the_form() {
    let folder = folder();
    for bad in ["", "x=", "no such/directory", "UPPER CASE=work"] {
        let (code, _, stderr) = run(folder.path(), &["list", "--files", bad]);
        assert_eq!(code, 2, "{bad}: {stderr}");
    }
    let (_, stdout, _) = run(folder.path(), &["list", "--files", "mine=memory"]);
    assert!(stdout.starts_with("files in mine\n"), "{stdout}");
}

#[test]
fn a_configuration_has_stores_of_several_kinds() {
    let folder = folder();
    let files = guest("files").display().to_string();
    let plugin = format!("[plugins.files]\ncomponent = {files:?}\ngrants.files.s = \"read-write\"\n");
    let run = |store: &str, arguments: &[&str]| {
        std::fs::write(folder.path().join("cofferdam.toml"), format!("[stores.s]\n{store}\n{plugin}"))
            .unwrap();
        run(folder.path(), &[arguments, &["--config", "cofferdam.toml"]].concat())
    };
    let script = json!({"script": "write /s/a 1234; write /s/b 123456789; read /s/a; list /s"}).to_string();
    let call = ["call", "files", script.as_str()];
    let (code, stdout, _) = run("memory = true\nquota.bytes-max = 10", &call);
    assert_eq!((code, stdout.as_str()), (0, "done; error: os 29; 1234; a b\n"));
    let (code, stdout, _) = run("directory = \"work\"\nquota.entries-max = 2", &call);
    assert_eq!((code, stdout.as_str()), (0, "done; error: QuotaExceeded; 1234; a notes.md\n"));
    // A bucket is not asked for anything before it is used.
    assert_eq!(run("url = \"s3://bucket/prefix\"", &["list"]).0, 0);
    for (bad, place, reason) in [
        ("region = \"x\"", ":1:1", "needs one of"),
        ("directory = \"work\"\nmemory = true", ":1:1", "needs one of"),
        ("url = \"ftp://x\"", ":2:7", "is not a bucket"),
        (
            "url = \"s3://b\"\nsecret-key = \"nope\"\naccess-key-id = \"x\"",
            ":3:14",
            "there is no secret `nope`",
        ),
        ("directory = \"nope\"", ":2:13", "cannot be mounted"),
    ] {
        let (code, _, stderr) = run(bad, &call);
        assert_eq!(code, 2, "{bad}: {stderr}");
        assert!(stderr.contains(place) && stderr.contains(reason), "{bad}: {stderr}");
    }
}

#[test]
fn plugins_of_one_configuration_share_its_stores() {
    let folder = folder();
    let component =
        |name: &str| format!("[plugins.{name}]\ncomponent = {:?}\n", guest(name).display().to_string());
    let text = format!(
        "[stores.s]\ndirectory = \"work\"\n{}grants.files.s = \"read-only\"\ngrants.tools = [\"files\"]\n{}grants.files.s = \"read-write\"\n",
        component("stores"),
        component("files")
    );
    std::fs::write(folder.path().join("cofferdam.toml"), text).unwrap();
    let inner = json!({"script": "write /s/a inner"}).to_string();
    let arguments = script::arguments(&[&["call", "files", &inner], &["read", "s", "a"]]);
    let call = ["call", "stores", arguments.as_str(), "--config", "cofferdam.toml", "--json"];
    let (code, stdout, stderr) = run(folder.path(), &[&call[..], &["--dry-run"]].concat());
    assert_eq!(code, 0, "{stderr}");
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(script::answers(answer["result"].as_str().unwrap()), ["done", "inner"]);
    assert_eq!(answer["record"]["files"][0]["path"], "a");
    assert!(!folder.path().join("work/a").exists());
    assert_eq!(run(folder.path(), &call).0, 0);
    assert_eq!(std::fs::read_to_string(folder.path().join("work/a")).unwrap(), "inner");
}
