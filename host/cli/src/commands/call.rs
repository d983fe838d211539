//! `cofferdam call`: one tool call.

use std::path::Path;

use cofferdam_tool::invoke::FileEffects;
use cofferdam_tool::output::ResourceBody;
use cofferdam_tool::{CallContext, Completion, Content, Outcome, Output, RefusedCall};

use crate::args::{CallArgs, Global};
use crate::exit::{ConsentError, Exit, UsageError};
use crate::host;
use crate::{arguments, commands, explain, file_changes, print, progress, terminal};
use cofferdam::json;
use cofferdam::{Host, Purpose};

pub(crate) async fn run(global: &Global, args: CallArgs) -> anyhow::Result<Exit> {
    let arguments = arguments::read(&args.arguments)?;
    let cancellation = commands::cancelled_by_ctrl_c();
    let tools = tokio::select! {
        loaded = host::load(global, &args.plugins, Purpose::Call) => loaded?,
        () = cancellation.cancelled() => return Ok(Exit::Interrupted),
    };
    if let Some(unavailable) = tools.unavailable_plugin_of(&args.tool) {
        let (tool, name) = (&args.tool, &unavailable.name);
        let message = format!(
            "`{tool}` is a tool of the plugin `{name}`, which is left out; nothing was called"
        );
        return Err(ConsentError(message).into());
    }
    let changes_nothing = args.dry_run && tools.is_file_tool(&args.tool);
    if !(args.yes || changes_nothing) {
        tokio::select! {
            approved = host::approve(&tools, &args.tool, arguments.as_deref()) => approved?,
            () = cancellation.cancelled() => return Ok(Exit::Interrupted),
        }
    }
    let context = CallContext {
        cancellation,
        file_effects: FileEffects {
            is_dry_run: args.dry_run,
            shows_diffs: args.dry_run || args.diff,
        },
        ..CallContext::new("cli")
    };
    let context = terminal::attended(context);
    let called = tools.toolset().call(&args.tool, arguments.as_deref(), &context).await;
    progress::clear();
    match called {
        Ok(completion) => {
            let exit = show(&args, &completion, &tools)?;
            note_recording(&args, &completion, &tools);
            Ok(exit)
        }
        Err(refused) => {
            let exit = show_refusal(&args, &refused, &tools)?;
            let error = arguments.as_deref().and_then(arguments::json_error);
            if let (RefusedCall::InvalidArguments(_), Some(error)) = (&refused, error) {
                print::note(&format!(
                    "  not valid JSON: {error}; write one JSON object, or KEY=TEXT for each \
                     argument"
                ));
            }
            Ok(exit)
        }
    }
}

/// Notes how the call can run again, if it was recorded for that.
fn note_recording(args: &CallArgs, completion: &Completion, tools: &Host) {
    if args.record.recording().is_some()
        && let (Some(log), Some(number)) = (tools.call_log(), completion.record.number)
    {
        let id = log.recorder().call_id(number);
        print::note(&format!("recorded as {id}; `cofferdam replay {id}` runs it again"));
    }
}

fn show(args: &CallArgs, completion: &Completion, tools: &Host) -> anyhow::Result<Exit> {
    let config = args.plugins.config.as_deref();
    match (&completion.outcome, &args.output) {
        _ if args.json => print::result(&json::completion(completion).to_string())?,
        (Outcome::Cancelled, _) => print::note("interrupted: the call was stopped"),
        (Outcome::Ok(output), Some(path)) => write_output(output, path)?,
        (Outcome::Ok(output), None) => show_output(output)?,
        (outcome, _) => {
            if let Some(shown) = outcome.shown() {
                print::result(&shown.text())?;
            }
        }
    }
    if args.json || matches!(completion.outcome, Outcome::Ok(_)) {
        explain::denials(&completion.record, tools.plugins(), config);
    } else {
        explain::outcome(&completion.outcome, &completion.record, tools, config);
    }
    if !args.json && (args.dry_run || args.diff) && matches!(completion.outcome, Outcome::Ok(_)) {
        file_changes::show(&completion.record);
    }
    if args.verbose {
        show_record(completion);
    }
    let failures = &completion.record.store_failures;
    failures.iter().for_each(|failure| print::note(failure));
    let exit = Exit::of_outcome(&completion.outcome);
    // File tools report a failed store to the model as an ordinary value, so the outcome is `Ok`.
    Ok(if exit == Exit::Ok && !failures.is_empty() { Exit::Plugin } else { exit })
}

/// Prints the text of a result, and names the files in it that text cannot show.
fn show_output(output: &Output) -> anyhow::Result<()> {
    let files = files(output);
    let text = output.text();
    if !text.is_empty() || files.is_empty() {
        print::result(&text)?;
    }
    for (media_type, data) in files {
        let size = print::bytes(u64::try_from(data.len()).unwrap_or(u64::MAX));
        print::note(&format!("{media_type}, {size}: not shown; write it with --output FILE"));
    }
    Ok(())
}

/// Writes a result to a file: its only blob, or its text.
fn write_output(output: &Output, path: &Path) -> anyhow::Result<()> {
    let text = output.text();
    let data = match files(output).as_slice() {
        [] => text.as_bytes(),
        [(_, data)] => data,
        several => {
            let count = several.len();
            return Err(UsageError(format!(
                "the result has {count} files, and --output holds one; use --json to get all"
            ))
            .into());
        }
    };
    // Through links, and to devices and pipes.
    std::fs::write(path, data).map_err(|error| {
        UsageError(format!("--output: {} cannot be written: {error}", path.display()))
    })?;
    let size = print::bytes(u64::try_from(data.len()).unwrap_or(u64::MAX));
    print::note(&format!("{size} written to {}", path.display()));
    Ok(())
}

/// Returns the media types and the bytes of the blobs of a result.
fn files(output: &Output) -> Vec<(&str, &[u8])> {
    let Output::Contents(contents) = output else { return Vec::new() };
    contents
        .iter()
        .filter_map(|content| match content {
            Content::Blob { media_type, data } => Some((media_type.as_str(), data.as_slice())),
            Content::Resource { media_type, body: ResourceBody::Blob(data), .. } => {
                Some((media_type.as_deref().unwrap_or("a file"), data.as_slice()))
            }
            _ => None,
        })
        .collect()
}

fn show_record(completion: &Completion) {
    let record = &completion.record;
    if !record.dropped.is_empty() {
        print::note(&format!("not declared and dropped: {}", record.dropped.join(", ")));
    }
    for (name, text) in [("stdout", &record.stdout_tail), ("stderr", &record.stderr_tail)] {
        if !text.is_empty() {
            print::note(&print::with_prefix(&format!("{name} of the tool:"), text.trim_end()));
        }
    }
    if let Some(backtrace) = &record.backtrace {
        // Function names in the backtrace come from the plugin.
        print::note(&print::with_prefix("call stack of the tool:", backtrace.trim_end()));
    }
    let phases = record.phases;
    print::note(&format!(
        "time: decode {:?}, instantiate {:?}, run {:?}; memory at most {}",
        phases.decode,
        phases.instantiate,
        phases.run,
        print::bytes(record.memory_peak_bytes)
    ));
}

fn show_refusal(args: &CallArgs, refused: &RefusedCall, tools: &Host) -> anyhow::Result<Exit> {
    if args.json {
        print::result(&json::refused(refused).to_string())?;
    }
    print::note(&format!("error: {}", cofferdam::text::refusal(refused)));
    if !matches!(refused, RefusedCall::UnknownTool { .. }) {
        return Ok(Exit::Usage);
    }
    let owners = tools.possible_owners();
    owners.iter().for_each(|owner| print::note(owner));
    Ok(if owners.is_empty() { Exit::Usage } else { Exit::Plugin })
}
