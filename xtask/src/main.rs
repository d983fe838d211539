//! Commands for working on this project. `cargo xtask demo` and `cargo xtask test` need only this
//! repository and rustup.

mod bench;
mod book;
mod clients;
mod code;
mod count;
mod demo;
mod deny;
mod dist;
mod fuzz;
mod gallery;
mod guests;
mod install;
mod languages;
mod mcp;
mod models;
mod nats;
mod packages;
mod picture;
mod platforms;
mod projects;
mod registry;
mod release;
mod run;
mod s3;
mod sdks;
mod server;
mod toolchains;
mod tools;

use std::num::NonZeroUsize;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use crate::run::{cargo, cargo_in, is_ci, root, section};
use crate::toolchains::Toolchain;

/// Variable with the number of tests that a test program runs at the same time.
const TEST_THREADS: &str = "RUST_TEST_THREADS";
/// Many tests wait for deadlines, processes and servers, which leaves cores idle.
const TEST_THREADS_PER_CORE: usize = 2;
/// Folder of the call logs of commands that tests run, instead of the user's.
const TEST_STATE: &str = "target/tests/state";

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Cofferdam's own commands")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Build the host, and show how tools run in it, on files of this repository
    Demo(demo::Options),
    /// Build everything that the tests need and run all tests
    Test,
    /// Run the conformance rows and print `area: passed/total`; COFFERDAM_VECTORS sets another
    /// directory of rows
    Conformance,
    /// Check format, clippy with warnings denied, documentation, the book and dependencies
    Lint,
    /// Build the documentation as a book; installs mdBook into target/tools
    Book,
    /// Check licences, bans, sources and known vulnerabilities of the dependencies
    Deny,
    /// Run what CI runs: lint, then test
    Ci,
    /// Build the sample tools, the conformance plugins, the test programs and the interpreters of
    /// code mode, including those in other languages whose toolchains are installed
    Guests,
    /// Install the host with the interpreters of code mode whose toolchains are installed
    Install(install::Options),
    /// Make the packages of a release in target/dist
    Dist(dist::Options),
    /// Set the version of a release and close the changelog, or compare the interfaces of the
    /// published crates with those of an earlier commit
    Release(release::Options),
    /// Build the component of `cofferdam demo` into host/cli
    Tour,
    /// Install an S3 server into target/s3 and run the tests of bucket stores against it
    S3 {
        /// Only start the server and print its address
        #[arg(long)]
        serve: bool,
    },
    /// Install a NATS server into target/nats and run the tests of clusters with it
    Nats,
    /// Check the host for other platforms, with compilers and emulators of Debian and PyPI
    Platforms(platforms::Options),
    /// Publish the sample tools in a registry
    Gallery(gallery::Options),
    /// Install what checks the client packages into target/clients, and check and test them against
    /// the host
    Clients,
    /// Install third-party clients of registries into target/registry and run the tests of
    /// registries with them
    Registry,
    /// Install the official MCP clients and conformance suite into target/mcp and run them against
    /// this server
    Mcp {
        /// Run only this part
        part: Option<mcp::Part>,
    },
    /// Install third-party servers into target/models and run the clients of model providers
    /// against them
    Models,
    /// Measure the host against a baseline and print ratios; builds the baseline
    Bench(bench::Options),
    /// Run the commands of the README's picture and write docs/images/session.svg
    Picture,
    /// Search for inputs that break a rule with libFuzzer; needs a C++ compiler
    Fuzz(fuzz::Options),
    /// Count the instructions of a call with valgrind, and compare with tests/bench/counts.toml
    Count(count::Options),
}

fn main() -> anyhow::Result<ExitCode> {
    match fuzz::as_rustc() {
        Some(code) => Ok(code),
        None => run(Cli::parse().command).map(|()| ExitCode::SUCCESS),
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Demo(options) => demo::run(&options),
        Command::Test => test(),
        Command::Conformance => conformance(),
        Command::Lint => lint(),
        Command::Book => book::build(),
        Command::Deny => deny::run(),
        Command::Ci => lint().and_then(|()| test()),
        Command::Guests => {
            guests::build()?;
            languages::build()?;
            section("building the host, which builds the plugins");
            build()?;
            code::build()?;
            projects::build()
        }
        Command::Install(options) => install::run(&options),
        Command::Dist(options) => dist::run(&options),
        Command::Release(options) => release::run(&options),
        Command::Tour => guests::build_tour(),
        Command::S3 { serve } => s3::run(serve),
        Command::Gallery(options) => gallery::run(&options),
        Command::Clients => {
            guests::build()?;
            build()?;
            code::build()?;
            clients::run()
        }
        Command::Registry => guests::build().and_then(|()| build()).and_then(|()| registry::run()),
        Command::Mcp { part } => {
            guests::build().and_then(|()| build()).and_then(|()| mcp::run(part))
        }
        Command::Models => models::run(),
        Command::Nats => nats::run(),
        Command::Bench(options) => bench::run(&options),
        Command::Platforms(options) => platforms::run(&options),
        Command::Picture => {
            guests::build_samples()?;
            build()?;
            picture::write()
        }
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Count(options) => count::run(&options),
    }
}

fn test() -> anyhow::Result<()> {
    // Installers wait for the network or use one core.
    let (compiled, servers) = side_by_side(compile, TestServers::start);
    compiled?;
    let servers = servers?;
    languages::build()?;
    projects::build()?;
    code::build()?;
    picture::check()?;
    // So do most test tools of other languages.
    let (natively, sdks) = side_by_side(test_natively, sdks::test);
    natively?;
    sdks?;
    section("testing the workspace, its parts and end to end");
    let state = root().join(TEST_STATE);
    // Each command looks through the logs of all earlier ones when it ends.
    if state.is_dir() {
        std::fs::remove_dir_all(&state).with_context(|| format!("cannot remove {TEST_STATE}"))?;
    }
    let mut tests = run::command("cargo", &["test", "--workspace", "--no-fail-fast"])
        .env("XDG_STATE_HOME", &state.to_string_lossy());
    for (name, value) in servers.variables() {
        tests = tests.env(name, value);
    }
    if std::env::var_os(TEST_THREADS).is_none() {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        tests = tests.env(TEST_THREADS, &(TEST_THREADS_PER_CORE * cores).to_string());
    }
    tests.run(&root())?;
    drop(servers);
    let (clients, mcp) =
        side_by_side(clients::for_tests, || gallery::for_tests().and_then(|()| mcp::for_tests()));
    clients.and(mcp)?;
    fuzz::for_tests()?;
    count::for_tests()
}

fn compile() -> anyhow::Result<()> {
    guests::build()?;
    section("building the host");
    build()
}

fn test_natively() -> anyhow::Result<()> {
    section("testing the sample tools natively");
    guests::test()?;
    code::test()
}

/// Servers and programs that tests of the workspace use.
struct TestServers {
    buckets: Option<s3::Server>,
    programs: Vec<(&'static str, String)>,
}

impl TestServers {
    /// Installs what is missing, also for later steps, and starts the server that runs during the
    /// tests.
    fn start() -> anyhow::Result<Self> {
        Toolchain::install_in_ci(&Toolchain::ALL)?;
        toolchains::valgrind_for_tests()?;
        toolchains::registry_for_tests()?;
        toolchains::browser_for_tests()?;
        let programs = [models::for_tests()?, registry::for_tests()?, nats::for_tests()?];
        let programs = programs.into_iter().flatten().collect();
        if is_ci() {
            clients::install()?;
            mcp::install()?;
        }
        Ok(Self { buckets: s3::for_tests()?, programs })
    }

    /// Returns the environment variables that tell the tests.
    fn variables(&self) -> Vec<(&'static str, &str)> {
        let buckets = self.buckets.iter().map(s3::Server::variable);
        let programs = self.programs.iter().map(|(name, value)| (*name, value.as_str()));
        buckets.chain(programs).collect()
    }
}

/// Runs two steps at the same time. What they print is mixed.
fn side_by_side<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        let one = one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (one, other)
    })
}

/// Builds the binary and all tests together. Selecting single packages would select other features
/// of shared dependencies and compile wasmtime again for each selection.
fn build() -> anyhow::Result<()> {
    cargo(&["build", "--workspace", "--bins", "--tests"])
}

fn conformance() -> anyhow::Result<()> {
    guests::build()?;
    build()?;
    section("conformance");
    cargo(&[
        "test",
        "--quiet",
        "--workspace",
        "--test",
        "it",
        "--",
        "--exact",
        "conformance::rows",
        "--nocapture",
    ])
}

fn lint() -> anyhow::Result<()> {
    section("format");
    cargo(&["fmt", "--all", "--check"])?;
    for workspace in guests::WORKSPACES {
        cargo_in(workspace.folder, &["fmt", "--all", "--check"])?;
    }
    section("clippy");
    // The lint of the interpreter compiles C.
    let (checked, installed) = side_by_side(
        || cargo(&["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]),
        || Toolchain::install_in_ci(&[Toolchain::Clang]),
    );
    checked?;
    installed?;
    guests::lint()?;
    code::lint()?;
    section("documentation");
    run::command(
        "cargo",
        &["doc", "--workspace", "--no-deps", "--document-private-items", "--quiet"],
    )
    .env("RUSTDOCFLAGS", "--deny warnings")
    .run(&root())?;
    book::build()?;
    deny::run()
}
