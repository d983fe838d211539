//! `cofferdam replay`: runs recorded calls again and compares them with their recordings.

mod conversation;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cofferdam::config::ConfigFile;
use cofferdam::record::{CallEntry, CallList, Log};
use cofferdam::replay::{self, ReplayPlugins, ReplayReport, ReplaySummary};
use cofferdam_engine::{Engine, ReplayError};
use cofferdam_tool::PluginName;
use cofferdam_tool::recording::CallRecording;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::log;
use crate::args::{Global, ReplayArgs};
use crate::exit::{Exit, UsageError};
use crate::{commands, host, print, progress};

/// Maximum number of recorded calls that `approve` replays.
const APPROVAL_CALLS_MAX: usize = 200;
/// Number of ids that a summary lists for one difference.
const IDS_MAX: usize = 5;

pub(crate) async fn run(global: &Global, args: &ReplayArgs) -> anyhow::Result<Exit> {
    let (_, config) = log::directory(&args.log)?;
    if let Some(file) = &args.recording {
        let recording = Arc::new(replay::read_ambient(file)?);
        let plugins = plugins(global, args, config, None)?;
        return one(args, plugins, &file.display().to_string(), recording).await;
    }
    let log = log::open_with_calls(&args.log)?;
    let plugins = plugins(global, args, config, Some(&log))?;
    if let Some(id) = &args.id {
        let call = log.find(id).map_err(|error| UsageError(error.to_string()))?;
        let recording = log.recording(&call)?.ok_or_else(|| not_recorded(&call))?;
        return one(args, plugins, &call.id, Arc::new(recording)).await;
    }
    match conversation::selected(args, &log)? {
        Some(recorded) => conversation::run(args, &log, &recorded, plugins).await,
        None => many(args, plugins, &log).await,
    }
}

/// Returns the plugins that calls run in, in the order in which they are looked for.
fn plugins(
    global: &Global,
    args: &ReplayArgs,
    config: Option<ConfigFile>,
    log: Option<&Log>,
) -> anyhow::Result<ReplayPlugins> {
    let plugins = ReplayPlugins::new(host::engine(global)?, host::operator());
    Ok(plugins.component(args.with.clone()).config(config).log(log.cloned()))
}

/// Returns the error for a call without a recording.
pub(crate) fn not_recorded(call: &CallEntry) -> UsageError {
    UsageError(format!(
        "the call {} was not recorded so that it can run again, or the recording was pruned; \
         record calls with --replayable, or with `replay = \"all\"` in [records]",
        call.id
    ))
}

/// Replays one call and shows all differences.
async fn one(
    args: &ReplayArgs,
    mut plugins: ReplayPlugins,
    id: &str,
    recording: Arc<CallRecording>,
) -> anyhow::Result<Exit> {
    if let Some(directory) = &args.bisect {
        return bisect(plugins.engine(), directory, &recording, args.json).await;
    }
    let plugin = plugins.of(&recording).await?;
    let report = replay::run(&plugin, &recording).await;
    show(args.json, id, &recording, &report)?;
    if let (Ok(report), false) = (&report, args.json) {
        notes(&recording, report);
    }
    Ok(exit(&report))
}

/// Replays the calls that the filters select and shows a summary.
async fn many(args: &ReplayArgs, mut plugins: ReplayPlugins, log: &Log) -> anyhow::Result<Exit> {
    if args.bisect.is_some() {
        let message = "--bisect needs the id of a call, or --recording".to_owned();
        return Err(UsageError(message).into());
    }
    let filter = log::filter(&args.filter, None)?;
    let CallList { mut calls, damage, .. } = log.query(&filter)?;
    calls.retain(|call| call.recording.is_some());
    log::warn_of_losses(&damage);
    let is_complete = damage.losses().is_empty();
    if calls.is_empty() && is_complete {
        let message = "no recorded call that can run again matches; record calls with \
                       --replayable, or with `replay = \"all\"` in [records]";
        return Err(UsageError(message.to_owned()).into());
    }
    let shown = |call: &CallEntry,
                 recording: &CallRecording,
                 report: &Result<ReplayReport, ReplayError>| {
        if args.json || !report.as_ref().is_ok_and(ReplayReport::is_identical) {
            show(args.json, &call.id, recording, report)?;
        }
        Ok(())
    };
    let stop = commands::cancelled_by_ctrl_c();
    let (summary, exit) =
        replay_all(log, &calls, args.limit.get(), &mut plugins, &stop, shown).await?;
    if args.json {
        print::result(&json!({ "summary": summary }).to_string())?;
    } else {
        print::result(&text(&summary))?;
    }
    // Calls that were to run again may be missing.
    let is_unknown = !is_complete && matches!(exit, Exit::Ok | Exit::ToolFailure);
    Ok(if is_unknown { Exit::Plugin } else { exit })
}

/// Replays up to `limit` calls, until `stop` is canceled.
async fn replay_all(
    log: &Log,
    calls: &[CallEntry],
    limit: usize,
    plugins: &mut ReplayPlugins,
    stop: &CancellationToken,
    mut show: impl FnMut(
        &CallEntry,
        &CallRecording,
        &Result<ReplayReport, ReplayError>,
    ) -> anyhow::Result<()>,
) -> anyhow::Result<(ReplaySummary, Exit)> {
    let mut summary = ReplaySummary::default();
    let total = calls.len().min(limit);
    for (done, call) in calls.iter().take(limit).enumerate() {
        if stop.is_cancelled() {
            progress::clear();
            return Ok((summary, Exit::Interrupted));
        }
        let share = f64::from(u32::try_from(done).unwrap_or(u32::MAX))
            / f64::from(u32::try_from(total).unwrap_or(u32::MAX).max(1));
        progress::show("replaying recorded calls", Some(share));
        let Some(recording) = log.recording(call)? else {
            summary.failed.push((call.id.clone(), "the recording was pruned".to_owned()));
            continue;
        };
        let recording = Arc::new(recording);
        let plugin = match plugins.of(&recording).await {
            Ok(plugin) => plugin,
            Err(error) => {
                summary.failed.push((call.id.clone(), format!("{error:#}")));
                continue;
            }
        };
        let report = replay::run(&plugin, &recording).await;
        summary.add(&call.id, &report);
        progress::clear();
        show(call, &recording, &report)?;
    }
    progress::clear();
    let exit = match &summary {
        summary if !summary.failed.is_empty() => Exit::Plugin,
        summary if summary.different > 0 => Exit::ToolFailure,
        _ => Exit::Ok,
    };
    Ok((summary, exit))
}

/// Returns a summary of what a changed plugin does differently with recorded calls of the plugin
/// that it replaces, with the new component. Returns `None` if there are no such calls.
pub(super) async fn of_changed_plugin(
    global: &Global,
    config: &ConfigFile,
    name: &str,
    component: &Path,
) -> anyhow::Result<Option<String>> {
    let directory = cofferdam::records::directory_ambient(Some(config))?;
    if !directory.exists() {
        return Ok(None);
    }
    let log = Log::open(&directory)?;
    let filter = cofferdam::record::CallFilter {
        plugin: Some(name.to_owned()),
        ..cofferdam::record::CallFilter::default()
    };
    let CallList { mut calls, damage, .. } = log.query(&filter)?;
    calls.retain(is_for_approval);
    let losses = damage.losses();
    if calls.is_empty() && losses.is_empty() {
        return Ok(None);
    }
    let plugins = ReplayPlugins::new(host::engine(global)?, host::operator());
    let mut plugins = plugins.component(component.to_owned());
    let shown = |_: &CallEntry, _: &CallRecording, _: &Result<ReplayReport, ReplayError>| Ok(());
    // Ctrl-C ends the command, as at its question.
    let stop = CancellationToken::new();
    let (summary, _) =
        replay_all(&log, &calls, APPROVAL_CALLS_MAX, &mut plugins, &stop, shown).await?;
    let mut text = text(&summary);
    for loss in losses {
        text.push_str(&format!("\nwarning: {loss}"));
    }
    Ok(Some(text))
}

/// Returns whether a call says something about a new version. Calls that ran into a limit of time
/// say little, and take as long again.
fn is_for_approval(call: &CallEntry) -> bool {
    let is_slow = matches!(call.error.as_deref(), Some("Timeout" | "CpuLimit"));
    call.recording.is_some() && call.outcome != "cancelled" && !is_slow
}

/// Replays a call in the components of a directory and prints the first one whose replay differs.
async fn bisect(
    engine: &Engine,
    directory: &Path,
    recording: &Arc<CallRecording>,
    is_json: bool,
) -> anyhow::Result<Exit> {
    let components = components(directory)?;
    let name = PluginName::new(recording.plugin.name.as_str())?;
    // The first half ends as recorded, the second half does not: as in `git bisect`.
    let (mut first, mut after, mut runs) = (0, components.len(), 0);
    while first < after {
        let middle = first.midpoint(after);
        let Some(component) = components.get(middle) else { break };
        let plugin = host::load_without_grants(engine, name.clone(), component.clone()).await?;
        let is_identical =
            replay::run(&plugin, recording).await.is_ok_and(|report| report.is_identical());
        runs += 1;
        let verdict = if is_identical { "identical" } else { "differs" };
        print::aside(&format!("{}: {verdict}", component.display()));
        if is_identical {
            first = middle + 1;
        } else {
            after = middle;
        }
    }
    let found = components.get(first);
    if is_json {
        print::result(&json!({"differs": found, "runs": runs}).to_string())?;
    } else if let Some(component) = found {
        print::result(&component.display().to_string())?;
    } else {
        let components = print::counted(components.len(), "component");
        print::note(&format!(
            "the replay is identical in the newest of {components}; {runs} of them ran"
        ));
    }
    Ok(if found.is_some() { Exit::ToolFailure } else { Exit::Ok })
}

/// Returns the components in a directory, the one that was changed first before the others.
fn components(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let shown = directory.display();
    let entries = std::fs::read_dir(directory)
        .map_err(|error| UsageError(format!("{shown} cannot be read: {error}")))?;
    let mut components = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            components.push((std::fs::metadata(&path)?.modified()?, path));
        }
    }
    if components.is_empty() {
        return Err(UsageError(format!("{shown} holds no component (*.wasm)")).into());
    }
    components.sort();
    Ok(components.into_iter().map(|(_, path)| path).collect())
}

fn exit(report: &Result<ReplayReport, ReplayError>) -> Exit {
    match report {
        Ok(report) if report.is_identical() => Exit::Ok,
        Ok(_) => Exit::ToolFailure,
        Err(_) => Exit::Plugin,
    }
}

/// Shows the result of one replay.
fn show(
    is_json: bool,
    id: &str,
    recording: &CallRecording,
    report: &Result<ReplayReport, ReplayError>,
) -> anyhow::Result<()> {
    let tool = &recording.tool;
    if is_json {
        let report = match report {
            Ok(report) => {
                json!({"id": id, "tool": tool, "is_identical": report.is_identical(), "report": report})
            }
            Err(error) => json!({"id": id, "tool": tool, "error": error.to_string()}),
        };
        return print::result(&report.to_string());
    }
    match report {
        Ok(report) if report.is_identical() => {
            let time = |micros| print::time(Duration::from_micros(micros));
            let (before, after) = (time(report.recorded_cpu_us), time(report.cpu_us));
            print::result(&format!("{id}  {tool}  identical ({before} of CPU time, now {after})"))
        }
        Ok(report) => {
            let lines = report.differences.iter().map(|one| format!("\n  {one}"));
            print::result(&format!("{id}  {tool}  differs{}", lines.collect::<String>()))
        }
        Err(error) => print::result(&format!("{id}  {tool}  cannot be replayed: {error}")),
    }
}

/// Notes what restricts the meaning of a replay.
fn notes(recording: &CallRecording, report: &ReplayReport) {
    if !report.is_same_component {
        let digest = &recording.plugin.digest;
        print::note(&format!("note: the component is not the recorded one, {digest}"));
    }
    for gap in &report.gaps {
        print::note(&format!("note: the replay is approximate: {gap}"));
    }
}

/// Returns a summary: numbers, and the calls that differ, by their first difference.
fn text(summary: &ReplaySummary) -> String {
    let ReplaySummary { identical, different, groups, failed, .. } = summary;
    let mut text = format!(
        "{} replayed: {identical} identical, {different} different",
        print::counted(summary.total(), "recorded call")
    );
    let mut groups: Vec<_> = groups.iter().collect();
    groups.sort_by_key(|(_, ids)| std::cmp::Reverse(ids.len()));
    for (difference, ids) in groups {
        let more = ids.len().saturating_sub(IDS_MAX);
        let shown: Vec<_> = ids.iter().take(IDS_MAX).map(String::as_str).collect();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        text.push_str(&format!("\n  {:>4}  {difference}  ({}{more})", ids.len(), shown.join(", ")));
    }
    if let Some((id, reason)) = failed.first() {
        let count = print::counted(failed.len(), "call");
        text.push_str(&format!("\n{count} could not be replayed, such as {id}: {reason}"));
    }
    text
}
