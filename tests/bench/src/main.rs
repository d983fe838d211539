//! Benchmarks as ratios: both sides are measured in the same run, in alternating rounds, so that what else the machine does
//! meets both alike. Absolute times are printed for orientation and mean nothing on another machine.
//!
//! Those that call plugins are behind the feature `calls`, which is on by default: the others build without the engine.

#[cfg(feature = "calls")]
mod agent_loop;
#[cfg(feature = "calls")]
mod call_floor;
#[cfg(feature = "calls")]
mod decode;
#[cfg(feature = "calls")]
mod guest_files;
#[cfg(feature = "calls")]
mod languages;
#[cfg(feature = "calls")]
mod mcp;
#[cfg(feature = "calls")]
mod noisy_neighbour;
mod ratio;
mod search;
mod throughput;

use clap::Parser;

use crate::ratio::Ratio;

#[derive(Parser)]
#[command(about = "Measures the host against the floor and prints ratios")]
struct Cli {
    /// One JSON object per line: name, ours, reference, ratio, spread
    #[arg(long)]
    json: bool,
    /// Only this benchmark
    #[arg(long, value_name = "NAME", value_parser = names())]
    only: Option<String>,
    /// Be the server that `mcp` compares with
    #[arg(long, hide = true)]
    native_echo: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let wanted = |name: &str| cli.only.as_deref().is_none_or(|only| only == name);
    #[cfg(feature = "calls")]
    {
        if cli.native_echo {
            return mcp::native_echo().await;
        }
        if wanted(mcp::NAME) {
            mcp::measure()?.iter().for_each(|ratio| show(&cli, ratio));
        }
        if wanted(agent_loop::NAME) {
            show(&cli, &agent_loop::measure().await?);
        }
        if wanted(call_floor::NAME) {
            show(&cli, &call_floor::measure().await?);
        }
        if wanted(decode::NAME) {
            show(&cli, &decode::measure().await?);
        }
        if wanted(guest_files::NAME) {
            guest_files::measure().await?.iter().for_each(|ratio| show(&cli, ratio));
        }
        if wanted(languages::NAME) {
            languages::measure().await?.iter().for_each(|ratio| show(&cli, ratio));
        }
        if wanted(noisy_neighbour::NAME) {
            show(&cli, &noisy_neighbour::measure().await?);
        }
    }
    if wanted(search::NAME) {
        search::measure().await?.iter().for_each(|ratio| show(&cli, ratio));
    }
    if wanted(throughput::NAME) {
        throughput::measure().await?.iter().for_each(|ratio| show(&cli, ratio));
    }
    Ok(())
}

fn names() -> Vec<&'static str> {
    vec![
        #[cfg(feature = "calls")]
        agent_loop::NAME,
        #[cfg(feature = "calls")]
        call_floor::NAME,
        #[cfg(feature = "calls")]
        decode::NAME,
        #[cfg(feature = "calls")]
        guest_files::NAME,
        #[cfg(feature = "calls")]
        languages::NAME,
        #[cfg(feature = "calls")]
        mcp::NAME,
        #[cfg(feature = "calls")]
        noisy_neighbour::NAME,
        search::NAME,
        throughput::NAME,
    ]
}

#[expect(clippy::print_stdout, reason = "the result of a benchmark")]
fn show(cli: &Cli, ratio: &Ratio) {
    if cli.json {
        println!("{}", ratio.to_json());
    } else {
        println!("{}", ratio.to_text());
    }
}
