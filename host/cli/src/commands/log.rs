//! `cofferdam log`: the calls that were recorded, their statistics, and the evidence about them.

mod case;
mod collect;
mod entry;
mod events;
mod evidence;

use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam::config::ConfigFile;
use cofferdam::record::{
    CallEntry, CallFilter, Log, LogDamage, LogItem, OtlpExporter, OtlpOptions, PruneReport,
    TraceRequests, UtcTime,
};
use cofferdam::records;
use serde_json::json;

use crate::args::log::{
    ExportFormat, LogArgs, LogCommand, LogDirectoryArgs, LogExportArgs, LogFilterArgs, LogListArgs,
    LogPruneArgs, LogStatsArgs, LogTailArgs, LoggedOutcome,
};
use crate::exit::{Exit, UsageError};
use crate::{commands, print};

/// Message if there is no log yet.
const NOTHING_RECORDED: &str = "nothing is recorded yet; `serve`, `chat` and `workflow run` record \
                                their calls, and `call --record` records one";
/// Time between two looks for new calls.
const TAIL_INTERVAL: Duration = Duration::from_millis(200);
/// Name of the service in exported spans.
const SERVICE: &str = "cofferdam";

pub(crate) async fn run(args: &LogArgs) -> anyhow::Result<Exit> {
    match &args.command {
        None => list(&args.list),
        Some(LogCommand::Show(args)) => entry::show(args),
        Some(LogCommand::Tail(args)) => tail(args).await,
        Some(LogCommand::Stats(args)) => stats(args),
        Some(LogCommand::Export(args)) => export(args).await,
        Some(LogCommand::Prune(args)) => prune(args),
        Some(LogCommand::Collect(args)) => collect::run(args).await,
        Some(LogCommand::Verify(args)) => evidence::verify(args),
        Some(LogCommand::Checkpoint(args)) => evidence::checkpoint(args),
        Some(LogCommand::Prove(args)) => evidence::prove(args),
        Some(LogCommand::ToCase(args)) => case::add(args),
        Some(LogCommand::Events(args)) => events::list(args),
        Some(LogCommand::Dir(args)) => {
            print::result(&directory(args)?.0.display().to_string())?;
            Ok(Exit::Ok)
        }
    }
}

/// Returns the directory of the log, and the configuration that was named.
pub(super) fn directory(args: &LogDirectoryArgs) -> anyhow::Result<(PathBuf, Option<ConfigFile>)> {
    let config = args.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
    let directory = match &args.directory {
        Some(directory) => directory.clone(),
        None => records::directory_ambient(config.as_ref())?,
    };
    Ok((directory, config))
}

/// Opens the log. Returns `None` if nothing was ever recorded.
pub(super) fn open(args: &LogDirectoryArgs) -> anyhow::Result<Option<Log>> {
    open_in(&directory(args)?.0, args)
}

/// Opens the log for a command that needs a call of it.
pub(super) fn open_with_calls(args: &LogDirectoryArgs) -> anyhow::Result<Log> {
    let log = existing(&directory(args)?.0, args)?;
    Ok(log.ok_or_else(|| UsageError(NOTHING_RECORDED.to_owned()))?)
}

fn open_in(directory: &Path, args: &LogDirectoryArgs) -> anyhow::Result<Option<Log>> {
    let log = existing(directory, args)?;
    if log.is_none() {
        print::note(NOTHING_RECORDED);
    }
    Ok(log)
}

/// Opens the log. Returns `None` if it does not exist and was not named.
fn existing(directory: &Path, args: &LogDirectoryArgs) -> anyhow::Result<Option<Log>> {
    if args.directory.is_none() && !directory.exists() {
        return Ok(None);
    }
    Ok(Some(Log::open(directory).map_err(|error| UsageError(error.to_string()))?))
}

pub(super) fn filter(args: &LogFilterArgs, limit: Option<usize>) -> anyhow::Result<CallFilter> {
    let time = |typed: &Option<String>| typed.as_deref().map(time).transpose();
    Ok(CallFilter {
        tool: args.tool.clone(),
        plugin: args.plugin.clone(),
        session: args.session.clone(),
        outcome: args.outcome.map(|outcome| outcome.word().to_owned()),
        since: time(&args.since)?,
        until: time(&args.until)?,
        refused: args.refused.clone(),
        changed: args.changed.clone(),
        slower_than: args.slow,
        text: args.grep.clone(),
        limit,
        ..CallFilter::default()
    })
}

impl LoggedOutcome {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failure => "failure",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
            Self::Refused => cofferdam::record::REFUSED,
            Self::Lost => cofferdam::record::LOST,
            Self::Running => cofferdam::record::RUNNING,
        }
    }
}

/// Parses an age, a date, or a date with a time.
fn time(typed: &str) -> anyhow::Result<UtcTime> {
    UtcTime::parse_age_or_date(typed).map_err(|error| UsageError(error.to_string()).into())
}

fn list(args: &LogListArgs) -> anyhow::Result<Exit> {
    // One more shows whether there are more.
    let filter = filter(&args.filter, Some(args.limit.saturating_add(1)))?;
    let Some(log) = open(&args.log)? else { return Ok(Exit::Ok) };
    let mut found = log.query(&filter)?;
    let is_all = found.calls.len() <= args.limit;
    found.calls.truncate(args.limit);
    print_list(&found.calls, args)?;
    for segment in &found.damage.torn {
        print::note(&format!("note: {segment} ends in the middle of a line; its host was killed"));
    }
    warn_of_losses(&found.damage);
    if found.calls.is_empty() && is_all {
        print::note("no recorded call matches");
    }
    if !is_all {
        print::aside(&format!("the newest {}; -n shows more", args.limit));
    }
    Ok(Exit::Ok)
}

fn print_list(calls: &[CallEntry], args: &LogListArgs) -> anyhow::Result<()> {
    let lines = calls.iter().map(|call| line(call, args.json));
    if args.json || calls.is_empty() {
        return lines.into_iter().try_for_each(|line| print::result(&line?));
    }
    print::paged(&lines.collect::<anyhow::Result<Vec<_>>>()?.join("\n"), &args.pager)
}

/// Returns one call as a line: time, id, outcome, duration, tool and what stands out.
fn line(call: &CallEntry, is_json: bool) -> anyhow::Result<String> {
    if is_json {
        return Ok(serde_json::to_string(call)?);
    }
    let time = call.at.to_string();
    let time = time.get(..19).unwrap_or(&time).replace('T', " ");
    let owner = call.plugin.as_ref().or(call.source.as_ref());
    let owner = owner.map(|owner| format!("  [{owner}]")).unwrap_or_default();
    let error = call.error.as_ref().map(|error| format!("  {error}")).unwrap_or_default();
    let refused: String =
        call.refused.iter().map(|refusal| format!("  refused {}", refusal.capability)).collect();
    let files = call.files.len();
    let files = if files == 0 {
        String::new()
    } else {
        format!("  {} changed", print::counted(files, "file"))
    };
    Ok(format!(
        "{time}  {:<14} {:<9} {:>8}  {}{owner}{error}{refused}{files}",
        call.id,
        call.outcome,
        print::time(call.duration()),
        call.tool,
    ))
}

async fn tail(args: &LogTailArgs) -> anyhow::Result<Exit> {
    let (directory, _) = directory(&args.log)?;
    // Nothing may have been recorded yet, unless the directory was named.
    let mut followed = None;
    let stop = commands::cancelled_by_ctrl_c();
    while !stop.is_cancelled() {
        if followed.is_none() {
            let log = existing(&directory, &args.log)?;
            followed = log.map(|log| log.follow()).transpose()?;
        }
        let calls = followed.as_mut().map(|log| log.poll()).transpose()?.unwrap_or_default();
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        for call in calls.iter().filter(|call| call.outcome != cofferdam::record::RUNNING) {
            if is(&args.tool, Some(&call.tool)) && is(&args.plugin, call.plugin.as_deref()) {
                print::result(&line(call, args.json)?)?;
            }
        }
        if print::is_closed() {
            return Ok(Exit::Ok);
        }
        stop.run_until_cancelled(tokio::time::sleep(TAIL_INTERVAL)).await;
    }
    Ok(Exit::Interrupted)
}

fn stats(args: &LogStatsArgs) -> anyhow::Result<Exit> {
    let filter = filter(&args.filter, None)?;
    let log = open(&args.log)?;
    if log.is_none() && !args.json {
        return Ok(Exit::Ok);
    }
    let (stats, damage) = log.map(|log| log.stats(&filter)).transpose()?.unwrap_or_default();
    if args.json {
        print::result(&serde_json::to_string(&stats)?)?;
        warn_of_losses(&damage);
        return Ok(Exit::Ok);
    }
    let time = |micros| print::time(Duration::from_micros(micros));
    let width = stats.keys().map(|tool| tool.chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!(
        "{:width$}    {:>8}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}",
        "tool", "calls", "errors", "refused", "p50", "p99", "longest"
    );
    for (tool, stats) in &stats {
        text.push_str(&format!(
            "\n  {:width$}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}",
            tool,
            stats.calls,
            stats.errors,
            stats.refused,
            time(stats.p50_us),
            time(stats.p99_us),
            time(stats.longest_us),
        ));
    }
    print::paged_report(&text, &args.pager)?;
    warn_of_losses(&damage);
    Ok(Exit::Ok)
}

async fn export(args: &LogExportArgs) -> anyhow::Result<Exit> {
    let filter = filter(&args.filter, None)?;
    let Some(log) = open(&args.log)? else { return Ok(Exit::Ok) };
    if let Some(url) = &args.otlp {
        return send(&log, &filter, url, args).await;
    }
    let mut stream = log.stream(&filter)?;
    match args.format {
        ExportFormat::Jsonl => {
            for item in &mut stream {
                if let LogItem::Call(call) = item {
                    print::result(&line(&call, true)?)?;
                }
            }
            warn_of_losses(stream.damage());
        }
        ExportFormat::Otlp => {
            let mut requests = TraceRequests::new(stream, SERVICE);
            for request in &mut requests {
                print::result(&request.body)?;
            }
            warn_of_losses(requests.damage());
        }
    }
    Ok(Exit::Ok)
}

/// Warns of calls that a search may have missed.
pub(super) fn warn_of_losses(damage: &LogDamage) {
    for loss in damage.losses() {
        print::note(&format!("warning: {loss}"));
    }
}

/// Sends spans of calls to the collector at `url`, or to that of the configuration.
async fn send(
    log: &Log,
    filter: &CallFilter,
    url: &str,
    args: &LogExportArgs,
) -> anyhow::Result<Exit> {
    let exporter = if url.is_empty() {
        let config = args.log.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
        config.as_ref().map(records::exporter).transpose()?.flatten().ok_or_else(|| {
            UsageError("expected --otlp URL, or a configuration with [records.otlp]".to_owned())
        })?
    } else {
        let exporter = OtlpExporter::new(OtlpOptions::new(url));
        exporter.map_err(|error| UsageError(error.to_string()))?
    };
    let report = exporter.export(log, filter).await?;
    let spans = usize::try_from(report.spans).unwrap_or(usize::MAX);
    print::note(&format!("{} sent", print::counted(spans, "span")));
    warn_of_losses(&report.damage);
    if report.rejected > 0 {
        let rejected = report.rejected;
        let message = report.message.map(|message| format!(": {message}")).unwrap_or_default();
        print::note(&format!("the collector rejected {rejected} of them{message}"));
        return Ok(Exit::Plugin);
    }
    Ok(Exit::Ok)
}

fn prune(args: &LogPruneArgs) -> anyhow::Result<Exit> {
    let (directory, config) = directory(&args.log)?;
    let (bytes_max, age_max) = records::limits(config.as_ref())?;
    let bytes_max = args.max_size.map_or(bytes_max, |mebibytes| mebibytes << 20);
    let age_max = args.max_age.map_or(age_max, |days| Duration::from_secs(days * 24 * 60 * 60));
    let log = open_in(&directory, &args.log)?;
    if log.is_none() && !args.json {
        return Ok(Exit::Ok);
    }
    let pruned = log.map(|log| log.prune(bytes_max, age_max)).transpose()?.unwrap_or_default();
    let PruneReport { segments, blobs, bytes_freed, bytes_left, .. } = pruned;
    if args.json {
        let report = json!({
            "segments": segments,
            "payloads": blobs,
            "bytes_freed": bytes_freed,
            "bytes_left": bytes_left,
        });
        print::result(&report.to_string())?;
    } else {
        let count = |count| usize::try_from(count).unwrap_or(usize::MAX);
        print::note(&format!(
            "removed {} and {} ({}); {} left",
            print::counted(count(segments), "segment"),
            print::counted(count(blobs), "payload"),
            print::bytes(bytes_freed),
            print::bytes(bytes_left)
        ));
    }
    Ok(Exit::Ok)
}
