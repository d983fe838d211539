//! Runs the official clients, each in every mode and over both transports.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use super::server::Server;
use super::{Tools, binary, put_plugin, text};
use crate::guests::copy_if_changed;
use crate::run::{command, root, section};

/// Programs in `tests/clients`, and their modes.
const CLIENTS: [(&str, &[&str]); 3] = [
    ("accept_python.py", &["auto", "legacy", "2026-07-28"]),
    ("accept_ts.mjs", &["v1", "v2", "v2-legacy"]),
    ("accept_agent_framework.py", &["auto"]),
];
/// Plugin that is served when a client starts, and the one that replaces it.
const SWAPPED: [&str; 2] = ["text", "csv"];

/// Transport between client and server.
#[derive(Clone, Copy)]
enum Transport {
    Stdio,
    Http,
}

pub(super) fn run(tools: &Tools) -> anyhow::Result<()> {
    section("MCP: the official clients");
    for (program, modes) in CLIENTS {
        for mode in modes {
            for (transport, name) in [(Transport::Stdio, "stdio"), (Transport::Http, "HTTP")] {
                let started = Instant::now();
                accept(tools, program, mode, transport)?;
                report(&format!(
                    "{program} {mode} over {name}: fine ({:.1} s)",
                    started.elapsed().as_secs_f32()
                ));
            }
        }
    }
    bundle(tools)
}

#[expect(clippy::print_stderr, reason = "progress of a command line tool")]
fn report(line: &str) {
    eprintln!("{line}");
}

fn accept(tools: &Tools, program: &str, mode: &str, transport: Transport) -> anyhow::Result<()> {
    let swapped = root().join("target/mcp/swapped.wasm");
    let [first, second] = SWAPPED;
    put_plugin(first, &swapped)?;
    let other = root().join("target/plugins").join(format!("{second}.wasm"));
    let mut plan =
        json!({ "mode": mode, "swap": { "file": text(&swapped)?, "with": text(&other)? } });
    let arguments = arguments(&swapped)?;
    match transport {
        Transport::Stdio => {
            let mut line = vec![text(&binary())?.to_owned(), "serve".to_owned()];
            line.extend(arguments);
            add(&mut plan, json!({ "command": line }));
            client(tools, program, &plan)
        }
        Transport::Http => {
            let token = root().join("target/mcp/token");
            let mut arguments = arguments;
            arguments.extend(["--token-file".to_owned(), text(&token)?.to_owned()]);
            let mut server = Server::start(&arguments)?;
            let token = fs::read_to_string(&token)?;
            add(
                &mut plan,
                json!({ "url": server.url, "token": token.trim(), "pid": server.pid() }),
            );
            client(tools, program, &plan)?;
            server.check_runs()
        }
    }
}

/// Returns the arguments of `serve`. The timeout is long, so a call that ends early was canceled
/// and did not reach a limit.
fn arguments(swapped: &Path) -> anyhow::Result<Vec<String>> {
    let plugin = |name: &str, path: &Path| Ok(format!("{name}={}", text(path)?));
    let guest = |name: &str| root().join("target/plugins").join(format!("{name}.wasm"));
    let served: anyhow::Result<Vec<String>> =
        [("swapped", swapped.to_owned()), ("served", guest("served")), ("crash", guest("crash"))]
            .into_iter()
            .map(|(name, path)| plugin(name, &path))
            .collect();
    let mut line: Vec<String> =
        served?.into_iter().flat_map(|plugin| ["--plugin".to_owned(), plugin]).collect();
    line.extend(["--timeout", "10m", "--cache-dir"].map(str::to_owned));
    line.push(text(&root().join("target/test-cache"))?.to_owned());
    Ok(line)
}

fn add(plan: &mut Value, more: Value) {
    if let (Some(plan), Value::Object(more)) = (plan.as_object_mut(), more) {
        plan.extend(more);
    }
}

fn client(tools: &Tools, program: &str, plan: &Value) -> anyhow::Result<()> {
    let script = root().join("tests/clients").join(program);
    let plan = plan.to_string();
    if program.ends_with(".py") {
        // `-B` keeps Python from writing compiled modules next to the sources.
        let python = tools.python();
        return command(text(&python)?, &["-B", text(&script)?, &plan])
            .called(program)
            .run(&root());
    }
    // Node looks for packages in the folders above a program.
    let beside_packages: PathBuf = tools.folder.join("npm").join(program);
    copy_if_changed(&script, &beside_packages)?;
    command(text(&tools.node)?, &[text(&beside_packages)?, &plan]).called(program).run(&root())
}

/// Checks that the official tool for bundles accepts our bundle.
fn bundle(tools: &Tools) -> anyhow::Result<()> {
    section("MCP: a bundle by the format's own tool");
    let folder = root().join("target/mcp/bundle");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let cofferdam = binary();
    let line =
        ["mcp", "bundle", "target/mcp/bundle/text.mcpb", "--plugin", "target/plugins/text.wasm"];
    let mount = ["--mount", "docs=docs:ro", "--cache-dir", "target/test-cache"];
    command(text(&cofferdam)?, &[&line[..], &mount].concat()).run(&root())?;
    let tool = tools.module("@anthropic-ai/mcpb/dist/cli/cli.js");
    for line in [&["unpack", "text.mcpb", "unpacked"][..], &["validate", "unpacked/manifest.json"]]
    {
        command(text(&tools.node)?, &[&[text(&tool)?], line].concat()).run(&folder)?;
    }
    command("target/mcp/bundle/unpacked/server/cofferdam", &["--version"]).run(&root())
}
