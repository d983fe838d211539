//! `inspector`: cost of an open page to the calls of a host that makes 10,000 per second.
//!
//! A client receives the live updates of the list of calls. Rounds with and without it alternate,
//! over one log.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use cofferdam_inspector::{Inspector, InspectorOptions};
use cofferdam_record::{PayloadMode, RecordOptions, Recorder};
use cofferdam_tests::Host;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::call_floor::{self, GUEST};
use crate::effort::Effort;
use crate::measure::{Goal, Measure};
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "inspector";
const ROUNDS: usize = 30;
/// Calls of one round: half a second.
const CALLS: u32 = 5000;
/// Calls that are made one after another, in each millisecond.
const BURST: u32 = 10;
const BURST_INTERVAL: Duration = Duration::from_millis(1);
/// Time until the thread that reads the log for the page has started.
const START_TIME: Duration = Duration::from_millis(300);
/// Maximum time until the first update.
const UPDATE_TIME_MAX: Duration = Duration::from_secs(5);

/// Measures on a thread of its own, with a runtime that has a thread for each core.
pub(crate) fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let measured = std::thread::spawn(move || {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(rows(effort))
    });
    measured.join().map_err(|_| anyhow!("the benchmark has panicked"))?
}

async fn rows(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let folder = tempfile::tempdir()?;
    let directory = folder.path().join("log");
    let mut host = call_floor::empty_host();
    host.load(GUEST).await;
    let options =
        RecordOptions { payloads: PayloadMode::Digests, ..RecordOptions::new(&directory) };
    host.set_sink(Arc::new(Recorder::open(options).context("the log cannot be opened")?));
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let (inspector, listener) = Inspector::listen(InspectorOptions::new(directory), any).await?;
    let address = listener.local_addr()?;
    let (serving, stop) = (inspector.clone(), CancellationToken::new());
    let stopped = stop.clone();
    let serving = tokio::spawn(async move { serving.serve(listener, stopped).await });
    let cookie = log_in(address, &inspector.login_address()?).await?;

    let ratio = Ratio::new(format!("{NAME}, a call at 10000 per second with an open page"));
    let ratio = ratio.with_goal(Goal::AtMost(1.03));
    let calls = effort.times(CALLS);
    let ours = async || {
        let page = Page::open(address, &cookie).await?;
        let time = paced(&host, calls).await?;
        page.close().await?;
        Ok(time)
    };
    let reference = async || {
        tokio::time::sleep(START_TIME).await;
        paced(&host, calls).await
    };
    let row = ratio.alternate(effort, ROUNDS, ours, reference).await?.into();
    stop.cancel();
    let _ = serving.await;
    Ok(vec![row])
}

/// Makes calls at a fixed rate. Returns the mean time of one, without the pauses.
async fn paced(host: &Host, calls: u32) -> anyhow::Result<Duration> {
    let mut ticks = interval(BURST_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut time, bursts) = (Duration::ZERO, calls.div_ceil(BURST));
    for _ in 0..bursts {
        ticks.tick().await;
        time += call_floor::time_ours(host, BURST).await? * BURST;
    }
    Ok(time / (bursts * BURST))
}

/// Client that receives the live updates of a page.
struct Page {
    reading: tokio::task::JoinHandle<anyhow::Result<()>>,
    updates: tokio::sync::watch::Receiver<bool>,
}

impl Page {
    async fn open(address: SocketAddr, cookie: &str) -> anyhow::Result<Self> {
        let request = format!(
            "GET /live HTTP/1.1\r\nhost: {address}\r\ncookie: {cookie}\r\n\
             sec-fetch-site: same-origin\r\n\r\n"
        );
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let (sender, updates) = tokio::sync::watch::channel(false);
        let reading = tokio::spawn(async move {
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let read = stream.read(&mut buffer).await?;
                ensure!(read > 0, "the page was closed");
                let part = buffer.get(..read).unwrap_or_default();
                if part.windows(12).any(|window| window == b"event: calls") {
                    sender.send_replace(true);
                }
            }
        });
        tokio::time::sleep(START_TIME).await;
        Ok(Self { reading, updates })
    }

    /// Closes the page, after an update has arrived.
    async fn close(mut self) -> anyhow::Result<()> {
        let updated = self.updates.wait_for(|has_arrived| *has_arrived);
        let updated = tokio::time::timeout(UPDATE_TIME_MAX, updated).await;
        ensure!(updated.is_ok_and(|updated| updated.is_ok()), "the page received no update");
        self.reading.abort();
        Ok(())
    }
}

/// Logs in as a browser does. Returns the cookie.
async fn log_in(address: SocketAddr, login: &str) -> anyhow::Result<String> {
    let (_, key) = login.split_once("#k=").context("the address has no key")?;
    let body = serde_json::json!({ "key": key }).to_string();
    let request = format!(
        "POST /session HTTP/1.1\r\nhost: {address}\r\norigin: http://{address}\r\n\
         sec-fetch-site: same-origin\r\ncontent-type: application/json\r\n\
         x-cofferdam: login\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await?;
    let (_, cookie) = reply.split_once("set-cookie: ").context("the login was refused")?;
    let (cookie, _) = cookie.split_once(';').context("the cookie has no attributes")?;
    Ok(cookie.to_owned())
}
