//! `cofferdam log events`: what was recorded besides calls.

use cofferdam::record::{EventList, LogEvent, TimedEvent};
use serde_json::json;

use crate::args::log::{EventKind, LogEventsArgs};
use crate::exit::Exit;
use crate::print;

/// Lists events, the oldest first.
pub(super) fn list(args: &LogEventsArgs) -> anyhow::Result<Exit> {
    let since = args.since.as_deref().map(super::time).transpose()?;
    let Some(log) = super::open(&args.log)? else { return Ok(Exit::Ok) };
    let EventList { mut events, damage, .. } = log.events(since)?;
    events.sort_by_key(|event| event.at);
    let mut lines = Vec::new();
    for event in &events {
        let Some(kind) = kind(&event.event) else { continue };
        if args.kind.is_some_and(|wanted| wanted != kind) {
            continue;
        }
        lines.push(if args.json {
            json!({"at": event.at.to_string(), "event": event.event}).to_string()
        } else {
            line(event, kind)
        });
    }
    let text = lines.join("\n");
    match (lines.is_empty(), args.json) {
        (true, _) => print::note("no recorded event matches"),
        (false, true) => print::result(&text)?,
        (false, false) => print::paged(&text, &args.pager)?,
    }
    super::warn_of_losses(&damage);
    Ok(Exit::Ok)
}

/// Returns the kind of an event, or `None` if this build does not know it.
fn kind(event: &LogEvent) -> Option<EventKind> {
    Some(match event {
        LogEvent::Approval { .. } => EventKind::Approval,
        LogEvent::Grant { .. } => EventKind::Grant,
        LogEvent::Plugin { .. } => EventKind::Plugin,
        LogEvent::Model { .. } => EventKind::Model,
        LogEvent::Agent { .. } => EventKind::Agent,
        LogEvent::Label { .. } => EventKind::Label,
        _ => return None,
    })
}

/// Returns an event as a line: time, kind and what happened.
fn line(event: &TimedEvent, kind: EventKind) -> String {
    let time = event.at.to_string();
    let time = time.get(..19).unwrap_or(&time).replace('T', " ");
    let kind = format!("{kind:?}").to_lowercase();
    format!("{time}  {kind:<9} {}", event.event.description(print::time))
}
