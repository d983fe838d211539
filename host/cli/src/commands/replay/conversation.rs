//! `cofferdam replay --session`: runs a recorded conversation again.

use cofferdam::record::Log;
use cofferdam::replay::{
    ConversationDifference, ConversationReport, RecordedConversation, ReplayPlugins,
};
use serde_json::json;

use super::super::log;
use crate::args::ReplayArgs;
use crate::exit::{Exit, UsageError};
use crate::print;

/// Returns the conversation that the flags select. `None` if they select calls: without a session,
/// with further conditions, or if the log has no replies of a model in the session.
pub(super) fn selected(
    args: &ReplayArgs,
    recorded_in: &Log,
) -> anyhow::Result<Option<RecordedConversation>> {
    let filter = &args.filter;
    let Some(session) = filter.session.as_deref() else { return Ok(None) };
    if filter.selects_calls() {
        return Ok(None);
    }
    let Some(recorded) = RecordedConversation::read(recorded_in, session)? else { return Ok(None) };
    if args.bisect.is_some() {
        let message = "--bisect needs the id of a call, or --recording".to_owned();
        return Err(UsageError(message).into());
    }
    if let Some(plugin) = &filter.plugin
        && recorded_in.query(&log::filter(filter, Some(1))?)?.calls.is_empty()
    {
        let message = format!("no recorded call of the session `{session}` is of `{plugin}`");
        return Err(UsageError(message).into());
    }
    if recorded.replies() > 0 {
        return Ok(Some(recorded));
    }
    let shown = replies(recorded.replies_missing());
    print::note(&format!(
        "note: the log has {shown} of the model in the session `{session}` without their text, \
         so only its calls run again; record conversations with --replayable, or with \
         `replay = \"all\"` in [records]"
    ));
    Ok(None)
}

/// Runs a conversation again and shows what differs.
pub(super) async fn run(
    args: &ReplayArgs,
    log: &Log,
    recorded: &RecordedConversation,
    plugins: ReplayPlugins,
) -> anyhow::Result<Exit> {
    let report = recorded.replay(log, plugins, args.filter.plugin.as_deref()).await?;
    if args.json {
        let is_identical = report.is_identical();
        let line = json!({ "is_identical": is_identical, "conversation": report });
        print::result(&line.to_string())?;
    } else {
        print::result(&text(&report))?;
        notes(&report);
    }
    Ok(match &report {
        report if !report.is_complete() => Exit::Plugin,
        report if !report.is_identical() => Exit::ToolFailure,
        _ => Exit::Ok,
    })
}

fn text(report: &ConversationReport) -> String {
    let verdict = match report {
        report if !report.differences.is_empty() => "differs",
        report if !report.is_complete() => "incomplete",
        _ => "identical",
    };
    let (turns, calls) =
        (print::counted(report.turns, "turn"), print::counted(report.calls, "call"));
    let shown = replies(report.replies);
    let mut text =
        format!("{}  {verdict} ({turns}, {shown} of the model, {calls})", report.session);
    let mut last = None;
    for difference in &report.differences {
        let ConversationDifference { turn, call, tool, id, difference, .. } = difference;
        if last != Some((turn, call)) {
            let call = call.map(|call| format!(", call {call}")).unwrap_or_default();
            let names = [tool, id].into_iter().flatten().map(|name| format!("  {name}"));
            text.push_str(&format!("\n  turn {turn}{call}{}", names.collect::<String>()));
        }
        last = Some((turn, call));
        text.push_str(&format!("\n    {difference}"));
    }
    text
}

/// Notes what restricts the meaning of a replay.
fn notes(report: &ConversationReport) {
    let from_log = report.calls_from_log;
    if from_log > 0 {
        let results = print::counted(from_log, "result");
        print::note(&format!("note: {results} came from the log, without running the tool"));
    }
    if report.replies_missing > 0 {
        let shown = replies(report.replies_missing);
        print::note(&format!("note: the log has {shown} of the session without their text"));
    }
    if report.calls_in_other_components > 0 {
        print::note("note: the component of some calls is not the recorded one");
    }
    for loss in &report.losses {
        print::note(&format!("warning: {loss}"));
    }
    for (id, reason) in &report.failed {
        print::note(&format!("note: the call {id} could not run again: {reason}"));
    }
    for gap in &report.gaps {
        print::note(&format!("note: the replay is approximate: {gap}"));
    }
}

fn replies(count: usize) -> String {
    if count == 1 { "1 reply".to_owned() } else { format!("{count} replies") }
}
