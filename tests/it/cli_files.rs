//! The binary and files: file-access tools over a store, dry runs and diffs.

use std::path::Path;
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use crate::script;

/// Runs the binary in `folder`. Returns exit code, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(binary());
    command
        .env_clear()
        .env("COFFERDAM_CACHE_DIR", shared_cache())
        .stdin(Stdio::null())
        .current_dir(folder);
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
    assert!(
        call("file_access_save_file", escape).1.contains("must not contain '.' or '..' segments")
    );
    assert!(!folder.path().join("out.txt").exists());
}

#[test]
fn paths_that_a_configuration_hides_are_hidden_in_addition_to_the_default_ones() {
    let folder = folder();
    for name in [".env", "k.pem"] {
        std::fs::write(folder.path().join("work").join(name), "secret").unwrap();
    }
    for hidden in ["[\"*.pem\"]", "[]"] {
        let config = format!("[files.work]\ndirectory = \"work\"\nhidden = {hidden}\n");
        std::fs::write(folder.path().join("c.toml"), config).unwrap();
        for (name, is_hidden) in [(".env", true), ("k.pem", hidden != "[]")] {
            let arguments = json!({"file_name": name}).to_string();
            let call = ["call", "file_access_read_file", &arguments, "--config", "c.toml"];
            let (_, stdout, _) = run(folder.path(), &call);
            assert_eq!(stdout.contains("not found"), is_hidden, "{hidden} {name}: {stdout}");
        }
    }
}

#[test]
fn a_store_that_is_only_read_has_no_tools_that_write() {
    let folder = folder();
    let (code, stdout, _) = run(folder.path(), &["list", "--files", "work:ro", "--json"]);
    let tools: Value = serde_json::from_str(&stdout).unwrap();
    let names: Vec<_> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!((code, names.len()), (0, 4), "{names:?}");
    let save = json!({"file_name": "a", "content": "x"}).to_string();
    let (code, _, stderr) =
        run(folder.path(), &["call", "file_access_save_file", &save, "--files", "work:ro"]);
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn a_dry_run_shows_the_changes_of_a_plugin_and_makes_none() {
    let folder = folder();
    let script = json!({"script": "write /data/notes.md new; write /data/b x; create_dir /data/e"})
        .to_string();
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
    let plugin =
        format!("[plugins.files]\ncomponent = {files:?}\ngrants.files.s = \"read-write\"\n");
    let run = |store: &str, arguments: &[&str]| {
        std::fs::write(
            folder.path().join("cofferdam.toml"),
            format!("[stores.s]\n{store}\n{plugin}"),
        )
        .unwrap();
        run(folder.path(), &[arguments, &["--config", "cofferdam.toml"]].concat())
    };
    let script =
        json!({"script": "write /s/a 1234; write /s/b 123456789; read /s/a; list /s"}).to_string();
    let call = ["call", "files", script.as_str()];
    let (code, stdout, _) = run("memory = true\nquota.bytes-max = 10", &call);
    assert_eq!((code, stdout.as_str()), (0, "done; error: os 29; 1234; a b\n"));
    let (code, stdout, _) = run("directory = \"work\"\nquota.entries-max = 2", &call);
    assert_eq!((code, stdout.as_str()), (0, "done; error: QuotaExceeded; 1234; a notes.md\n"));
    // Loading the configuration sends no request to a bucket.
    assert_eq!(run("url = \"s3://bucket/prefix\"", &["list"]).0, 0);
    for (bad, position, reason) in [
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
        assert!(stderr.contains(position) && stderr.contains(reason), "{bad}: {stderr}");
    }
}

#[test]
fn plugins_of_one_configuration_share_its_stores() {
    let folder = folder();
    let component = |name: &str| {
        format!("[plugins.{name}]\ncomponent = {:?}\n", guest(name).display().to_string())
    };
    let text = format!(
        "[stores.s]\ndirectory = \"work\"\n{}grants.files.s = \"read-only\"\ngrants.tools = \
         [\"files\"]\n{}grants.files.s = \"read-write\"\n",
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

/// Runs a file-access tool over `--files work`.
fn tool(folder: &Path, tool: &str, arguments: &Value) -> String {
    // Pass the arguments in a file: a command line is limited in length.
    std::fs::write(folder.join("arguments.json"), arguments.to_string()).unwrap();
    let (_, stdout, stderr) = run(folder, &["call", tool, "@arguments.json", "--files", "work"]);
    assert!(!stdout.is_empty(), "{stderr}");
    stdout.trim_end_matches('\n').to_owned()
}

#[test]
fn what_was_in_a_directory_before_does_not_count() {
    let folder = folder();
    let work = folder.path().join("work");
    std::fs::File::create(work.join("large.bin")).unwrap().set_len(100 << 20).unwrap();
    let edit =
        json!({"file_name": "notes.md", "old_string": "two", "new_string": "two and a half"});
    assert_eq!(
        tool(folder.path(), "file_access_replace", &edit),
        "Replaced 1 occurrence(s) in 'notes.md'."
    );
    let save = json!({"file_name": "new.md", "content": "x"});
    assert_eq!(tool(folder.path(), "file_access_save_file", &save), "File 'new.md' saved.");
    // A configured quota counts all content by default.
    let limited = |quota: &str, content: &str| {
        let config = format!("[files.w]\ndirectory = \"work\"\n{quota}\n");
        std::fs::write(folder.path().join("cofferdam.toml"), config).unwrap();
        let save =
            json!({"file_name": "new.md", "content": content, "overwrite": true}).to_string();
        let config = ["--config", "cofferdam.toml"];
        let (_, stdout, _) =
            run(folder.path(), &[&["call", "file_access_save_file", &save], &config[..]].concat());
        stdout
    };
    // The store must not contain the configuration.
    let refused = limited("quota = { bytes-max = 10, counts = \"growth\" }", "123456789012");
    assert_eq!(
        refused,
        "Could not save file 'new.md': the limit of 10 bytes that may be added to this store \
         would be exceeded.\n"
    );
    assert_eq!(
        limited("quota = { bytes-max = 11, counts = \"growth\" }", "123456789012"),
        "File 'new.md' saved.\n"
    );
    let total = limited("quota.bytes-max = 10", "1234567890123");
    assert!(total.contains("the store's limit of 10 bytes would be exceeded."), "{total}");
}

#[test]
fn several_stores_of_the_configuration_are_directories_with_rules() {
    let folder = folder();
    for (name, content) in [
        ("work/.git/config", "secret"),
        ("work/src/.env", "secret"),
        ("work/vendor/v.rs", "secret? no"),
        ("docs/a.md", "no secret"),
    ] {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let config = "\
[stores.documents]\ndirectory = \"docs\"\n
[files.docs]\nstore = \"documents\"\naccess = \"read-only\"\n
[files.code]\ndirectory = \"work\"\nread-only = [\"vendor\"]\n";
    std::fs::write(folder.path().join("cofferdam.toml"), config).unwrap();
    let call = |tool: &str, arguments: Value| {
        let arguments = arguments.to_string();
        let (code, stdout, stderr) =
            run(folder.path(), &["call", tool, &arguments, "--config", "cofferdam.toml"]);
        assert_eq!(code, 0, "{stdout}{stderr}");
        stdout.trim_end_matches('\n').to_owned()
    };
    let names = |text: String| -> Vec<String> {
        let entries: Vec<Value> = serde_json::from_str(&text).unwrap();
        entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(call("file_access_list_files", json!({}))), ["code", "docs"]);
    assert_eq!(
        names(call("file_access_list_files", json!({"recursive": true}))),
        [
            "code",
            "code/src",
            "code/vendor",
            "docs",
            "code/notes.md",
            "code/vendor/v.rs",
            "docs/a.md"
        ]
    );
    let found = call("file_access_search_files", json!({"regex_pattern": "secret"}));
    let found: Vec<Value> = serde_json::from_str(&found).unwrap();
    let files: Vec<_> = found.iter().map(|file| file["file_name"].as_str().unwrap()).collect();
    assert_eq!(files, ["code/vendor/v.rs", "docs/a.md"]);
    let read = |name: &str| call("file_access_read_file", json!({"file_name": name}));
    assert_eq!(read("docs/a.md"), "no secret");
    assert_eq!(read("code/src/.env"), "File 'code/src/.env' not found.");
    assert!(read("a.md").contains("Paths must start with one of 'code/', 'docs/'."));
    let save =
        |name: &str| call("file_access_save_file", json!({"file_name": name, "content": "x"}));
    assert_eq!(save("code/new.rs"), "File 'code/new.rs' saved.");
    assert!(save("code/.git/hook").ends_with("this path is not available."));
    assert!(save("code/vendor/new.rs").ends_with("this path is read-only."));
    assert!(save("docs/b.md").ends_with("the store is read-only."));
    assert!(
        !folder.path().join("work/.git/hook").exists() && !folder.path().join("docs/b.md").exists()
    );
    let edit = json!({"file_name": "code/vendor/v.rs", "old_string": "no", "new_string": "yes"});
    assert!(call("file_access_replace", edit).ends_with("this path is read-only."));
    assert_eq!(
        std::fs::read_to_string(folder.path().join("work/vendor/v.rs")).unwrap(),
        "secret? no"
    );
    // A store that contains the configuration must not be writable.
    for files in [
        "[files.all]\ndirectory = \".\"\n",
        "[stores.s]\ndirectory = \".\"\n[files.all]\nstore = \"s\"\n",
    ] {
        std::fs::write(folder.path().join("cofferdam.toml"), files).unwrap();
        let (code, _, stderr) = run(folder.path(), &["list", "--config", "cofferdam.toml"]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("decides what a plugin may do"), "{stderr}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_cannot_be_shown_are_counted_and_those_with_a_colon_work() {
    use std::os::unix::ffi::OsStrExt as _;

    let folder = folder();
    let work = folder.path().join("work");
    std::fs::create_dir(work.join("logs")).unwrap();
    for name in [&b"logs/2024-01-01T10:00:00.log"[..], b"aux.c", b"logs/trail.", b"bad\xff\x1b[31m"]
    {
        std::fs::write(work.join(std::ffi::OsStr::from_bytes(name)), "needle\n").unwrap();
    }
    let listed = tool(folder.path(), "file_access_list_files", &json!({"recursive": true}));
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[1]["name"], "logs/2024-01-01T10:00:00.log");
    let last = listed.last().unwrap();
    assert_eq!(last["not_shown"], 3, "{last}");
    assert_eq!(
        last["reason"],
        "3 entries are not shown: 'aux.c' ('aux.c' is a reserved device name), 'bad\\xff\\u{1b}[31m' (The name is not UTF-8), \
         'logs/trail.' (Path segments must not end with a dot or a space)."
    );
    let found =
        tool(folder.path(), "file_access_search_files", &json!({"regex_pattern": "needle"}));
    let found: Vec<Value> = serde_json::from_str(&found).unwrap();
    assert_eq!((found.len(), &found[1]["not_shown"]), (2, &json!(3)));
    let edit = json!({"file_name": "logs/2024-01-01T10:00:00.log", "old_string": "needle", "new_string": "hay"});
    assert!(tool(folder.path(), "file_access_replace", &edit).starts_with("Replaced 1"));
    assert_eq!(
        std::fs::read_to_string(work.join("logs/2024-01-01T10:00:00.log")).unwrap(),
        "hay\n"
    );
    let drive = json!({"file_name": "C:\\x", "content": ""});
    assert!(
        tool(folder.path(), "file_access_save_file", &drive).contains("Paths must be relative")
    );
}

#[test]
fn long_files_are_written_and_long_lines_read_in_parts() {
    let folder = folder();
    let part = |content: &str| {
        let arguments = json!({"file_name": "long", "content": content, "append": true});
        tool(folder.path(), "file_access_save_file", &arguments)
    };
    assert_eq!(
        part(&"é".repeat(300_000)),
        "Added 600000 bytes to 'long', which has 600000 bytes now."
    );
    assert_eq!(
        part(&"é".repeat(300_000)),
        "Added 600000 bytes to 'long', which has 1200000 bytes now."
    );
    let lines = tool(
        folder.path(),
        "file_access_read_lines",
        &json!({"file_name": "long", "start_line": 1}),
    );
    assert!(lines.contains("read it in parts with file_access_read_file and offset=0"), "{lines}");
    let mut read = String::new();
    let mut offset = json!(0);
    while !offset.is_null() {
        let arguments = json!({"file_name": "long", "offset": offset});
        let part = tool(folder.path(), "file_access_read_file", &arguments);
        let part: Value = serde_json::from_str(&part).unwrap();
        read.push_str(part["text"].as_str().unwrap());
        offset = part["next_offset"].clone();
    }
    assert_eq!(read, "é".repeat(600_000));
}

#[test]
fn unknown_arguments_are_reported_and_the_older_name_of_a_glob_works() {
    let folder = folder();
    std::fs::write(folder.path().join("work/a.txt"), "").unwrap();
    let listed = tool(folder.path(), "file_access_list_files", &json!({"file_pattern": "*.TXT"}));
    assert_eq!(listed, r#"[{"name":"a.txt","type":"file"}]"#);
    let call = ["call", "file_access_list_files", r#"{"glob_patern":"*.txt"}"#, "--files", "work"];
    let (code, _, stderr) = run(folder.path(), &call);
    assert_eq!(code, 2);
    assert!(stderr.contains("Did you mean 'glob_pattern'?"), "{stderr}");
}

#[test]
fn a_bucket_that_fails_is_explained_to_the_operator_alone() {
    use std::io::{Read as _, Write as _};

    for (status, shown, expected) in [
        ("403 Forbidden", "its service denied access", "access was denied; check the access key"),
        (
            "404 Not Found",
            "its bucket was not found",
            "there is no such bucket; check the bucket's name",
        ),
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let _ = stream.read(&mut [0; 8192]);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        for (tool, arguments) in [
            ("file_access_read_file", json!({"file_name": "a"})),
            ("file_access_list_files", json!({})),
            ("file_access_save_file", json!({"file_name": "a", "content": "x"})),
        ] {
            let mut command = Command::new(binary());
            command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
            command.env("AWS_ENDPOINT_URL", format!("http://{address}"));
            command.env("AWS_ACCESS_KEY_ID", "AKIAKEY").env("AWS_SECRET_ACCESS_KEY", "very-secret");
            let arguments = arguments.to_string();
            let output = command
                .args(["call", tool, &arguments, "--files", "s3://reports/x"])
                .output()
                .unwrap();
            let stdout = String::from_utf8(output.stdout).unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(4), "{tool}: {stdout}{stderr}");
            assert!(stdout.contains(shown) && !stdout.contains("127.0.0.1"), "{tool}: {stdout}");
            let named = format!("the bucket `s3://reports` at {address}: {expected}");
            assert!(stderr.contains(&named), "{tool}: {stderr}");
            assert!(!stderr.contains("secret\"") && !stderr.contains("very-secret"), "{stderr}");
        }
    }
}
