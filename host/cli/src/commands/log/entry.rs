//! `cofferdam log show`: everything about one call.

use std::fmt::Write as _;

use cofferdam::record::{CallEntry, Log, PayloadKind};
use cofferdam::tool::record::FileChangeKind;
use serde_json::{Value, json};

use crate::args::log::LogShowArgs;
use crate::exit::{Exit, UsageError};
use crate::print;

/// Payloads, with their names.
const PAYLOADS: [(PayloadKind, &str); 7] = [
    (PayloadKind::Arguments, "arguments"),
    (PayloadKind::Result, "result"),
    (PayloadKind::Detail, "detail"),
    (PayloadKind::Backtrace, "backtrace"),
    (PayloadKind::Stdout, "stdout"),
    (PayloadKind::Stderr, "stderr"),
    (PayloadKind::Diff, "diff"),
];

pub(super) fn show(args: &LogShowArgs) -> anyhow::Result<Exit> {
    let log = super::open_with_calls(&args.log)?;
    let call = log.find(&args.id).map_err(|error| UsageError(error.to_string()))?;
    if args.diff {
        return diff(&log, &call);
    }
    if args.recording {
        let recording =
            log.recording(&call)?.ok_or_else(|| crate::commands::not_recorded(&call))?;
        print::result(&serde_json::to_string(&recording)?)?;
        return Ok(Exit::Ok);
    }
    let mut payloads = Vec::new();
    for (kind, name) in PAYLOADS {
        if let Some(bytes) = log.payload(&call, kind)? {
            payloads.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    if args.json {
        let payloads: serde_json::Map<String, Value> =
            payloads.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
        print::result(&json!({"call": call, "payloads": payloads}).to_string())?;
    } else {
        print::paged_report(&text(&call, &payloads), &args.pager)?;
    }
    Ok(Exit::Ok)
}

/// Shows the changes of files.
fn diff(log: &Log, call: &CallEntry) -> anyhow::Result<Exit> {
    if call.files.is_empty() {
        print::note("the call changed no file");
        return Ok(Exit::Ok);
    }
    match log.payload(call, PayloadKind::Diff)? {
        Some(bytes) => print::difference(&String::from_utf8_lossy(&bytes)),
        None => {
            print::note("the content was not recorded; these files changed:");
            print::result(files(call).trim_end())?;
        }
    }
    Ok(Exit::Ok)
}

fn text(call: &CallEntry, payloads: &[(&str, String)]) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:<10} {value}");
        }
    };
    let micros = |micros: u64| print::time(std::time::Duration::from_micros(micros));
    let optional = |value: &Option<String>| value.clone().unwrap_or_default();
    row("at", call.at.to_string());
    row("outcome", call.outcome.clone());
    row("error", optional(&call.error));
    row("duration", micros(call.us));
    row("in guest", if call.run_us == 0 { String::new() } else { micros(call.run_us) });
    row("cpu", if call.cpu_us == 0 { String::new() } else { micros(call.cpu_us) });
    row(
        "memory",
        if call.memory_peak_bytes == 0 {
            String::new()
        } else {
            print::bytes(call.memory_peak_bytes)
        },
    );
    row("plugin", optional(&call.plugin));
    row("digest", optional(&call.digest));
    row("source", optional(&call.source));
    row("request", call.server_request.as_ref().map(ToString::to_string).unwrap_or_default());
    row("session", optional(&call.session));
    row("principal", optional(&call.principal));
    row("client", optional(&call.client));
    row("trace", call.trace.as_ref().map(|ids| ids.trace.clone()).unwrap_or_default());
    row("caller id", call.call.clone());
    row("outer call", optional(&call.outer));
    row("label", optional(&call.label));
    if let Some(recording) = &call.recording {
        let bytes = print::bytes(recording.bytes);
        row("recording", format!("{bytes}; `cofferdam replay {}` runs the call again", call.id));
    }
    row("dry run", if call.is_dry_run { "yes".to_owned() } else { String::new() });
    for refusal in &call.refused {
        row("refused", format!("{} ({} times)", refusal.capability, refusal.times));
    }
    for host in &call.hosts {
        row("contacted", format!("{}:{} ({} requests)", host.host, host.port, host.requests));
    }
    let mut text = format!("{}  {}\n{text}", call.id, call.tool);
    if !call.files.is_empty() {
        let _ = write!(text, "\nfiles\n{}", files(call));
    }
    for (kind, name) in PAYLOADS {
        let Some(digest) = call.payload(kind) else { continue };
        let stored = payloads.iter().find(|(stored, _)| *stored == name);
        let _ = writeln!(text, "\n{name} ({})", print::bytes(digest.bytes));
        match stored {
            Some((_, content)) => {
                for line in content.lines() {
                    let _ = writeln!(text, "  | {line}");
                }
            }
            None => {
                let _ = writeln!(text, "  not stored; its digest is {}", digest.hash);
            }
        }
    }
    text.trim_end().to_owned()
}

fn files(call: &CallEntry) -> String {
    let mut text = String::new();
    for change in &call.files {
        let what = match change.what {
            FileChangeKind::Created => "created",
            FileChangeKind::Deleted => "deleted",
            _ => "changed",
        };
        let _ = writeln!(text, "  {what} {}/{}", change.mount, change.path);
    }
    if call.files_left_out > 0 {
        let _ = writeln!(text, "  and {} more", call.files_left_out);
    }
    text
}
