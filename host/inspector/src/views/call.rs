//! Everything about one call.

mod again;
mod course;
mod files;
mod replay;

use std::time::Duration;

use cofferdam_record::{CallEntry, CallFilter, Log, LogEvent, PayloadDigest, UtcTime};
use cofferdam_tool::recording::CallRecording;
use maud::{Markup, html};

use super::payload::{NamedPayload, PAYLOADS};
use super::{events, layout};
use crate::assets::REPLAY;
use crate::error::PageError;
use crate::fault::CallFault;
use crate::inspector::InspectorState;
use crate::query;
use crate::{format, text};

/// Maximum number of refusals, hosts and requests that are listed.
const LISTED_MAX: usize = 100;
/// Maximum time from the end of a call to the record of a decision about its result.
const DECISION_DELAY_MAX: Duration = Duration::from_secs(1);
/// Maximum time from an approval, with the time that the user took, to the start of its call.
const APPROVAL_AGE_MAX: Duration = Duration::from_secs(60 * 60);

/// A payload of a call: its kind, its digest, and its content if it is stored.
type StoredPayload<'c> = (NamedPayload, &'c PayloadDigest, Option<Vec<u8>>);

/// Returns the page.
pub(super) fn page(
    state: &InspectorState,
    log: &Log,
    call: &CallEntry,
    token: &str,
) -> Result<Markup, PageError> {
    let recording = log.recording(call).ok().flatten();
    let replay = match &recording {
        Some(recording) => replay::section(state, log, call, recording, token)?,
        None => html! {},
    };
    let mut payloads = Vec::new();
    for payload in PAYLOADS {
        if let Some(digest) = call.payload(payload.kind) {
            payloads.push((payload, digest, log.payload(call, payload.kind)?));
        }
    }
    let inner = inner_calls(log, call)?;
    let events = own_events(log, call)?;
    Ok(layout::page(
        &call.tool,
        "",
        &[&REPLAY],
        html! {
            h1 { (text::line(&call.tool)) " " span.id { (call.id) } }
            (verdict(call))
            (refusals(state, call))
            (facts(call, recording.as_ref()))
            (course::section(call, &inner))
            @for (payload, digest, bytes) in &payloads { (content(call, *payload, digest, bytes.as_deref())) }
            (again::section(state, call, recording.as_ref(), &payloads))
            (replay)
            (files::section(call))
            (requests(call, recording.as_ref()))
            @if !events.is_empty() {
                h2 { "Decisions" }
                ul { @for event in &events { li { (text::line(event)) } } }
            }
            h2 { "Commands" }
            ul { @for command in commands(state, call) { li { (layout::command(&command)) } } }
            details {
                summary { "Entry in the log" }
                (text::block(&serde_json::to_string_pretty(call).unwrap_or_default(), "Entry in the log"))
                p { a href={ "/call/" (call.id) "/entry" } { "Download" } }
            }
        },
    ))
}

/// Returns the commands that show and check the call, and run it again if it was recorded for that.
fn commands(state: &InspectorState, call: &CallEntry) -> Vec<String> {
    let recorded = call.recording.as_ref().map(|_| ["replay", "log to-case"]);
    let commands = ["log show", "log prove"].into_iter().chain(recorded.into_iter().flatten());
    let flags = &state.options.log_flags;
    commands.map(|command| format!("cofferdam {command} {}{flags}", call.id)).collect()
}

/// Returns the outcome, and the party that a failure is due to.
fn verdict(call: &CallEntry) -> Markup {
    let fault = CallFault::of(call);
    html! {
        p.verdict data-outcome=(call.outcome) {
            strong.outcome { (text::line(&call.outcome)) }
            @if let Some(error) = &call.error { " " code { (text::line(error)) } }
            " after " (format::time(call.us))
        }
        @if let Some(fault) = fault {
            p { "At fault: " strong { "the " (fault.party) } ", because " (fault.cause) ". " (fault.advice) }
        }
    }
}

/// Returns the capabilities that were refused, each with the command that grants it.
fn refusals(state: &InspectorState, call: &CallEntry) -> Markup {
    if call.refused.is_empty() {
        return html! {};
    }
    let plugin = call.plugin.as_deref();
    let advice = |capability: &str| (state.options.grant_advice)(plugin?, capability);
    html! {
        h2 { "Refused" }
        ul {
            @for refusal in call.refused.iter().take(LISTED_MAX) {
                li {
                    code { (text::line(&refusal.capability)) }
                    " " (format::counted(u64::from(refusal.times), "time"))
                    @if let Some(reason) = &refusal.reason { ": " (text::line(reason)) }
                    @if let Some(advice) = advice(&refusal.capability) { br; (granting(&advice)) }
                }
            }
        }
        (more(call.refused.len()))
    }
}

/// Returns advice about a grant, which can be copied if it is a command.
fn granting(advice: &str) -> Markup {
    html! {
        "To grant it: "
        @if advice.starts_with("cofferdam ") { (layout::command(advice)) }
        @else { (text::line(advice)) }
    }
}

/// Returns the single values of a call.
fn facts(call: &CallEntry, recording: Option<&CallRecording>) -> Markup {
    let limits = recording.map(|recording| &recording.plugin.limits);
    let cpu = (call.cpu_us > 0).then(|| {
        let of = limits.map(|limits| limits.cpu_ms_max);
        let of =
            of.map(|limit| format!(" of at most {}", format::time(limit.saturating_mul(1000))));
        format!("{}{}", format::time(call.cpu_us), of.unwrap_or_default())
    });
    let memory = (call.memory_peak_bytes > 0).then(|| {
        let of =
            limits.map(|limits| format!(" of at most {}", format::bytes(limits.memory_bytes_max)));
        format!("{}{}", format::bytes(call.memory_peak_bytes), of.unwrap_or_default())
    });
    let count = |number: u64| (number > 0).then(|| number.to_string());
    let values: [(&str, Option<String>); 15] = [
        ("Digest", call.digest.clone()),
        ("Source", call.source.clone()),
        ("Principal", call.principal.clone()),
        ("Client", call.client.clone()),
        ("Protocol", call.protocol.clone()),
        ("Request to the server", call.server_request.as_ref().map(ToString::to_string)),
        ("Trace", call.trace.as_ref().map(|ids| ids.trace.clone())),
        ("Id of the caller", Some(call.call.clone()).filter(|id| !id.is_empty())),
        ("Label of the result", call.label.clone()),
        ("CPU time", cpu),
        ("Memory", memory),
        ("Instructions", call.instructions.map(|number| number.to_string())),
        ("Retries", count(call.retries)),
        ("Questions", count(call.questions)),
        ("Dry run", call.is_dry_run.then(|| "yes".to_owned())),
    ];
    let linked = |title: &str, name: &str, path: &str, value: Option<&String>| {
        html! {
            @if let Some(value) = value {
                dt { (title) }
                dd { (layout::link(value, |value| query::address(path, [(name, value)]))) }
            }
        }
    };
    html! {
        dl {
            dt { "Began" } dd { (layout::time(call.at)) }
            (linked("Plugin", "plugin", "/", call.plugin.as_ref()))
            (linked("Session", "name", "/session", call.session.as_ref()))
            @for (title, value) in &values {
                @if let Some(value) = value { dt { (title) } dd { (text::line(value)) } }
            }
        }
    }
}

/// Returns the calls that a call made, in order.
fn inner_calls(log: &Log, call: &CallEntry) -> Result<Vec<CallEntry>, PageError> {
    if call.inner_calls == 0 || call.call.is_empty() {
        return Ok(Vec::new());
    }
    let filter = CallFilter {
        outer: Some(call.call.clone()),
        session: call.session.clone(),
        since: Some(call.at),
        until: Some(ended(call, Duration::ZERO)),
        limit: Some(LISTED_MAX),
        ..CallFilter::default()
    };
    let mut inner = log.query(&filter)?.calls;
    inner.reverse();
    Ok(inner)
}

/// Returns the time that is `delay` later than the end of a call.
fn ended(call: &CallEntry, delay: Duration) -> UtcTime {
    let delay = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
    UtcTime::from_micros(call.at.micros().saturating_add_unsigned(call.us.saturating_add(delay)))
}

/// Returns approvals and decisions of label policies about a call.
fn own_events(log: &Log, call: &CallEntry) -> Result<Vec<String>, PageError> {
    if call.call.is_empty() {
        return Ok(Vec::new());
    }
    let since = call.at.before(APPROVAL_AGE_MAX);
    let mut own = Vec::new();
    let until = ended(call, DECISION_DELAY_MAX);
    for event in log.events_between(Some(since), Some(until))?.events {
        let is_own = match &event.event {
            LogEvent::Approval { tool, call: id, .. } | LogEvent::Label { tool, call: id, .. } => {
                *tool == call.tool && *id == call.call
            }
            _ => false,
        };
        if is_own && own.len() < LISTED_MAX {
            own.push(format!(
                "{}: {}",
                events::kind(&event.event),
                events::description(&event.event)
            ));
        }
    }
    Ok(own)
}

/// Returns a payload, pretty-printed if it is JSON.
fn content(
    call: &CallEntry,
    payload: NamedPayload,
    digest: &PayloadDigest,
    bytes: Option<&[u8]>,
) -> Markup {
    let cut = if digest.is_cut { ", cut when it was recorded" } else { "" };
    html! {
        h2 { (payload.title) " " span.aside { (format::bytes(digest.bytes)) (cut) } }
        @match bytes {
            Some(bytes) => {
                (text::block(&readable(bytes), payload.title))
                p { a href={ "/call/" (call.id) "/" (payload.name) } { "Download" } }
            }
            None => p {
                "Not stored; its digest is " code { (text::line(&digest.hash)) } ". To store payloads: "
                code { "[records] payloads = \"local\"" }
            }
        }
    }
}

/// Returns text, with JSON of moderate size indented.
fn readable(bytes: &[u8]) -> String {
    if bytes.len() <= text::PAYLOAD_BYTES_MAX
        && let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes)
        && !value.is_string()
    {
        return serde_json::to_string_pretty(&value).unwrap_or_default();
    }
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the requests, or the contacted hosts if the requests were not recorded.
fn requests(call: &CallEntry, recording: Option<&CallRecording>) -> Markup {
    let requests = recording.map(|recording| recording.requests.as_slice()).unwrap_or_default();
    if call.hosts.is_empty() && requests.is_empty() {
        return html! {};
    }
    html! {
        h2 { "Network" }
        @if call.http_sent_bytes + call.http_received_bytes > 0 {
            p {
                (format::bytes(call.http_sent_bytes)) " sent, "
                (format::bytes(call.http_received_bytes)) " received"
            }
        }
        ul {
            @for host in call.hosts.iter().take(LISTED_MAX) {
                li {
                    code { (text::line(&host.host)) ":" (host.port) } " "
                    (format::counted(u64::from(host.requests), "request"))
                }
            }
        }
        @if !requests.is_empty() {
            (layout::table("Requests", &["Request", "Address", "Status"], html! {
                @for request in requests.iter().take(LISTED_MAX) {
                    tr {
                        td { (text::line(&request.method)) }
                        td { (text::line(&request.url)) }
                        td {
                            @match &request.response {
                                Some(response) if response.status > 0 => (response.status),
                                Some(response) => (text::line(response.error.as_deref().unwrap_or("failed"))),
                                None => "no answer",
                            }
                        }
                    }
                }
            }))
            (more(requests.len()))
        }
    }
}

/// Returns a note about the entries of a list that are not shown.
fn more(listed: usize) -> Markup {
    let more = listed.saturating_sub(LISTED_MAX);
    html! { @if more > 0 { p { (more) " more" } } }
}
