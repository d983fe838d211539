//! Builds and runs the benchmarks, and what they compare with.

use crate::packages::text;
use crate::run::{cargo, command, release, root, section};
use crate::{guests, nats};

/// Benchmarks that need neither plugins nor the engine, which takes minutes to compile.
const WITHOUT_CALLS: [&str; 2] = ["search", "throughput"];
/// Workspace with another version of wasmtime, used only by this benchmark.
const EXTISM: &str = "tests/bench/extism";
const EXTISM_TARGET: &str = "target/extism";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print one JSON object per line: name, ours, reference, ratio, spread; or name, amount, unit,
    /// spread
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print a Markdown table, as in docs/performance.md
    #[arg(long)]
    markdown: bool,
    /// Run one short round of everything to check that it works; measures nothing
    #[arg(long)]
    quick: bool,
    /// Run only this benchmark; repeatable
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let wants =
        |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    if options.only.is_empty()
        || options.only.iter().any(|name| !WITHOUT_CALLS.contains(&name.as_str()))
    {
        guests::build()?;
        if wants("extism") {
            build_extism();
        }
        section("building in release mode");
        cargo(&[
            "build",
            "--release",
            "--package",
            "cofferdam-cli",
            "--package",
            "cofferdam-bench",
            "--package",
            "cofferdam-python",
        ])?;
    } else {
        cargo(&["build", "--release", "--package", "cofferdam-bench", "--no-default-features"])?;
    }
    section("measuring");
    let flags =
        [(options.json, "--json"), (options.markdown, "--markdown"), (options.quick, "--quick")];
    let mut arguments: Vec<_> =
        flags.into_iter().filter_map(|(is_set, flag)| is_set.then_some(flag)).collect();
    for name in &options.only {
        arguments.extend(["--only", name]);
    }
    let mut bench = command(text(&release("cofferdam-bench"))?, &arguments);
    if wants("cluster")
        && let Some((name, program)) = nats::for_bench()?
    {
        bench = bench.env(name, &program);
    }
    // `cargo run` would select one package and compile the engine again with that package's
    // features.
    bench.run(&root())
}

/// Builds extism. If that fails, its benchmark is skipped: extism needs a newer compiler than the
/// host, and about 300 more crates.
fn build_extism() {
    section("building extism, for comparison");
    let build = |more: &[&str]| {
        let target = text(&root().join(EXTISM_TARGET))?.to_owned();
        let arguments =
            [&["build", "--release", "--locked", "--target-dir", &target], more].concat();
        // Without this, the toolchain that runs this program would override the one that the folder
        // selects.
        command("cargo", &arguments).without("RUSTUP_TOOLCHAIN").run(&root().join(EXTISM))
    };
    let built = build(&["--package", "cofferdam-bench-extism-driver"]).and_then(|()| {
        build(&["--package", "cofferdam-bench-extism-plugin", "--target", "wasm32-unknown-unknown"])
    });
    if let Err(error) = built {
        section(&format!("extism is left out: {error:#}"));
    }
}
