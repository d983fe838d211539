//! `http-get`: a call in which a plugin of each language sends one request to a server on this
//! machine, against the plugin in Rust.
//!
//! The tool is `http` of the conformance plugins. The server answers three bytes and keeps
//! connections open; every call opens its own. Plugins that are not built are skipped.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use cofferdam_tests::{Host, root};
use cofferdam_tool::permission::{HttpGrant, HttpRule};

use crate::effort::Effort;
use crate::languages::{LANGUAGES, calls_per_round};
use crate::measure::{Goal, Measure};
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "http-get";
const REFERENCE: &str = "rust";
const TOOL: &str = "http";
const ROUNDS: usize = 30;
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\nGET";

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let url = serve()?;
    let arguments = serde_json::json!({ "url": url }).to_string();
    let Some(rust) = host(REFERENCE, &url).await? else { return Ok(Vec::new()) };
    let mut ratios = Vec::new();
    for language in LANGUAGES.into_iter().filter(|language| *language != REFERENCE) {
        let Some(host) = host(language, &url).await? else { continue };
        let once = time(&host, &arguments, 3).await?;
        let calls = effort.times(calls_per_round(once));
        let ours = async || time(&host, &arguments, calls).await;
        let reference = async || time(&rust, &arguments, calls).await;
        let ratio = Ratio::new(format!("{NAME}-{language}")).with_goal(Goal::AtMost(2.0));
        ratios.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
    }
    Ok(ratios)
}

/// Loads the plugin of a language and lets it send requests to `url`. Returns nothing if the
/// plugin is not built.
async fn host(language: &str, url: &str) -> anyhow::Result<Option<Host>> {
    let guest = format!("conformance_{language}");
    if !root().join("target/plugins").join(format!("{guest}.wasm")).is_file() {
        return Ok(None);
    }
    let mut host = crate::call_floor::empty_host();
    host.grants.http = vec![HttpGrant::from(url.parse::<HttpRule>()?)];
    host.load(&guest).await;
    Ok(Some(host))
}

async fn time(host: &Host, arguments: &str, calls: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..calls {
        let completion = host.call(TOOL, arguments).await;
        anyhow::ensure!(completion.record.outcome == "ok", "a measured call failed");
    }
    Ok(started.elapsed() / calls)
}

/// Starts a server on a thread of its own and returns its URL.
fn serve() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/", listener.local_addr()?);
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(|| answer(connection));
        }
    });
    Ok(url)
}

/// Answers the requests of a connection, which have no bodies, until it ends.
fn answer(connection: TcpStream) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut writer = connection.try_clone()?;
    for line in BufReader::new(connection).split(b'\n') {
        // The line that ends the head.
        if line? == b"\r" {
            writer.write_all(ANSWER)?;
        }
    }
    Ok(())
}
