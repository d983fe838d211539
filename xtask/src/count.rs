//! How many instructions a call takes, by callgrind: a figure that is the same on a busy machine,
//! and so a limit that a test can hold.
//!
//! A program that makes N calls is counted twice, with two numbers of calls; the difference is what
//! the calls took, without the start. `tests/bench/counts.toml` has the figures of a debug build,
//! and how much each may grow.

mod filter;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use self::filter::without_auxv;
use crate::packages::text;
use crate::run::{command, is_ci, root, section};
use crate::{guests, toolchains};

/// Figures in the file of counts: the instructions of a call on raw wasmtime, and those that the
/// host adds. How much each may grow, in hundredths. The host's part varies more from run to run,
/// being the difference of two counts.
const FIGURES: [(&str, u64); 2] = [("floor", 10), ("added", 50)];
/// The more calls, the less it counts that compiling takes some instructions more or less from run
/// to run.
const CALLS: [u64; 2] = [100, 600];
const COUNTS: &str = "tests/bench/counts.toml";
const FOLDER: &str = "target/count";

#[derive(Default, clap::Args)]
pub(crate) struct Options {
    /// Write what was counted into the file
    #[arg(long)]
    update: bool,
    /// Count in this `cofferdam-bench`, such as one that was built in release mode, and compare
    /// with nothing
    #[arg(long, value_name = "FILE", conflicts_with = "update")]
    program: Option<PathBuf>,
}

/// Counts, and compares with what is kept or writes it.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    if let Some(program) = &options.program {
        section("counting the instructions of a call");
        for ((name, _), now) in FIGURES.iter().zip(figures(program)?) {
            say(name, now, None);
        }
        return Ok(());
    }
    let program = build()?;
    section("counting the instructions of a call");
    let path = root().join(COUNTS);
    let mut kept = fs::read_to_string(&path).with_context(|| format!("cannot read {COUNTS}"))?;
    let mut grown = Vec::new();
    for ((name, growth_max), now) in FIGURES.into_iter().zip(figures(&program)?) {
        let before = kept_count(&kept, name)?;
        say(name, now, Some(before));
        if options.update {
            kept = kept.replace(&format!("\n{name} = {before}\n"), &format!("\n{name} = {now}\n"));
        } else if now * 100 > before * (100 + growth_max) {
            grown.push(format!("`{name}` by over {growth_max} %"));
        }
    }
    if options.update {
        fs::write(&path, kept)?;
    }
    ensure!(
        grown.is_empty(),
        "the instructions of a call grew: {}; if that is wanted, `cargo xtask count --update` writes the \
         new figures into {COUNTS}, and the file says why",
        grown.join(", ")
    );
    Ok(())
}

/// Counts the figures.
fn figures(program: &Path) -> anyhow::Result<[u64; FIGURES.len()]> {
    let (floor, ours) = (count(program, "floor")?, count(program, "ours")?);
    Ok([floor, ours.saturating_sub(floor)])
}

/// Builds the program as the tests do. An optimised build would take as long as everything else,
/// and a change shows in either.
fn build() -> anyhow::Result<PathBuf> {
    guests::build()?;
    crate::build()?;
    Ok(root().join("target/debug/cofferdam-bench"))
}

/// The same for a run of all tests. Where the counter is missing it is installed in CI, and said
/// anywhere else.
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
fn say(name: &str, now: u64, before: Option<u64>) {
    let compared = before.map_or_else(String::new, |before| format!(", {before} in {COUNTS}"));
    eprintln!("{name}: {now} instructions for one call{compared}");
}

fn kept_count(kept: &str, name: &str) -> anyhow::Result<u64> {
    let value = kept.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_prefix('='));
    Ok(value.with_context(|| format!("{COUNTS} has no line `{name} = …`"))?.trim().parse()?)
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
