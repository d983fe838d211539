//! Compares what a host for another platform answers with what the native host answers.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};

use crate::guests::plugins;
use crate::packages::text;
use crate::run::{section, target_folder};

/// Plugins that the commands load.
const PLUGINS: [&str; 2] = ["text.wasm", "crash.wasm"];

/// Commands whose text and exit code are the same on every platform.
const COMMANDS: &[&[&str]] = &[
    &["inspect", "text.wasm"],
    &["call", "word_count", "text=to be or not to be", "--plugin", "text.wasm"],
    &["call", "file_access_save_file", "file_name=a/b.txt", "content=b", "--files", "files"],
    &["call", "file_access_read_file", "file_name=a/b.txt", "--files", "files"],
    &["call", "file_access_list_files", "recursive:=true", "--files", "files"],
    &["call", "file_access_read_file", "file_name=../c", "--files", "files"],
    &["call", "file_access_save_file", "file_name=con", "content=", "--files", "files"],
    &["call", "file_access_save_file", "file_name=x.", "content=", "--files", "files"],
    &["call", "file_access_save_file", "file_name=C:/x", "content=", "--files", "files"],
    &["call", "file_access_delete_file", "file_name=a/b.txt", "--yes", "--files", "files"],
];

/// Tools of `crash.wasm`: each ends its call in another way.
const CRASHES: &str = "ok fail fail_transiently invalid_json print read_stdin panic abort \
    unreachable divide_by_zero out_of_bounds stack_overflow spin sleep allocate grow_handled exit";

/// Host that was built for a platform, with the emulator that runs it.
pub(super) struct HostProgram {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

/// End of a command: its exit code and its standard output.
type End = (Option<i32>, String);

impl HostProgram {
    /// Returns a host by the path of its program, after the emulator and its arguments.
    pub(super) fn new(arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Self { arguments, environment: Vec::new() }
    }

    /// Sets environment variables of the emulator.
    pub(super) fn with(mut self, environment: &[(&str, &str)]) -> Self {
        let owned = environment.iter().map(|&(name, value)| (name.to_owned(), value.to_owned()));
        self.environment.extend(owned);
        self
    }

    /// Runs a command of the host in `folder`, with `input` as its standard input.
    pub(super) fn run(
        &self,
        arguments: &[&str],
        input: &str,
        folder: &Path,
    ) -> anyhow::Result<Output> {
        let (program, first) = self.arguments.split_first().context("the list has a program")?;
        let mut child = Command::new(program)
            .args(first)
            .args(arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {program}"))?;
        // Dropped after it is written, so that the command sees the end of its input.
        child.stdin.take().context("the input is a pipe")?.write_all(input.as_bytes())?;
        Ok(child.wait_with_output()?)
    }

    fn end(&self, arguments: &[&str], input: &str, folder: &Path) -> anyhow::Result<End> {
        let output = self.run(arguments, input, folder)?;
        Ok((output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// Runs all commands in a folder of their own.
    fn ends(&self) -> anyhow::Result<Vec<(String, End)>> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(folder.path().join("files"))?;
        for plugin in PLUGINS {
            std::fs::copy(plugins()?.join(plugin), folder.path().join(plugin))?;
        }
        let end = |arguments: &[&str], input: &str| {
            // The cache is on: it depends on access lists and on processes of the platform.
            let arguments = [arguments, &["--cache-dir", "cache"]].concat();
            self.end(&arguments, input, folder.path()).map(|end| (arguments.join(" "), end))
        };
        let mut ends = Vec::new();
        for arguments in COMMANDS {
            ends.push(end(arguments, "")?);
        }
        for tool in CRASHES.split_whitespace() {
            let timeout = if matches!(tool, "spin" | "sleep") { "1s" } else { "30s" };
            ends.push(end(&["call", tool, "--plugin", "crash.wasm", "--timeout", timeout], "")?);
        }
        let (serve, (code, answer)) = end(&["serve", "--plugin", "text.wasm"], &request()?)?;
        let answer: Value = serde_json::from_str(&answer)
            .with_context(|| format!("`serve` ended with {code:?} and answered `{answer}`"))?;
        // The rest of the answer has times and digests.
        let content = answer.pointer("/result/content").unwrap_or(&Value::Null);
        ends.push((serve, (code, content.to_string())));
        Ok(ends)
    }
}

/// Returns a call of a tool over MCP, in one line.
fn request() -> anyhow::Result<String> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "platforms", "version": "1" },
    });
    let arguments = json!({ "text": "to be or not to be" });
    let params = json!({ "name": "word_count", "arguments": arguments, "_meta": meta });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    Ok(format!("{}\n", serde_json::to_string(&request)?))
}

/// Compares all commands with those of the native host in the folder of debug builds.
pub(super) fn compare(there: &HostProgram) -> anyhow::Result<()> {
    check_version(there)?;
    let program = target_folder().join("debug/cofferdam");
    let (expected, found) = (HostProgram::new(&[text(&program)?]).ends()?, there.ends()?);
    let mut differences = Vec::new();
    for ((name, expected), (_, found)) in expected.iter().zip(&found) {
        if expected != found {
            differences.push(format!("`{name}`: expected {expected:?}, found {found:?}"));
        }
    }
    if !differences.is_empty() {
        bail!("{} commands differ:\n{}", differences.len(), differences.join("\n"));
    }
    section(&format!("{} commands end as on this machine", found.len()));
    Ok(())
}

/// Checks that the program starts.
pub(super) fn check_version(there: &HostProgram) -> anyhow::Result<()> {
    let (code, version) = there.end(&["--version"], "", Path::new("."))?;
    let is_version = code == Some(0) && version.starts_with("cofferdam ");
    ensure!(is_version, "`--version` ended with {code:?} and `{version}`");
    section(version.trim());
    Ok(())
}
