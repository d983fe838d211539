//! `cofferdam log collect`: copies the call logs of workers.

use cofferdam::cluster::{CollectionReport, Collector, CollectorOptions};
use cofferdam::records;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::log::LogCollectArgs;
use crate::exit::{Exit, UsageError};
use crate::signals::stop_on_signals;
use crate::{host, print};

pub(super) async fn run(args: &LogCollectArgs) -> anyhow::Result<Exit> {
    if args.log.directory.is_none() {
        let message = "expected --directory DIR, which gets the copies; it is not the log of this \
                       machine, whose processes write to it";
        return Err(UsageError(message.to_owned()).into());
    }
    let (directory, config) = super::directory(&args.log)?;
    let (bytes_max, age_max) = records::limits(config.as_ref())?;
    let cluster = args.access.options(&args.cluster);
    let options = CollectorOptions { cluster, directory, bytes_max, age_max };
    let collector = Collector::open(options).await?;
    let stop = CancellationToken::new();
    stop_on_signals(stop.clone())?;
    if !args.once {
        collector.run(stop, &host::operator()).await;
        return Ok(Exit::Ok);
    }
    match stop.run_until_cancelled(collector.run_once()).await {
        None => Ok(Exit::Interrupted),
        Some(report) => show(&report?, args.json),
    }
}

fn show(report: &CollectionReport, is_json: bool) -> anyhow::Result<Exit> {
    if is_json {
        print::result(&json!(report).to_string())?;
    } else {
        let logs = print::counted(report.logs, "log");
        print::note(&format!("{} of {logs} copied", print::bytes(report.bytes)));
        report.problems.iter().for_each(|problem| print::note(&format!("warning: {problem}")));
    }
    Ok(if report.problems.is_empty() { Exit::Ok } else { Exit::ToolFailure })
}
