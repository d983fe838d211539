//! `cofferdam call`: one tool call.

use std::path::Path;

use cofferdam_files::{read_at_most, read_named_ambient};
use cofferdam_tool::invoke::FileEffects;
use cofferdam_tool::{CallContext, Completion, Outcome, RefusedCall};

use crate::args::{CallArgs, Global};
use crate::exit::{ConsentError, Exit, UsageError};
use crate::host;
use crate::{commands, file_changes, print, terminal};
use cofferdam::{Host, Purpose};
use cofferdam::{consent, json};

/// Maximum size of arguments from a file or standard input, in bytes. The limit of the decoder is
/// lower.
const ARGUMENTS_BYTES_MAX: u64 = 16 * 1024 * 1024;

pub(crate) async fn run(global: &Global, args: CallArgs) -> anyhow::Result<Exit> {
    let arguments = args.arguments.as_deref().map(read_arguments).transpose()?;
    let tools = host::load(global, &args.plugins, Purpose::Call).await?;
    if let Some(unavailable) = tools.unavailable_plugin_of(&args.tool) {
        let (tool, name) = (&args.tool, &unavailable.name);
        let message = format!(
            "`{tool}` is a tool of the plugin `{name}`, which is left out; nothing was called"
        );
        return Err(ConsentError(message).into());
    }
    let cancellation = commands::cancelled_by_ctrl_c();
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
    match tools.toolset().call(&args.tool, arguments.as_deref(), &context).await {
        Ok(completion) => {
            let exit = show(&args, &completion)?;
            explain_refusals(&completion, args.plugins.config.as_deref());
            Ok(exit)
        }
        Err(refused) => show_refusal(&args, &refused, &tools),
    }
}

/// Returns arguments as typed, from standard input (`-`) or from a file (`@FILE`).
pub(super) fn read_arguments(text: &str) -> anyhow::Result<Vec<u8>> {
    let (read, from) = match text.strip_prefix('@') {
        Some(path) => (read_named_ambient(Path::new(path), ARGUMENTS_BYTES_MAX), path),
        None if text == "-" => {
            (read_at_most(std::io::stdin(), ARGUMENTS_BYTES_MAX), "standard input")
        }
        None => return Ok(text.as_bytes().to_vec()),
    };
    Ok(read.map_err(|error| {
        UsageError(format!("the arguments from {from} cannot be read: {error}"))
    })?)
}

fn show(args: &CallArgs, completion: &Completion) -> anyhow::Result<Exit> {
    if args.json {
        print::result(&json::completion(completion).to_string())?;
    } else if let Some(shown) = completion.outcome.shown() {
        print::result(&shown.text())?;
        explain(&completion.outcome);
    } else {
        print::note("interrupted: the call was stopped");
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

/// Prints details on standard error that the model does not see.
fn explain(outcome: &Outcome) {
    match outcome {
        Outcome::Failure(_) => print::note("the tool reported a failure"),
        Outcome::Error(error) => {
            print::note(&format!("the call ended as {error}"));
            if let Some(cause) = error.error_type() {
                print::note(&format!("  meaning: {}", cause.cause()));
            }
        }
        _ => {}
    }
}

/// Prints the refused capabilities and the commands that would grant them.
fn explain_refusals(completion: &Completion, config: Option<&Path>) {
    let record = &completion.record;
    let plugin = record.plugin.as_ref().map_or("", |plugin| plugin.name.as_str());
    for refusal in &record.refused {
        print::note(&format!("refused: {}", refusal.capability));
        if let Some(reason) = &refusal.reason {
            print::note(&format!("  {reason}"));
        }
        if let Some(how) = consent::how_to_grant(plugin, &refusal.capability, config) {
            print::note(&format!("  {how}"));
        }
    }
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
