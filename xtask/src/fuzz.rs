//! Runs the fuzz targets of `tests/fuzz` under libFuzzer, with the toolchain of the repository.
//!
//! Coverage is an LLVM pass that stable compilers include. Only the crates of this workspace are
//! compiled with it: cargo runs this program instead of rustc for them
//! (`RUSTC_WORKSPACE_WRAPPER`), so their dependencies are not compiled a second time.

use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::run::{command, is_ci, root, section};

/// Environment variable that makes this program a wrapper of rustc.
const WRAPPER: &str = "COFFERDAM_FUZZ_RUSTC";
/// Environment variable with the name of the target, for the fuzzing program; same as
/// `cofferdam_fuzz::TARGET_VARIABLE`.
const TARGET: &str = "COFFERDAM_FUZZ_TARGET";
/// Flags of rustc for the coverage counters that libFuzzer reads.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];
/// Seconds per target in a run of all tests.
const TEST_SECONDS: u64 = 4;
/// Limits for one input.
const INPUT_SECONDS_MAX: u64 = 10;
const MEMORY_MIB_MAX: u64 = 2048;
/// Seconds by which a target may exceed its time before it is killed.
const GRACE_SECONDS: u64 = 60;
/// Maximum size of a component that is used as a seed, in bytes.
const SEED_BYTES_MAX: u64 = 60 * 1024;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Target to run [default: all]
    target: Option<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Check only this input, such as one of `target/fuzz/findings`
    #[arg(long, requires = "target", value_name = "FILE")]
    input: Option<PathBuf>,
    /// List the targets
    #[arg(long)]
    list: bool,
}

/// Compiles one crate with coverage if cargo has started this program instead of rustc; returns
/// `None` otherwise. Macros and build scripts get no coverage: they are loaded into rustc or run
/// by cargo, where libFuzzer's counters do not exist.
pub(crate) fn as_rustc() -> Option<ExitCode> {
    std::env::var_os(WRAPPER)?;
    let mut arguments = std::env::args_os().skip(1);
    let compiler = arguments.next()?;
    let arguments: Vec<_> = arguments.collect();
    let is_for_the_build = arguments.windows(2).any(|pair| match pair {
        [key, value] if key == "--crate-type" => value == "proc-macro",
        [key, value] if key == "--crate-name" => {
            value.to_string_lossy().starts_with("build_script_")
        }
        _ => false,
    });
    let flags = if is_for_the_build { &[] } else { COVERAGE };
    let status = Command::new(compiler).args(arguments).args(flags).status();
    let is_compiled = status.is_ok_and(|status| status.success());
    Some(if is_compiled { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the targets that `options` select.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let known = targets()?;
    if options.list {
        let mut out = std::io::stdout().lock();
        return known
            .iter()
            .try_for_each(|name| writeln!(out, "{name}"))
            .context("cannot write the list");
    }
    let names = match &options.target {
        Some(name) if known.contains(name) => vec![name.clone()],
        Some(name) => bail!("there is no target `{name}`; the targets are {}", known.join(", ")),
        None => known,
    };
    crate::guests::build()?;
    let program = build()?;
    if let (Some(file), [name]) = (&options.input, &*names) {
        let file =
            fs::canonicalize(file).with_context(|| format!("cannot read {}", file.display()))?;
        return command(&program.display().to_string(), &[&file.display().to_string()])
            .env(TARGET, name)
            .run(&root());
    }
    search(&program, &names, options.seconds)
}

/// Runs every target for a short time in a run of all tests. Skips them with a note if there is no
/// C++ compiler, except in CI.
pub(crate) fn for_tests() -> anyhow::Result<()> {
    if !is_ci() && !has_cpp() {
        section("the fuzz targets are skipped: no C++ compiler (`c++`) to build libFuzzer with");
        return Ok(());
    }
    search(&build()?, &targets()?, TEST_SECONDS)
}

fn has_cpp() -> bool {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut version = Command::new(compiler);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// Returns the names of the targets, which are the names of the folders of seeds. A test compares
/// them with the table of the crate.
fn targets() -> anyhow::Result<Vec<String>> {
    let seeds = root().join("tests/fuzz/seeds");
    let mut names = Vec::new();
    for entry in fs::read_dir(&seeds).with_context(|| format!("cannot read {}", seeds.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Builds the program that runs the targets.
fn build() -> anyhow::Result<PathBuf> {
    section("building the fuzz targets");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    // Not `current_exe`: building the workspace may have replaced the file of this process.
    let wrapper = target.join("debug").join(format!("xtask{}", std::env::consts::EXE_SUFFIX));
    let program = ["--features", "cofferdam-fuzz/libfuzzer", "--example", "fuzz"];
    command("cargo", &[&["build", "--workspace"], &program[..]].concat())
        .env("RUSTC_WORKSPACE_WRAPPER", &wrapper.display().to_string())
        .env(WRAPPER, "1")
        .run(&root())?;
    Ok(target.join("debug/examples/fuzz"))
}

/// Runs targets in parallel, each for `seconds`. Returns an error if one has found something.
fn search(program: &Path, names: &[String], seconds: u64) -> anyhow::Result<()> {
    section(&format!("fuzzing, {seconds} s for each of {} targets", names.len()));
    let waiting = Mutex::new(names.iter());
    let failed = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(names.len());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(name) = waiting.lock().ok().and_then(|mut names| names.next()) {
                    let result = fuzz(program, name, seconds);
                    say(name, &result);
                    if let (Err(_), Ok(mut failed)) = (result, failed.lock()) {
                        failed.push(name.clone());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_default();
    if failed.is_empty() {
        return Ok(());
    }
    bail!("found by {}; repair it, and add the input to the seeds of the target", failed.join(", "))
}

/// Prints the summary of a target, or the report of its finding.
#[expect(clippy::print_stderr, reason = "progress of a command line tool")]
fn say(name: &str, result: &anyhow::Result<String>) {
    match result {
        Ok(summary) => eprintln!("{name}: {summary}"),
        Err(error) => eprintln!("{name}: {error:#}"),
    }
}

/// Runs one target and returns a summary. Inputs that reach new code are stored in
/// `target/fuzz/corpus` for the next run.
fn fuzz(program: &Path, name: &str, seconds: u64) -> anyhow::Result<String> {
    let folder = root().join("target/fuzz");
    let (corpus, findings) = (folder.join("corpus").join(name), folder.join("findings"));
    for directory in [&corpus, &findings] {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make {}", directory.display()))?;
    }
    let log = folder.join(format!("{name}.log"));
    let output =
        fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut child = Command::new(program);
    child
        .env(TARGET, name)
        .arg(&corpus)
        .arg(root().join("tests/fuzz/seeds").join(name))
        .args(seeds(name, &folder)?)
        .arg(format!("-artifact_prefix={}/{name}-", findings.display()))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB_MAX}"))
        .args(["-print_final_stats=1", "-reload=0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output);
    let deadline = Instant::now() + Duration::from_secs(seconds + GRACE_SECONDS);
    let mut child = child.spawn().with_context(|| format!("cannot run {}", program.display()))?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            break child.wait()?;
        }
        thread::sleep(Duration::from_millis(50));
    };
    let report = fs::read_to_string(&log).unwrap_or_default();
    if status.success() {
        return Ok(summary(&report));
    }
    let from = report.lines().count().saturating_sub(40);
    let end: Vec<_> = report.lines().skip(from).collect();
    bail!("{status}; the end of {}:\n{}", log.display(), end.join("\n"))
}

/// Returns a folder of further seeds for a target, if it has one: for `component`, small plugins.
fn seeds(name: &str, folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    if name != "component" {
        return Ok(None);
    }
    let seeds = folder.join("components");
    fs::create_dir_all(&seeds).with_context(|| format!("cannot make {}", seeds.display()))?;
    let plugins = root().join("target/plugins");
    for entry in
        fs::read_dir(&plugins).with_context(|| format!("cannot read {}", plugins.display()))?
    {
        let entry = entry?;
        if entry.metadata()?.len() <= SEED_BYTES_MAX {
            fs::copy(entry.path(), seeds.join(entry.file_name()))?;
        }
    }
    Ok(Some(seeds))
}

/// Returns the number of inputs and covered edges from a report of libFuzzer.
fn summary(report: &str) -> String {
    let after = |line: Option<&str>, mark: &str| -> String {
        let rest = line.and_then(|line| line.split(mark).nth(1)).unwrap_or_default();
        rest.split_whitespace().next().unwrap_or("?").to_owned()
    };
    let units =
        after(report.lines().find(|line| line.contains("number_of_executed_units:")), "units:");
    let edges = after(report.lines().rev().find(|line| line.contains(" cov: ")), " cov: ");
    format!("{units} inputs, {edges} edges")
}
