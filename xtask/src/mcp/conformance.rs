//! Runs the official conformance suite: its server scenarios against plugins that offer what they
//! need, and its client scenarios with an example program that uses our client.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

use super::server::Server;
use super::{Tools, put_plugin, text};
use crate::run::{cargo, root, section};

/// Sets of required scenarios, named by the MCP revision that they were frozen with.
const REQUIREMENTS: [&str; 2] = ["2025-11-25", "2026-07-28"];
/// Configuration to serve, and its copy, which changes while it is served.
const CONFIG: &str = "tests/mcp/cofferdam.toml";
const SERVED_CONFIG: &str = "target/mcp/cofferdam.toml";
/// Components of the plugin that changes. They offer different tools.
const CHANGING: [&str; 2] = ["text", "csv"];
/// Name of the signal that changes prompts. All other signals change tools.
const PROMPTS: &str = "prompts";
/// Addition to the configuration that changes the prompts.
const MORE_PROMPTS: &str = "\n[serve.prompts.one_more]\ntool = \"test_simple_prompt\"\n";
/// Prefix of the scenarios of an extension. The suite does not score extensions, but these
/// scenarios have to pass too.
const TASKS: &str = "tasks-";

pub(super) fn run(tools: &Tools) -> anyhow::Result<()> {
    section("MCP: the official conformance suite");
    // Builds everything together, like `build` in `main.rs`.
    cargo(&["build", "--workspace", "--bins", "--tests", "--example", "conformance_client"])?;
    let client = root().join("target/debug/examples/conformance_client");
    let mut is_passed = true;
    for requirements in REQUIREMENTS {
        let changing = Changing::start()?;
        // The suite checks for keywords that the portable dialect leaves out.
        let served = [
            "--config",
            SERVED_CONFIG,
            "--no-auth",
            "--cache-dir",
            "target/test-cache",
            "--schemas",
            "exact",
        ];
        let mut server = Server::start(&served.map(str::to_owned))?;
        is_passed &= suite(tools, requirements, "server", &["--url", &server.url])?;
        server.check_runs()?;
        drop(changing);
        is_passed &= suite(tools, requirements, "client", &["--command", text(&client)?])?;
    }
    if !is_passed {
        bail!("the conformance suite of MCP is not passed; see target/mcp/conformance");
    }
    Ok(())
}

/// Runs one set of scenarios and prints the result, with a line for each failure. Returns whether
/// the set has passed.
fn suite(tools: &Tools, requirements: &str, side: &str, more: &[&str]) -> anyhow::Result<bool> {
    let results = root().join("target/mcp/conformance").join(format!("{side}-{requirements}"));
    if results.exists() {
        fs::remove_dir_all(&results)?;
    }
    fs::create_dir_all(&results)?;
    let program = tools.module("@modelcontextprotocol/conformance/dist/index.js");
    let output = Command::new(&tools.node)
        .arg(&program)
        .args([side, "--requirements", requirements, "--output-dir", text(&results)?])
        .args(more)
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .context("cannot run the conformance suite")?;
    let said = String::from_utf8_lossy(&output.stdout);
    fs::write(results.join("output.txt"), said.as_bytes())?;
    let checks = Checks::read(&results)?;
    // The exit status of the suite only covers the scenarios that it scores.
    let fails_tasks = checks.failed.keys().any(|scenario| scenario.starts_with(TASKS));
    let is_passed = output.status.success() && !fails_tasks;
    let verdict = if is_passed { "passed" } else { "NOT PASSED" };
    report(&format!("{requirements} {side}: {verdict}; {}", checks.line()));
    if !is_passed {
        report(&String::from_utf8_lossy(&output.stderr));
    }
    for failure in checks.failures() {
        report(&format!("  {failure}"));
    }
    Ok(is_passed)
}

#[expect(clippy::print_stderr, reason = "results of a command line tool")]
fn report(line: &str) {
    eprintln!("{line}");
}

/// Results of the suite's checks.
#[derive(Default)]
struct Checks {
    scenarios: usize,
    passed: usize,
    /// Failures by scenario.
    failed: BTreeMap<String, Vec<String>>,
}

impl Checks {
    /// Reads the results, which are in one folder per scenario.
    fn read(results: &Path) -> anyhow::Result<Self> {
        let mut checks = Self::default();
        for folder in folders_with_checks(results)? {
            let text = fs::read_to_string(folder.join("checks.json"))?;
            let list: Vec<Value> =
                serde_json::from_str(&text).context("the suite writes lists of checks")?;
            checks.scenarios += 1;
            let scenario = scenario(results, &folder)?;
            for check in list {
                let of = |key: &str| {
                    check.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
                };
                match of("status").as_str() {
                    "SUCCESS" => checks.passed += 1,
                    "FAILURE" => {
                        let failure = format!("{}: {}", of("id"), of("errorMessage"));
                        checks.failed.entry(scenario.clone()).or_default().push(failure);
                    }
                    _ => {}
                }
            }
        }
        if checks.passed == 0 {
            bail!("the suite has checked nothing; see {}", results.join("output.txt").display());
        }
        Ok(checks)
    }

    fn line(&self) -> String {
        let failed: usize = self.failed.values().map(Vec::len).sum();
        let Self { scenarios, passed, .. } = self;
        format!("{scenarios} scenarios, {passed} checks passed, {failed} failed")
    }

    /// Returns a line for each failure, including those that are not scored.
    fn failures(&self) -> impl Iterator<Item = String> {
        self.failed.iter().flat_map(|(scenario, failures)| {
            failures.iter().map(move |failure| format!("{scenario}: {failure}"))
        })
    }
}

/// Returns all folders with results. They can be nested, because names of scenarios contain `/`.
fn folders_with_checks(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.join("checks.json").is_file() {
            found.push(path);
        } else if path.is_dir() {
            found.extend(folders_with_checks(&path)?);
        }
    }
    found.sort();
    Ok(found)
}

/// Returns the name of the scenario: the name of its folder without the prefix `server-` and the
/// time at its end.
fn scenario(results: &Path, folder: &Path) -> anyhow::Result<String> {
    /// Length of a time such as `-2026-11-21T22-38-51-123Z`.
    const TIME_CHARS: usize = 25;
    let name = folder.strip_prefix(results)?.to_string_lossy().into_owned();
    let name = name.strip_prefix("server-").unwrap_or(&name);
    Ok(name.get(..name.len().saturating_sub(TIME_CHARS)).unwrap_or(name).to_owned())
}

/// Changes what is served when a tool requests it. The tool creates a file in a directory that is
/// mounted for this purpose.
struct Changing {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Changing {
    fn start() -> anyhow::Result<Self> {
        let signal = root().join("target/mcp/signal");
        fs::create_dir_all(&signal)?;
        take_signals(&signal);
        let mut served = Served::default();
        served.put_plugin()?;
        served.put_config()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for sign in take_signals(&signal) {
                    if let Err(error) = served.change(&sign) {
                        report(&format!("what is served cannot be changed: {error:#}"));
                    }
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Changing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ended = thread.join();
        }
    }
}

/// Current variants of what is served.
#[derive(Default)]
struct Served {
    has_other_plugin: bool,
    has_more_prompts: bool,
}

impl Served {
    fn change(&mut self, sign: &str) -> anyhow::Result<()> {
        if sign == PROMPTS {
            self.has_more_prompts = !self.has_more_prompts;
            return self.put_config();
        }
        self.has_other_plugin = !self.has_other_plugin;
        self.put_plugin()
    }

    fn put_plugin(&self) -> anyhow::Result<()> {
        let [first, second] = CHANGING;
        let name = if self.has_other_plugin { second } else { first };
        put_plugin(name, &root().join("target/mcp/changing.wasm"))
    }

    fn put_config(&self) -> anyhow::Result<()> {
        let mut text = fs::read_to_string(root().join(CONFIG))
            .with_context(|| format!("cannot read {CONFIG}"))?;
        if self.has_more_prompts {
            text.push_str(MORE_PROMPTS);
        }
        let (served, fresh) =
            (root().join(SERVED_CONFIG), root().join("target/mcp/cofferdam.fresh"));
        fs::write(&fresh, text)?;
        Ok(fs::rename(&fresh, &served)?)
    }
}

/// Removes all files from a directory and returns their names.
fn take_signals(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let files = entries.flatten().filter(|entry| entry.path().is_file());
    let taken = files.filter(|entry| fs::remove_file(entry.path()).is_ok());
    taken.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}
