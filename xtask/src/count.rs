//! How many instructions a call takes, by callgrind: a figure that is the same on a busy machine, and so a limit that a test can
//! hold.
//!
//! A program that makes N calls is counted twice, with two numbers of calls; the difference is what the calls took, without the
//! start. What is kept in `tests/bench/counts.toml` may be exceeded by a tenth.

mod filter;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use self::filter::without_auxv;
use crate::packages::text;
use crate::run::{cargo, command, is_ci, root, section};
use crate::{guests, toolchains};

/// What is counted; the names of the keys as well.
const SIDES: [&str; 2] = ["ours", "floor"];
/// Compiling takes half a million instructions more or less from run to run, which is not to show in a call.
const CALLS: [u64; 2] = [200, 2200];
const COUNTS: &str = "tests/bench/counts.toml";
/// In hundredths.
const GROWTH_MAX: u64 = 10;

/// Has the engine and a client of it alone: what CI builds in release mode for nothing else.
const BUILD: [&str; 8] = [
    "build",
    "--release",
    "--package",
    "cofferdam-bench",
    "--no-default-features",
    "--features",
    "count",
    "--target-dir",
];
const FOLDER: &str = "target/count";

#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Write what was counted into the file
    #[arg(long)]
    update: bool,
    /// Count in a `cofferdam-bench` that is built already; other features count a little differently
    #[arg(long, value_name = "FILE", conflicts_with = "update")]
    program: Option<PathBuf>,
}

/// Counts, and compares with what is kept or writes it.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let program = match &options.program {
        Some(program) => program.clone(),
        None => build()?,
    };
    section("counting the instructions of a call");
    let path = root().join(COUNTS);
    let mut kept = fs::read_to_string(&path).with_context(|| format!("cannot read {COUNTS}"))?;
    let mut grown = Vec::new();
    for side in SIDES {
        let (before, now) = (kept_count(&kept, side)?, count(&program, side)?);
        say(side, before, now);
        if options.update {
            kept = kept.replace(&format!("\n{side} = {before}\n"), &format!("\n{side} = {now}\n"));
        } else if now * 100 > before * (100 + GROWTH_MAX) {
            grown.push(side);
        }
    }
    if options.update {
        fs::write(&path, kept)?;
    }
    ensure!(
        grown.is_empty(),
        "a call takes over {GROWTH_MAX} % more instructions than {COUNTS} says ({}); if that is wanted, \
         `cargo xtask count --update` writes what it takes, and the file says why",
        grown.join(", ")
    );
    Ok(())
}

fn build() -> anyhow::Result<PathBuf> {
    guests::build()?;
    section("building what is counted, in release mode");
    // Beside the other builds: with other features, nothing could be shared.
    let target = root().join(FOLDER);
    cargo(&[&BUILD[..], &[text(&target)?]].concat())?;
    Ok(target.join("release/cofferdam-bench"))
}

/// The same for a run of all tests. Where the counter is missing it is installed in CI, and said anywhere else.
pub(crate) fn for_tests() -> anyhow::Result<()> {
    if !toolchains::has_valgrind() {
        if !is_ci() {
            section("the instructions of a call are not counted: valgrind is not installed");
            return Ok(());
        }
        toolchains::install_valgrind()?;
    }
    run(&Options::default())
}

#[expect(clippy::print_stderr, reason = "progress of a command line tool")]
fn say(side: &str, before: u64, now: u64) {
    eprintln!("{side}: {now} instructions for one call, {before} in {COUNTS}");
}

fn kept_count(kept: &str, side: &str) -> anyhow::Result<u64> {
    let value = kept.lines().find_map(|line| line.strip_prefix(side)?.trim().strip_prefix('='));
    Ok(value.with_context(|| format!("{COUNTS} has no line `{side} = …`"))?.trim().parse()?)
}

/// The instructions of one call.
fn count(program: &Path, side: &str) -> anyhow::Result<u64> {
    let [few, many] = CALLS;
    let total = |calls| without_auxv(|| total(program, side, calls));
    Ok(total(many)?.saturating_sub(total(few)?) / (many - few))
}

/// The instructions of a program that makes so many calls.
fn total(program: &Path, side: &str, calls: u64) -> anyhow::Result<u64> {
    let folder = root().join(FOLDER);
    fs::create_dir_all(&folder)?;
    let out = folder.join(format!("{side}-{calls}"));
    let out_file = format!("--callgrind-out-file={}", text(&out)?);
    let calls = calls.to_string();
    let arguments =
        ["--tool=callgrind", "--quiet", &out_file, text(program)?, "--count", side, "--calls", &calls];
    command("valgrind", &arguments).called("valgrind").run(&root())?;
    let written = fs::read_to_string(&out)?;
    let totals = written.lines().find_map(|line| line.strip_prefix("totals: "));
    let Some(totals) = totals else { bail!("callgrind has written no totals into {}", out.display()) };
    Ok(totals.trim().parse()?)
}
