//! `cofferdam play`: plays a script of model replies against real tools.
//!
//! The script has one reply per line, and does not depend on the results of tools. The output shows
//! exactly what a model would see.

use std::path::Path;

use cofferdam_files::{read_named_text_ambient, read_text_at_most};
use cofferdam_tool::{CallContext, RefusedCall};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::args::{Global, PlayArgs};
use crate::exit::{Exit, UsageError};
use crate::host;
use crate::{commands, explain, print};
use cofferdam::{Host, Purpose};

/// Maximum size of a script in bytes.
const SCRIPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// One reply of the scripted model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedReply {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    calls: Vec<ScriptedCall>,
}

/// Tool call of the scripted model. Its arguments are passed unchanged.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    tool: String,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

pub(crate) async fn run(global: &Global, args: PlayArgs) -> anyhow::Result<Exit> {
    let replies = read_script(&args.script)?;
    let tools = host::load(global, &args.plugins, Purpose::Call).await?;
    let cancellation = commands::cancelled_by_ctrl_c();
    let mut calls_made = 0;
    for reply in replies {
        if let Some(text) = &reply.text {
            message(&args, "model", text, json!({"role": "model", "text": text}))?;
        }
        for call in &reply.calls {
            calls_made += 1;
            let context = CallContext {
                cancellation: cancellation.clone(),
                ..CallContext::new(format!("call-{calls_made}"))
            };
            if !play_call(&args, &tools, call, &context).await? {
                return Ok(Exit::Interrupted);
            }
        }
    }
    Ok(Exit::Ok)
}

/// Makes one call and shows its arguments and result. Returns false if it was interrupted.
async fn play_call(
    args: &PlayArgs,
    tools: &Host,
    call: &ScriptedCall,
    context: &CallContext,
) -> anyhow::Result<bool> {
    let written = call.arguments.as_ref().map(|raw| raw.get());
    let shown = format!("{} {}", call.tool, written.unwrap_or("{}"));
    let asks = json!({"role": "call", "id": context.call_id, "tool": call.tool, "arguments": call.arguments});
    message(args, "call", &shown, asks)?;
    let written = written.map(str::as_bytes);
    let approve =
        async { if args.yes { Ok(()) } else { host::approve(tools, &call.tool, written).await } };
    let approved = tokio::select! {
        approved = approve => approved,
        () = context.cancellation.cancelled() => return Ok(false),
    };
    if let Err(reason) = approved {
        let text = reason.to_string();
        let answer = json!({"role": "tool", "id": context.call_id, "text": text, "is_error": true});
        return message(args, "error", &text, answer).map(|()| true);
    }
    let (text, is_error) = match tools.toolset().call(&call.tool, written, context).await {
        Ok(completion) => {
            explain::denials(&completion.record, tools.plugins(), args.plugins.config.as_deref());
            match completion.outcome.shown() {
                Some(shown) => (shown.text(), shown.is_error),
                None => return Ok(false),
            }
        }
        Err(refused) => {
            if matches!(refused, RefusedCall::UnknownTool { .. }) {
                tools.possible_owners().iter().for_each(|owner| print::note(owner));
            }
            (refusal(&refused), true)
        }
    };
    let word = if is_error { "error" } else { "result" };
    let answer: Value =
        json!({"role": "tool", "id": context.call_id, "text": text, "is_error": is_error});
    message(args, word, &text, answer)?;
    Ok(true)
}

/// Returns the message that a model sees for a call that did not start (`LOOP-12`, `LOOP-13`).
fn refusal(refused: &RefusedCall) -> String {
    match refused {
        RefusedCall::UnknownTool { name, .. } => {
            format!("Error: Requested function \"{name}\" not found.")
        }
        RefusedCall::InvalidArguments(invalid) => {
            format!("Error: Argument parsing failed. {invalid}")
        }
        other => other.to_string(),
    }
}

fn message(args: &PlayArgs, who: &str, text: &str, json: Value) -> anyhow::Result<()> {
    if args.json {
        return print::result(&json.to_string());
    }
    let indented = text.trim_end().replace('\n', "\n        ");
    print::result(&format!("{who:>6}  {indented}"))
}

fn read_script(path: &str) -> anyhow::Result<Vec<ScriptedReply>> {
    let read = match path {
        "-" => read_text_at_most(std::io::stdin(), SCRIPT_BYTES_MAX),
        _ => read_named_text_ambient(Path::new(path), SCRIPT_BYTES_MAX),
    };
    let text =
        read.map_err(|error| UsageError(format!("the script {path} cannot be read: {error}")))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines.map(|(index, line)| read_reply(path, index + 1, line)).collect()
}

fn read_reply(path: &str, line_number: usize, line: &str) -> anyhow::Result<ScriptedReply> {
    serde_json::from_str(line).map_err(|error| {
        UsageError(format!("{path}:{line_number}: not a reply of a scripted model: {error}")).into()
    })
}
