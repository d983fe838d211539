//! `cofferdam dev`: a server that follows the sources of a project.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cofferdam_tests::{binary, root, write_program};
use serde_json::{Value, json};

use super::new::Project;
use super::path;
use crate::wire::{LEGACY, Pipe, call};

const SOURCE: &str = "src/main.js";

/// Returns the source of a tool that waits and of one that returns `build`.
fn source(build: &str) -> String {
    format!(
        "import {{ plugin, tool }} from \"cofferdam\";\n\
         import * as call from \"cofferdam/call\";\n\
         const parameters = {{ type: \"object\", properties: {{}} }};\n\
         const version = \
         tool({{ name: \"version\", description: \"Says which build it is.\", parameters, run: () => \"{build}\" }});\n\
         const wait = \
         tool({{ name: \"wait\", description: \"Waits a while and says which build it is.\", parameters, run() {{\n\
           const end = Date.now() + 1500;\n\
           call.progress(0);\n\
           while (Date.now() < end);\n\
           return \"{build}\";\n\
         }} }});\n\
         export default plugin(version, wait);\n"
    )
}

fn dev(project: &Project) -> Command {
    let mut command = Command::new(binary());
    command
        .arg("dev")
        .current_dir(project.directory())
        .env("COFFERDAM_CACHE_DIR", root().join("target/test-cache"))
        .env("PATH", path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
fn a_server_follows_the_sources_and_calls_in_flight_end_on_what_they_began_with() {
    let Some(project) = Project::new("javascript") else { return };
    let main = project.directory().join(SOURCE);
    fs::write(&main, source("one")).unwrap();
    let mut pipe = Pipe::of(&mut dev(&project));
    let text = |answer: &serde_json::Value| {
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(text(&pipe.ask(&call("first", "version", &json!({})))), "one");

    pipe.send(call("slow", "wait", &json!({})).to_string().as_bytes());
    fs::write(&main, source("two")).unwrap();
    pipe.has_said("reloaded");
    assert_eq!(text(&pipe.ask(&call("second", "version", &json!({})))), "two");

    fs::write(&main, "this is not JavaScript").unwrap();
    pipe.has_said("not built; the previous build stays in use");
    assert_eq!(text(&pipe.ask(&call("third", "version", &json!({})))), "two");

    // As `git checkout` does.
    let folder = main.parent().unwrap();
    fs::remove_dir_all(folder).unwrap();
    fs::create_dir(folder).unwrap();
    fs::write(&main, source("three")).unwrap();
    pipe.has_said("reloaded");
    fs::write(&main, source("four")).unwrap();
    pipe.has_said("reloaded");
    assert_eq!(text(&pipe.ask(&call("fourth", "version", &json!({})))), "four");
}

/// C compiler that waits until the file `go` is beside it.
struct SlowCompiler {
    folder: tempfile::TempDir,
}

impl SlowCompiler {
    /// Returns `None` if the compiler is not installed.
    fn new() -> Option<Self> {
        let Some(clang) = std::env::split_paths(&path())
            .map(|folder| folder.join(CLANG))
            .find(|file| file.is_file())
        else {
            assert!(std::env::var_os("CI").is_none(), "there is no {CLANG}");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let (program, go) = (folder.path().join(CLANG), folder.path().join("go"));
        let script = format!(
            "#!/bin/sh\nwhile [ ! -e '{}' ]; do sleep 0.02; done\nexec '{}' \"$@\"\n",
            go.display(),
            clang.display()
        );
        write_program(&program, &script);
        Some(Self { folder })
    }

    /// Returns `cofferdam dev` with this compiler.
    fn dev(&self, project: &Project) -> Command {
        let path = path();
        let folders =
            [self.folder.path().to_owned()].into_iter().chain(std::env::split_paths(&path));
        let mut command = dev(project);
        command
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("WASI_SDK_PATH", self.folder.path());
        command
    }

    fn go(&self) {
        fs::write(self.folder.path().join("go"), "").unwrap();
    }
}

const CLANG: &str = "clang-19";

fn the_source(project: &Project) -> PathBuf {
    let is_source = |path: &Path| path.extension().is_some_and(|ending| ending == "c");
    let mut files = fs::read_dir(project.directory()).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| is_source(path)).unwrap()
}

fn request(id: u32, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Begins a session of the revision in which a server announces its changes unasked.
fn begin(pipe: &mut Pipe) {
    let client = json!({ "name": "dev", "version": "1" });
    let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": client });
    assert_eq!(
        pipe.ask(&request(1, "initialize", params))["result"]["serverInfo"]["name"],
        "cofferdam"
    );
    pipe.send(
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string().as_bytes(),
    );
}

fn tools(pipe: &mut Pipe, id: u32) -> Vec<String> {
    let listed = pipe.ask(&request(id, "tools/list", json!({})));
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_client_is_served_while_the_first_build_runs_and_its_call_waits_for_the_build() {
    let (Some(project), Some(compiler)) = (Project::new("c"), SlowCompiler::new()) else { return };
    let mut pipe = Pipe::of(&mut compiler.dev(&project));
    begin(&mut pipe);
    assert!(tools(&mut pipe, 2).is_empty(), "the compiler has not begun");

    let greet =
        json!({ "name": "greet", "arguments": { "name": "Ada" }, "_meta": { "progressToken": 7 } });
    pipe.send(request(3, "tools/call", greet).to_string().as_bytes());
    let waits = pipe.next();
    assert_eq!(waits["method"], "notifications/progress", "{waits}");
    assert!(waits["params"]["message"].as_str().unwrap().contains("first-try"), "{waits}");
    compiler.go();
    let (before, answer) = pipe.until(&json!(3));
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ada!", "{answer}");
    // The answer may come first.
    let is_news = |message: &Value| message["method"] == "notifications/tools/list_changed";
    assert!(before.iter().any(is_news) || is_news(&pipe.next()), "{before:?}");
    assert_eq!(tools(&mut pipe, 4), ["greet"]);
}

#[test]
fn a_first_build_that_fails_is_made_again_when_the_source_is_mended() {
    let (Some(project), Some(compiler)) = (Project::new("c"), SlowCompiler::new()) else { return };
    let source = the_source(&project);
    let good = fs::read_to_string(&source).unwrap();
    fs::write(&source, format!("{good}\nthis is not C\n")).unwrap();
    let mut pipe = Pipe::of(&mut compiler.dev(&project));
    begin(&mut pipe);
    let greet = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    pipe.send(request(2, "tools/call", greet.clone()).to_string().as_bytes());
    compiler.go();
    let refused = pipe.until(&json!(2)).1;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("not available at the moment: first-try"), "{text}");
    pipe.has_said("this is not C");

    fs::write(&source, &good).unwrap();
    pipe.has_said("reloaded: first-try");
    assert_eq!(tools(&mut pipe, 3), ["greet"]);
    let greeted = pipe.ask(&request(4, "tools/call", greet));
    assert_eq!(greeted["result"]["content"][0]["text"], "Hello, Ada!", "{greeted}");
}

#[test]
fn a_component_that_is_removed_stays_in_use_and_is_built_again() {
    let Some(project) = Project::new("c") else { return };
    let greet = json!({ "name": "greet", "arguments": { "name": "Ada" } });
    // At the second start, the tools come from the cache.
    for _ in 0..2 {
        let mut pipe = Pipe::of(&mut dev(&project));
        begin(&mut pipe);
        while tools(&mut pipe, 2).is_empty() {
            std::thread::sleep(Duration::from_millis(20));
        }
        fs::remove_dir_all(project.component().parent().unwrap()).unwrap();
        let greeted = pipe.ask(&request(3, "tools/call", greet.clone()));
        assert_eq!(greeted["result"]["content"][0]["text"], "Hello, Ada!", "{greeted}");
        pipe.has_said("reloaded: first-try");
        assert!(project.component().is_file());
    }
}
