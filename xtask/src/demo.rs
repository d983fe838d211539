//! Demo: a scripted model uses sandboxed tools on files of this repository.

use anyhow::Context;

use crate::run::{command, root, section};
use crate::{guests, projects};

/// Script that uses the plugin inside of the host, and one that uses sample tools.
const SCRIPT: &str = "sample-tools/demo/tour.jsonl";
const SAMPLES_SCRIPT: &str = "sample-tools/demo/script.jsonl";
const PLUGIN: &str = "host/cli/src/commands/demo/tour.wasm";
/// Plugins of the second script.
const PLUGINS: [&str; 4] = ["text", "csv", "markdown", "crash"];

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Also build and show the sample tools in Rust, and those in Python, JavaScript, TypeScript,
    /// Go, C and C++ whose toolchains are installed
    #[arg(long)]
    all: bool,
}

/// Builds the host and shows how tools run in it.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    section(
        "compiling the host, which contains a compiler; this takes some minutes the first time",
    );
    // Builds less than the tests, which need benchmarks, examples and features of other packages.
    // Without line tables and state for incremental builds, which a first look does not need, it
    // takes 20 seconds less.
    command("cargo", &["build", "--package", "cofferdam-cli"])
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .run(&root())?;
    cofferdam(&["demo"])?;

    section("an untrusted component: which permissions does it ask for?");
    cofferdam(&["inspect", PLUGIN])?;

    section("a scripted model works on files of this repository, mounted read-only as /notes");
    cofferdam(&["play", SCRIPT, "--plugin", PLUGIN, "--mount", "notes=docs:ro"])?;

    if options.all {
        guests::build_samples()?;
        samples()?;
        section("sample tools on files: a git repository, tables by SQL, a PDF");
        calls(&ON_FILES)?;
        projects::build()?;
        in_other_languages()?;
    }

    section(
        "done: one tool trapped on purpose, the model saw an error that it can act on, and the other tools went on; \
         `cargo xtask demo --all` shows more tools, in other languages too",
    );
    Ok(())
}

/// Plays the script of the sample tools in Rust.
fn samples() -> anyhow::Result<()> {
    section("a scripted model uses the sample tools in Rust, with the stores /docs and /data");
    let plugin_paths = PLUGINS.map(|name| format!("target/plugins/{name}.wasm"));
    let mut play = vec![
        "play",
        SAMPLES_SCRIPT,
        "--mount",
        "docs=docs:ro",
        "--mount",
        "data=sample-tools/demo/data:ro",
    ];
    for path in &plugin_paths {
        play.extend(["--plugin", path]);
    }
    cofferdam(&play)
}

/// Call of a sample tool: plugin, tool, arguments, and the directory that it sees as `/data`.
type SampleCall = (&'static str, &'static str, &'static str, Option<&'static str>);

/// One call of each sample in another language.
const SAMPLES: [SampleCall; 10] = [
    ("units", "convert", r#"{"value":98.6,"unit":"degF","to":"degC"}"#, None),
    (
        "evaluate",
        "evaluate",
        r#"{"code":"import statistics\nstatistics.stdev(xs)","inputs":{"xs":[2,4,4,4,5,5,7,9]}}"#,
        None,
    ),
    (
        "jsonata",
        "transform_json",
        r#"{"expression":"orders{customer: $sum(lines.(price * quantity))}","file":"/data/orders.json"}"#,
        Some("sample-tools/javascript/jsonata/fixtures"),
    ),
    (
        "template",
        "render_template",
        r#"{"template_file":"/data/letter.liquid","data_file":"/data/order.json"}"#,
        Some("sample-tools/javascript/template/fixtures"),
    ),
    ("inspect", "inspect_url", r#"{"url":"http://0x7f.1/admin"}"#, None),
    (
        "archive",
        "search_archive",
        r#"{"file":"/data/logs.tar.gz","pattern":"(?i)error"}"#,
        Some("sample-tools/go/archive/fixtures"),
    ),
    (
        "sqlite",
        "query",
        r#"{"file":"/data/app.db","sql":"SELECT name, total FROM unpaid WHERE total > 5"}"#,
        Some("sample-tools/c/sqlite/fixtures"),
    ),
    (
        "checksum",
        "verify_checksums",
        r#"{"file":"/data/release/SHA256SUMS"}"#,
        Some("sample-tools/c/checksum/fixtures"),
    ),
    (
        "similar",
        "closest",
        r#"{"name":"--verison","names":["--verbose","--version","--quiet"]}"#,
        None,
    ),
    (
        "image",
        "image_info",
        r#"{"file":"/data/turned.jpg"}"#,
        Some("sample-tools/cpp/image/fixtures"),
    ),
];

/// Calls of sample tools in Rust that read files.
const ON_FILES: [SampleCall; 4] = [
    (
        "git",
        "git_log",
        r#"{"repository":"/data/poems.git","count":3}"#,
        Some("sample-tools/rust/git/tests/data"),
    ),
    (
        "git",
        "git_blame",
        r#"{"repository":"/data/poems.git","path":"poems/long.txt","count":3}"#,
        Some("sample-tools/rust/git/tests/data"),
    ),
    (
        "data",
        "query",
        r#"{"sql":"SELECT region, count(*) AS sales, sum(amount) AS total FROM 'sales.csv' GROUP BY region ORDER BY total DESC"}"#,
        Some("sample-tools/rust/data/tests/data"),
    ),
    (
        "pdf",
        "pdf_search",
        r#"{"file":"/data/report.pdf","text":"fox"}"#,
        Some("sample-tools/rust/pdf/tests/data"),
    ),
];

fn in_other_languages() -> anyhow::Result<()> {
    section(
        "tools in Python, JavaScript, TypeScript, Go, C and C++, as far as their toolchains are \
         here",
    );
    calls(&SAMPLES)
}

/// Calls the sample tools that are built.
fn calls(calls: &[SampleCall]) -> anyhow::Result<()> {
    for (plugin, tool, arguments, directory) in calls {
        let component = format!("target/plugins/{plugin}.wasm");
        if !root().join(&component).is_file() {
            continue;
        }
        let mount = directory.map(|directory| format!("data={directory}:ro"));
        let mut call = vec!["call", tool, arguments, "--plugin", &component];
        call.extend(mount.iter().flat_map(|mount| ["--mount", mount]));
        cofferdam(&call)?;
    }
    Ok(())
}

fn cofferdam(arguments: &[&str]) -> anyhow::Result<()> {
    show(arguments);
    let program = root().join("target/debug/cofferdam");
    let program = program.to_str().context("the path of this repository is not UTF-8")?;
    command(program, arguments).run(&root())
}

#[expect(clippy::print_stderr, reason = "a demonstration shows what it runs")]
fn show(arguments: &[&str]) {
    eprintln!("$ cofferdam {}\n", arguments.join(" "));
}
