//! How many instructions a call takes, by callgrind: a figure that is the same on a busy machine, and so a limit that a test can
//! hold.
//!
//! A program that makes N calls is counted twice, with two numbers of calls; the difference is what the calls took, without the
//! start. What is kept in `tests/bench/counts.toml` may be exceeded by a tenth.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};

use crate::packages::text;
use crate::run::{command, is_ci, release, root, section};
use crate::{guests, run, toolchains};

/// What is counted; the names of the keys as well.
const SIDES: [&str; 2] = ["ours", "floor"];
const CALLS: [u64; 2] = [100, 400];
const COUNTS: &str = "tests/bench/counts.toml";
/// In hundredths.
const GROWTH_MAX: u64 = 10;

/// Counts, and compares with what is kept or writes it.
pub(crate) fn run(updates: bool) -> anyhow::Result<()> {
    guests::build()?;
    section("building what is counted, in release mode");
    run::cargo(&[
        "build",
        "--release",
        "--package",
        "cofferdam-bench",
        "--no-default-features",
        "--features",
        "count",
    ])?;
    section("counting the instructions of a call");
    let path = root().join(COUNTS);
    let mut kept = fs::read_to_string(&path).with_context(|| format!("cannot read {COUNTS}"))?;
    let mut grown = Vec::new();
    for side in SIDES {
        let (before, now) = (kept_count(&kept, side)?, count(side)?);
        say(side, before, now);
        if updates {
            kept = kept.replace(&format!("\n{side} = {before}\n"), &format!("\n{side} = {now}\n"));
        } else if now * 100 > before * (100 + GROWTH_MAX) {
            grown.push(side);
        }
    }
    if updates {
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

/// The same for a run of all tests. Where the counter is missing it is installed in CI, and said anywhere else.
pub(crate) fn for_tests() -> anyhow::Result<()> {
    if !toolchains::has_valgrind() {
        if !is_ci() {
            section("the instructions of a call are not counted: valgrind is not installed");
            return Ok(());
        }
        toolchains::install_valgrind()?;
    }
    run(false)
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
fn count(side: &str) -> anyhow::Result<u64> {
    let [few, many] = CALLS;
    let (low, high) = (total(side, few)?, total(side, many)?);
    Ok(high.saturating_sub(low) / (many - few))
}

/// The instructions of a program that makes so many calls.
fn total(side: &str, calls: u64) -> anyhow::Result<u64> {
    let folder = root().join("target/count");
    fs::create_dir_all(&folder)?;
    let out: PathBuf = folder.join(format!("{side}-{calls}"));
    let (out_file, log) = (format!("--callgrind-out-file={}", text(&out)?), folder.join("log"));
    let log_file = format!("--log-file={}", text(&log)?);
    let calls = calls.to_string();
    let program = release("cofferdam-bench");
    let arguments =
        ["--tool=callgrind", &out_file, &log_file, text(&program)?, "--count", side, "--calls", &calls];
    command("valgrind", &arguments).called("valgrind").run(&root())?;
    let written = fs::read_to_string(&out)?;
    let totals = written.lines().find_map(|line| line.strip_prefix("totals: "));
    let Some(totals) = totals else { bail!("callgrind has written no totals into {}", out.display()) };
    Ok(totals.trim().parse()?)
}
