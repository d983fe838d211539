//! `cofferdam dev`: a server that follows the sources of a project.

use std::fs;
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, root};
use serde_json::json;

use super::new::Project;
use super::path;
use crate::wire::{Pipe, call};

const SOURCE: &str = "src/main.js";

/// A tool that waits, and one that says which build it is.
fn source(build: &str) -> String {
    format!(
        "import {{ plugin, tool }} from \"cofferdam\";\n\
         import * as call from \"cofferdam/call\";\n\
         const parameters = {{ type: \"object\", properties: {{}} }};\n\
         const version = tool({{ name: \"version\", description: \"Says which build it is.\", parameters, run: () => \"{build}\" }});\n\
         const wait = tool({{ name: \"wait\", description: \"Waits a while and says which build it is.\", parameters, run() {{\n\
           const end = Date.now() + 1500;\n\
           call.progress(0);\n\
           while (Date.now() < end);\n\
           return \"{build}\";\n\
         }} }});\n\
         export default plugin(version, wait);\n"
    )
}

#[test]
fn a_server_follows_the_sources_and_calls_in_flight_end_on_what_they_began_with() {
    let Some(project) = Project::new("javascript") else { return };
    let main = project.directory().join(SOURCE);
    fs::write(&main, source("one")).unwrap();
    let mut command = Command::new(binary());
    command
        .arg("dev")
        .current_dir(project.directory())
        .env("COFFERDAM_CACHE_DIR", root().join("target/test-cache"))
        .env("PATH", path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut pipe = Pipe::of(&mut command);
    let text =
        |answer: &serde_json::Value| answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text(&pipe.ask(&call("first", "version", &json!({})))), "one");

    pipe.send(call("slow", "wait", &json!({})).to_string().as_bytes());
    fs::write(&main, source("two")).unwrap();
    pipe.has_said("reloaded");
    assert_eq!(text(&pipe.ask(&call("second", "version", &json!({})))), "two");

    fs::write(&main, "this is not JavaScript").unwrap();
    pipe.has_said("not built, what was there before stays");
    assert_eq!(text(&pipe.ask(&call("third", "version", &json!({})))), "two");
}
