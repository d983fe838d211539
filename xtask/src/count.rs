//! Counts the instructions of a call with callgrind. Unlike a duration, the count does not depend
//! on the load of the machine, so a test can enforce a limit.
//!
//! A program that makes N calls is counted twice, with two values of N. The difference is the cost
//! of the calls without the start of the program. `tests/bench/counts.toml` contains the counts of
//! a debug build and how much each may grow.

mod filter;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use self::filter::without_auxv;
use crate::packages::text;
use crate::run::{command, is_ci, root, section};
use crate::{guests, toolchains};

/// Names of the counts in [`COUNTS`], with their maximum growth in percent: instructions of a call
/// on raw wasmtime, and instructions that the host adds. The second varies more between runs,
/// because it is the difference of two counts.
const FIGURES: [(&str, u64); 2] = [("floor", 10), ("added", 50)];
/// Numbers of calls of the two runs. With more calls, the variation of compilation between runs
/// matters less.
const CALLS: [u64; 2] = [100, 600];
const COUNTS: &str = "tests/bench/counts.toml";
const FOLDER: &str = "target/count";

#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Write the new counts to the file
    #[arg(long)]
    update: bool,
    /// Count in this `cofferdam-bench`, such as one built in release mode, and compare with nothing
    #[arg(long, value_name = "FILE", conflicts_with = "update")]
    program: Option<PathBuf>,
}

/// Builds the program, counts, and compares with the stored counts or replaces them.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    if let Some(program) = &options.program {
        section("counting the instructions of a call");
        for ((name, _), now) in FIGURES.iter().zip(figures(program)?) {
            say(name, now, None);
        }
        return Ok(());
    }
    // An optimized build would take as long as everything else, and changes are visible in either.
    guests::build()?;
    crate::build()?;
    compare(options.update)
}

/// Counts in the program that was built like the tests, and compares with the stored counts or
/// replaces them.
fn compare(updates: bool) -> anyhow::Result<()> {
    let program = root().join("target/debug/cofferdam-bench");
    section("counting the instructions of a call");
    let path = root().join(COUNTS);
    let mut counts = fs::read_to_string(&path).with_context(|| format!("cannot read {COUNTS}"))?;
    let mut grown = Vec::new();
    for ((name, growth_max), now) in FIGURES.into_iter().zip(figures(&program)?) {
        let before = count_of(&counts, name)?;
        say(name, now, Some(before));
        if updates {
            counts =
                counts.replace(&format!("\n{name} = {before}\n"), &format!("\n{name} = {now}\n"));
        } else if now * 100 > before * (100 + growth_max) {
            grown.push(format!("`{name}` by over {growth_max} %"));
        }
    }
    if updates {
        fs::write(&path, counts)?;
    }
    ensure!(
        grown.is_empty(),
        "the instructions of a call grew: {}; if that is wanted, `cargo xtask count --update` writes the \
         new figures into {COUNTS}, and the file says why",
        grown.join(", ")
    );
    Ok(())
}

/// Returns the counts in the order of [`FIGURES`].
fn figures(program: &Path) -> anyhow::Result<[u64; FIGURES.len()]> {
    let (floor, ours) = crate::side_by_side(|| count(program, "floor"), || count(program, "ours"));
    let (floor, ours) = (floor?, ours?);
    Ok([floor, ours.saturating_sub(floor)])
}

/// Counts in a run of all tests, which has built the program. Machines other than CI skip the count
/// with a note if valgrind is missing.
pub(crate) fn for_tests() -> anyhow::Result<()> {
    if !toolchains::has_valgrind() && !is_ci() {
        section("the instructions of a call are not counted: valgrind is not installed");
        return Ok(());
    }
    compare(false)
}

#[expect(clippy::print_stderr, reason = "progress of a command line tool")]
fn say(name: &str, now: u64, before: Option<u64>) {
    let compared = before.map_or_else(String::new, |before| format!(", {before} in {COUNTS}"));
    eprintln!("{name}: {now} instructions for one call{compared}");
}

fn count_of(counts: &str, name: &str) -> anyhow::Result<u64> {
    let value = counts.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_prefix('='));
    Ok(value.with_context(|| format!("{COUNTS} has no line `{name} = …`"))?.trim().parse()?)
}

/// Returns the number of instructions of one call.
fn count(program: &Path, side: &str) -> anyhow::Result<u64> {
    let [few, many] = CALLS;
    let total = |calls| without_auxv(|| total(program, side, calls));
    Ok(total(many)?.saturating_sub(total(few)?) / (many - few))
}

/// Returns the number of instructions of a program that makes `calls` calls.
fn total(program: &Path, side: &str, calls: u64) -> anyhow::Result<u64> {
    let folder = root().join(FOLDER);
    fs::create_dir_all(&folder)?;
    let out = folder.join(format!("{side}-{calls}"));
    let out_file = format!("--callgrind-out-file={}", text(&out)?);
    let calls = calls.to_string();
    let arguments = [
        "--tool=callgrind",
        "--quiet",
        &out_file,
        text(program)?,
        "--count",
        side,
        "--calls",
        &calls,
    ];
    command("valgrind", &arguments).called("valgrind").run(&root())?;
    let written = fs::read_to_string(&out)?;
    let totals = written.lines().find_map(|line| line.strip_prefix("totals: "));
    let Some(totals) = totals else {
        bail!("callgrind has written no totals into {}", out.display())
    };
    Ok(totals.trim().parse()?)
}
