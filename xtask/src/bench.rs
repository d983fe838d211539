//! The benchmarks, and what they compare with.

use crate::guests;
use crate::packages::text;
use crate::run::{cargo, command, release, root, section};

/// Benchmarks that neither need plugins nor the engine, which takes minutes to build.
const WITHOUT_CALLS: [&str; 2] = ["search", "throughput"];
/// A workspace with a wasmtime of its own, which is built for nothing else.
const EXTISM: &str = "tests/bench/extism";
const EXTISM_TARGET: &str = "target/extism";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// One JSON object per line: name, ours, reference, ratio, spread; or name, amount, unit,
    /// spread
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// A table in Markdown, as in docs/performance.md
    #[arg(long)]
    markdown: bool,
    /// One short round of everything: whether it works, and no measurement
    #[arg(long)]
    quick: bool,
    /// Only this benchmark; may be given more than once
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
    // Not by `cargo run`, which would select one package, and build the engine once more with its
    // features.
    command(text(&release("cofferdam-bench"))?, &arguments).run(&root())
}

/// What cannot be built is left out: it needs a newer compiler than the host, and another 300
/// crates.
fn build_extism() {
    section("building extism, which is compared with");
    let build = |more: &[&str]| {
        let target = text(&root().join(EXTISM_TARGET))?.to_owned();
        let arguments =
            [&["build", "--release", "--locked", "--target-dir", &target], more].concat();
        // The toolchain that runs this would be taken before the one that the folder names.
        command("cargo", &arguments).without("RUSTUP_TOOLCHAIN").run(&root().join(EXTISM))
    };
    let built = build(&["--package", "cofferdam-bench-extism-driver"]).and_then(|()| {
        build(&["--package", "cofferdam-bench-extism-plugin", "--target", "wasm32-unknown-unknown"])
    });
    if let Err(error) = built {
        section(&format!("extism is left out: {error:#}"));
    }
}
