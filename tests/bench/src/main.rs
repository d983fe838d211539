//! Benchmarks as ratios: both sides are measured in the same run, in alternating rounds, so that
//! other load of the machine affects both equally. Absolute times are printed for orientation and
//! mean nothing on another machine.
//!
//! Benchmarks that call plugins are behind the feature `calls`, which is on by default: the others
//! build without the engine. Counting instructions needs only the feature `count`.

#![cfg_attr(
    not(feature = "calls"),
    allow(dead_code, reason = "rows that only benchmarks of calls have")
)]

#[cfg(feature = "calls")]
mod agent_loop;
#[cfg(feature = "calls")]
mod call_floor;
#[cfg(feature = "calls")]
mod callers;
#[cfg(feature = "calls")]
mod clients;
#[cfg(feature = "calls")]
mod cluster;
#[cfg(feature = "calls")]
mod code;
#[cfg(feature = "calls")]
mod copies;
#[cfg(feature = "calls")]
mod count;
#[cfg(feature = "calls")]
mod decode;
mod effort;
#[cfg(feature = "calls")]
mod extism;
#[cfg(feature = "calls")]
mod guards;
#[cfg(feature = "calls")]
mod guest_files;
#[cfg(feature = "calls")]
mod http_get;
#[cfg(feature = "calls")]
mod inspector;
#[cfg(feature = "calls")]
mod languages;
#[cfg(feature = "calls")]
mod mcp;
mod measure;
#[cfg(feature = "calls")]
mod memory;
#[cfg(feature = "calls")]
mod noisy_neighbour;
#[cfg(feature = "calls")]
mod one_cpu;
#[cfg(feature = "calls")]
mod payload;
mod ratio;
#[cfg(feature = "calls")]
mod records;
#[cfg(feature = "calls")]
mod registry;
mod samples;
mod search;
#[cfg(feature = "calls")]
mod start;
#[cfg(feature = "calls")]
mod store;
mod throughput;

use clap::Parser;

use crate::effort::Effort;
use crate::measure::{MARKDOWN_HEAD, Measure};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
#[command(about = "Measures the host against the floor and prints ratios")]
struct Cli {
    /// Print one JSON object per line: name, ours, reference, ratio, spread; or name, amount, unit,
    /// spread
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print a Markdown table, as in docs/performance.md
    #[arg(long)]
    markdown: bool,
    /// Run only this benchmark; repeatable
    #[arg(long, value_name = "NAME", value_parser = NAMES.to_vec())]
    only: Vec<String>,
    /// Run one short round of everything to check that it works; measures nothing
    #[arg(long)]
    quick: bool,
    /// Run as a server that `mcp` compares with
    #[cfg(feature = "calls")]
    #[arg(long, hide = true, value_name = "SERVER")]
    serve: Option<mcp::Served>,
    /// Send back the messages that `cluster` sends through the NATS server at this address
    #[cfg(feature = "calls")]
    #[arg(long, hide = true, value_name = "ADDRESS")]
    echo: Option<String>,
    /// Only make calls, so that their instructions can be counted
    #[cfg(feature = "calls")]
    #[arg(long, hide = true, value_name = "SIDE")]
    count: Option<count::Side>,
    /// Number of calls
    #[cfg(feature = "calls")]
    #[arg(long, hide = true, default_value_t = 1)]
    calls: u32,
}

/// All benchmarks, in the order in which they run. Those that read the memory of this process come
/// first.
const NAMES: &[&str] = &[
    #[cfg(feature = "calls")]
    memory::NAME,
    #[cfg(feature = "calls")]
    call_floor::NAME,
    #[cfg(feature = "calls")]
    payload::NAME,
    #[cfg(feature = "calls")]
    store::NAME,
    #[cfg(feature = "calls")]
    guards::NAME,
    #[cfg(feature = "calls")]
    callers::NAME,
    #[cfg(feature = "calls")]
    records::NAME,
    #[cfg(feature = "calls")]
    inspector::NAME,
    #[cfg(feature = "calls")]
    extism::NAME,
    #[cfg(feature = "calls")]
    mcp::NAME,
    #[cfg(feature = "calls")]
    start::NAME,
    #[cfg(feature = "calls")]
    registry::NAME,
    #[cfg(feature = "calls")]
    clients::NAME,
    #[cfg(feature = "calls")]
    cluster::NAME,
    #[cfg(feature = "calls")]
    agent_loop::NAME,
    #[cfg(feature = "calls")]
    decode::NAME,
    #[cfg(feature = "calls")]
    languages::NAME,
    #[cfg(feature = "calls")]
    code::NAME,
    #[cfg(feature = "calls")]
    http_get::NAME,
    #[cfg(feature = "calls")]
    noisy_neighbour::NAME,
    #[cfg(feature = "calls")]
    guest_files::NAME,
    search::NAME,
    throughput::NAME,
];

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    #[cfg(feature = "calls")]
    if let Some(served) = cli.serve {
        return served.run();
    }
    #[cfg(feature = "calls")]
    if let Some(address) = cli.echo {
        return cluster::echo(&address);
    }
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(cli))
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    #[cfg(feature = "calls")]
    if let Some(side) = cli.count {
        return count::run(side, cli.calls).await;
    }
    if cli.markdown {
        print(MARKDOWN_HEAD);
    }
    for name in NAMES {
        if cli.only.is_empty() || cli.only.iter().any(|only| only == name) {
            let rows = Box::pin(measure(name, Effort { is_quick: cli.quick })).await?;
            rows.iter().for_each(|row| show(&cli, row));
        }
    }
    Ok(())
}

async fn measure(name: &str, effort: Effort) -> anyhow::Result<Vec<Measure>> {
    match name {
        #[cfg(feature = "calls")]
        memory::NAME => memory::measure(effort).await,
        #[cfg(feature = "calls")]
        call_floor::NAME => call_floor::measure(effort).await,
        #[cfg(feature = "calls")]
        payload::NAME => payload::measure(effort).await,
        #[cfg(feature = "calls")]
        store::NAME => store::measure(effort).await,
        #[cfg(feature = "calls")]
        guards::NAME => guards::measure(effort).await,
        #[cfg(feature = "calls")]
        callers::NAME => callers::measure(effort),
        #[cfg(feature = "calls")]
        records::NAME => records::measure(effort),
        #[cfg(feature = "calls")]
        inspector::NAME => inspector::measure(effort),
        #[cfg(feature = "calls")]
        extism::NAME => extism::measure(effort).await,
        #[cfg(feature = "calls")]
        mcp::NAME => mcp::measure(effort).await,
        #[cfg(feature = "calls")]
        start::NAME => start::measure(effort).await,
        #[cfg(feature = "calls")]
        registry::NAME => registry::measure(effort).await,
        #[cfg(feature = "calls")]
        clients::NAME => clients::measure(effort).await,
        #[cfg(feature = "calls")]
        cluster::NAME => cluster::measure(effort),
        #[cfg(feature = "calls")]
        agent_loop::NAME => agent_loop::measure(effort).await,
        #[cfg(feature = "calls")]
        decode::NAME => decode::measure(effort).await,
        #[cfg(feature = "calls")]
        languages::NAME => languages::measure(effort).await,
        #[cfg(feature = "calls")]
        code::NAME => code::measure(effort).await,
        #[cfg(feature = "calls")]
        http_get::NAME => http_get::measure(effort).await,
        #[cfg(feature = "calls")]
        noisy_neighbour::NAME => noisy_neighbour::measure(effort).await,
        #[cfg(feature = "calls")]
        guest_files::NAME => guest_files::measure(effort).await,
        search::NAME => search::measure(effort).await,
        throughput::NAME => throughput::measure(effort).await,
        _ => Ok(Vec::new()),
    }
}

fn show(cli: &Cli, row: &Measure) {
    if cli.json {
        print(&row.to_json().to_string());
    } else if cli.markdown {
        print(&row.to_markdown());
    } else {
        print(&row.to_text());
    }
}

#[expect(clippy::print_stdout, reason = "the result of a benchmark")]
fn print(line: &str) {
    println!("{line}");
}

/// Prints the reason why something is not measured.
#[expect(clippy::print_stderr, reason = "beside the results")]
fn note(line: &str) {
    eprintln!("{line}");
}
